from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from equipoise.model.story.load import Spread
from equipoise.sim.chance import Dice, draw, stream

SEEDS = st.integers(0, 2**63 - 1)


@given(SEEDS, st.text(max_size=8), st.integers(1, 50))
def test_dice_roll_the_numbers_of_their_stream(seed: int, word: str, count: int) -> None:
    dice = Dice(seed, word)
    rolled = [dice.roll() for _ in range(count)]
    streams = np.full(count, stream(seed, word), dtype=np.uint64)
    assert rolled == draw(streams, np.arange(count)).tolist()
    assert all(0 <= one < 1 for one in rolled)


def test_a_million_draws_are_spread_evenly_and_do_not_follow_each_other() -> None:
    streams = np.full(10**6, stream(1, "x"), dtype=np.uint64)
    drawn = draw(streams, np.arange(10**6))
    counts = np.bincount((drawn * 100).astype(int))
    assert abs(drawn.mean() - 0.5) < 0.0015
    assert counts.min() > 9_500
    assert counts.max() < 10_500
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.005


def test_neighbouring_streams_have_nothing_in_common() -> None:
    one = draw(np.full(10**5, stream(1, "vm-1"), dtype=np.uint64), np.arange(10**5))
    two = draw(np.full(10**5, stream(1, "vm-2"), dtype=np.uint64), np.arange(10**5))
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.015


def test_words_are_kept_apart() -> None:
    assert stream(1, "ab", "c") != stream(1, "a", "bc")
    assert stream(1, "a") != stream(2, "a")


def test_levels_are_drawn_as_they_say() -> None:
    dice = Dice(1, "levels")
    assert dice.draw(7) == 7
    assert {dice.draw(Spread(one_of=(1, 2))) for _ in range(50)} == {1, 2}
    even = [dice.draw(Spread(low=10, high=20)) for _ in range(5000)]
    assert 10 <= min(even) < 10.1
    assert 19.9 < max(even) < 20
    bell = [dice.draw(Spread(mean=100, sd=10)) for _ in range(5000)]
    assert abs(np.mean(bell) - 100) < 0.7
    assert abs(np.std(bell) - 10) < 0.5
