from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from equipoise.model.scenario.load import Distribution
from equipoise.sim.random_streams import RandomStream, draw_uniform, stream_key

SEEDS = st.integers(0, 2**63 - 1)


@given(SEEDS, st.text(max_size=8), st.integers(1, 50))
def test_a_random_stream_returns_the_numbers_of_its_key(seed: int, word: str, count: int) -> None:
    rng = RandomStream(seed, word)
    rolled = [rng.uniform() for _ in range(count)]
    streams = np.full(count, stream_key(seed, word), dtype=np.uint64)
    assert rolled == draw_uniform(streams, np.arange(count)).tolist()
    assert all(0 <= number < 1 for number in rolled)


def test_a_million_draws_are_spread_evenly_and_do_not_follow_each_other() -> None:
    streams = np.full(10**6, stream_key(1, "x"), dtype=np.uint64)
    drawn = draw_uniform(streams, np.arange(10**6))
    counts = np.bincount((drawn * 100).astype(int))
    assert abs(drawn.mean() - 0.5) < 0.0015
    assert counts.min() > 9_500
    assert counts.max() < 10_500
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.005


def test_neighbouring_streams_are_uncorrelated() -> None:
    one = draw_uniform(np.full(10**5, stream_key(1, "vm-1"), dtype=np.uint64), np.arange(10**5))
    two = draw_uniform(np.full(10**5, stream_key(1, "vm-2"), dtype=np.uint64), np.arange(10**5))
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.015


def test_words_of_a_stream_are_separate() -> None:
    assert stream_key(1, "ab", "c") != stream_key(1, "a", "bc")
    assert stream_key(1, "a") != stream_key(2, "a")


def test_samples_follow_their_distribution() -> None:
    rng = RandomStream(1, "levels")
    assert rng.sample(7) == 7
    assert {rng.sample(Distribution(one_of=(1, 2))) for _ in range(50)} == {1, 2}
    even = [rng.sample(Distribution(low=10, high=20)) for _ in range(5000)]
    assert 10 <= min(even) < 10.1
    assert 19.9 < max(even) < 20
    bell = [rng.sample(Distribution(mean=100, sd=10)) for _ in range(5000)]
    assert abs(np.mean(bell) - 100) < 0.7
    assert abs(np.std(bell) - 10) < 0.5
