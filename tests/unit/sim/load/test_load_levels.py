"""Levels: samples follow their distribution. Fixed seeds; five standard errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.model.scenario.load import Distribution, DiurnalLoad, NumberSpec
from equipoise.sim.load.levels import Floats, LevelTable

COUNT = 200_000


def drawn(level: NumberSpec, streams: int = 1) -> Floats:
    """Return many draws, from one stream or from the starts of several."""
    levels = LevelTable()
    number = levels.number(level)
    who = np.repeat(np.arange(streams, dtype=np.uint64) * np.uint64(7919), COUNT // streams)
    places = np.tile(np.arange(COUNT // streams), streams)
    return levels.values(np.full(COUNT, number), who, places)


def is_near(found: float, wanted: float, sd: float) -> bool:
    return abs(found - wanted) <= 5 * sd / math.sqrt(COUNT)


@pytest.mark.parametrize("streams", [1, 1000, COUNT])
def test_numbers_of_a_range_are_uniform(streams: int) -> None:
    found = drawn(Distribution(low=-10, high=30), streams)
    sd = 40 / math.sqrt(12)
    assert found.min() >= -10
    assert found.max() < 30
    assert is_near(found.mean(), 10, sd)
    assert is_near(((found - 10) ** 2).mean(), sd**2, sd**2 * math.sqrt(0.8))
    tenths = np.bincount(((found + 10) / 4).astype(np.int64), minlength=10) / COUNT
    assert all(is_near(share, 0.1, 0.3) for share in tenths)


@pytest.mark.parametrize("streams", [1, 1000, COUNT])
def test_a_normal_distribution_has_its_mean_deviation_and_tails(streams: int) -> None:
    found = (drawn(Distribution(mean=100, sd=20), streams) - 100) / 20
    assert is_near(found.mean(), 0, 1)
    assert is_near((found**2).mean(), 1, math.sqrt(2))
    assert is_near((found**3).mean(), 0, math.sqrt(15))
    for edge, share in ((1, 0.158655), (2, 0.0227501), (-1, 0.841345)):
        assert is_near((found > edge).mean(), share, math.sqrt(share * (1 - share)))


@pytest.mark.parametrize("streams", [1, COUNT])
def test_choices_of_a_list_are_uniform(streams: int) -> None:
    found, counts = np.unique(drawn(Distribution(one_of=(5, 1, 3)), streams), return_counts=True)
    assert found.tolist() == [1, 3, 5]
    assert all(is_near(count / COUNT, 1 / 3, math.sqrt(2) / 3) for count in counts)


def test_consecutive_draws_are_uncorrelated() -> None:
    for level in (Distribution(low=-1, high=1), Distribution(mean=0, sd=1)):
        found = drawn(level)
        found /= found.std()
        for apart in (1, 2, 3):
            assert is_near((found[apart:] * found[:-apart]).mean(), 0, 1)


def test_distributions_of_zero_width_are_constant() -> None:
    assert set(drawn(Distribution(mean=7, sd=0))) == {7}
    assert set(drawn(Distribution(low=7, high=7))) == {7}
    assert set(drawn(Distribution(one_of=(7,)))) == {7}
    assert set(drawn(7)) == {7}


def test_equal_levels_share_a_number_and_forms_can_be_mixed() -> None:
    levels = LevelTable()
    some: list[NumberSpec | DiurnalLoad] = [
        Distribution(one_of=(5,)),
        3.0,
        DiurnalLoad(low=0, high=10, peak_s=0),
        Distribution(one_of=(6,)),
        Distribution(low=1, high=1),
    ]
    numbers = np.array([levels.number(level) for level in some])
    assert [levels.number(level) for level in some] == numbers.tolist() == [0, 1, 2, 3, 4]
    zeros = np.zeros(5, dtype=np.int64)
    assert levels.values(numbers, zeros.astype(np.uint64), zeros).tolist() == [5, 3, 10, 6, 1]


def test_a_distribution_without_a_form_is_a_bug() -> None:
    for spread in (Distribution(), Distribution(low=3), Distribution(high=3), Distribution(mean=3)):
        with pytest.raises(AssertionError):
            LevelTable().number(spread)
