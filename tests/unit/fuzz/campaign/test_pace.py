from math import inf

from equipoise.fuzz.campaign.pace import BLOCK_S, FIRST, LARGEST, SMALLEST, Pace


def test_the_first_block_is_small_and_the_next_ones_as_large_as_the_pace_allows() -> None:
    pace = Pace(hands=1)
    assert pace.size(inf, inf) == FIRST
    pace.note(FIRST, FIRST / 100)
    assert pace.size(inf, inf) == 100 * BLOCK_S
    for _ in range(8):
        pace.note(FIRST, FIRST / 1_000_000)
    assert pace.size(inf, inf) == LARGEST


def test_one_block_does_not_say_everything() -> None:
    pace = Pace(hands=1)
    pace.note(FIRST, 0.0)
    assert pace.size(inf, inf) == 16 * FIRST


def test_blocks_are_never_tiny_but_at_the_end() -> None:
    pace = Pace(hands=1)
    pace.note(FIRST, 1_000.0)
    assert pace.size(inf, inf) == SMALLEST
    assert pace.size(inf, 0.0) == SMALLEST
    assert pace.size(5, inf) == 5


def test_several_hands_share_what_is_left_and_nobody_waits_long_for_the_last() -> None:
    pace = Pace(hands=2)
    for _ in range(8):
        pace.note(1_000, 1.0)
    left, sizes = 10_000, list[int]()
    while left:
        sizes.append(pace.size(left, inf))
        left -= sizes[-1]
    assert sum(sizes) == 10_000
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) == 1_000 * BLOCK_S
    assert sizes[-2] == 1_000
    assert Pace(hands=1).size(FIRST, inf) == FIRST  # who is alone waits for nobody


def test_blocks_end_when_time_does() -> None:
    pace = Pace(hands=2)
    for _ in range(8):
        pace.note(1_000, 1.0)
    assert pace.size(inf, 2.0) == 1_000
