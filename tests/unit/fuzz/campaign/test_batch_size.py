from math import inf

from equipoise.fuzz.campaign.batch import BATCH_S, FIRST_SIZE, SIZE_MAX, SIZE_MIN, BatchSizer


def test_the_first_block_is_small_and_the_next_ones_as_large_as_the_pace_allows() -> None:
    pace = BatchSizer(parallelism=1)
    assert pace.size(inf, inf) == FIRST_SIZE
    pace.note(FIRST_SIZE, FIRST_SIZE / 100)
    assert pace.size(inf, inf) == 100 * BATCH_S
    for _ in range(8):
        pace.note(FIRST_SIZE, FIRST_SIZE / 1_000_000)
    assert pace.size(inf, inf) == SIZE_MAX


def test_the_growth_after_one_batch_is_limited() -> None:
    pace = BatchSizer(parallelism=1)
    pace.note(FIRST_SIZE, 0.0)
    assert pace.size(inf, inf) == 16 * FIRST_SIZE


def test_blocks_are_never_tiny_but_at_the_end() -> None:
    pace = BatchSizer(parallelism=1)
    pace.note(FIRST_SIZE, 1_000.0)
    assert pace.size(inf, inf) == SIZE_MIN
    assert pace.size(inf, 0.0) == SIZE_MIN
    assert pace.size(5, inf) == 5


def test_workers_share_the_remaining_trials_in_short_last_batches() -> None:
    pace = BatchSizer(parallelism=2)
    for _ in range(8):
        pace.note(1_000, 1.0)
    left, sizes = 10_000, list[int]()
    while left:
        sizes.append(pace.size(left, inf))
        left -= sizes[-1]
    assert sum(sizes) == 10_000
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) == 1_000 * BATCH_S
    assert sizes[-2] == 1_000
    assert (
        BatchSizer(parallelism=1).size(FIRST_SIZE, inf) == FIRST_SIZE
    )  # a single worker never waits


def test_blocks_end_when_time_does() -> None:
    pace = BatchSizer(parallelism=2)
    for _ in range(8):
        pace.note(1_000, 1.0)
    assert pace.size(inf, 2.0) == 1_000
