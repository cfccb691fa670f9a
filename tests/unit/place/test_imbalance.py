"""Imbalance: standard deviations of loads, and which of the two resources counts more."""

from __future__ import annotations

from math import sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.place.imbalance import imbalance, weights
from equipoise.place.water import Floats

loads = st.lists(
    st.tuples(st.floats(0, 3), st.floats(0, 3)), min_size=1, max_size=8
).map(lambda pairs: (of([one for one, _ in pairs]), of([two for _, two in pairs])))  # fmt: skip


def of(figures: list[float]) -> Floats:
    return np.array(figures, dtype=np.float64)


def test_equal_loads_are_balanced_and_so_is_a_cluster_of_nobody() -> None:
    assert imbalance(of([0.5, 0.5]), of([0.2, 0.2])) == 0
    assert imbalance(of([]), of([])) == 0
    assert imbalance(of([0.9]), of([0.1])) == 0, "one host alone is always even"


def test_without_contention_both_count_the_same() -> None:
    """Loads of 0 and 1 deviate by a half; 2/3 of each resource is counted."""
    assert weights(of([0, 1]), of([0, 1])) == pytest.approx((2 / 3, 2 / 3))
    assert imbalance(of([0, 1]), of([0.4, 0.4])) == pytest.approx(1 / 3)
    assert imbalance(of([0, 1]), of([0, 1])) == pytest.approx(2 / 3)


def test_what_some_host_has_too_little_of_counts_three_times_as_much() -> None:
    assert weights(of([1.01, 0]), of([1, 1])) == pytest.approx((1, 1 / 3))
    assert weights(of([1, 0]), of([0, 1.01])) == pytest.approx((1 / 3, 1))
    assert imbalance(of([2, 0]), of([0, 1])) == pytest.approx(1 + 0.5 / 3)


def test_when_both_are_scarce_both_count_the_same_again() -> None:
    assert weights(of([2, 0]), of([0, 2])) == pytest.approx((2 / 3, 2 / 3))


def test_the_deviation_is_that_of_all_hosts_not_of_a_sample_of_them() -> None:
    assert imbalance(of([0, 0, 0, 1]), of([0] * 4)) == pytest.approx(2 / 3 * sqrt(3) / 4)


@given(loads)
def test_weights_add_up_to_the_same_and_nobody_is_below_zero(pair: tuple[Floats, Floats]) -> None:
    assert sum(weights(*pair)) == pytest.approx(4 / 3)
    assert imbalance(*pair) >= 0


@given(loads, st.randoms(use_true_random=False))
def test_it_does_not_matter_which_host_is_which(
    pair: tuple[Floats, Floats], chance: Random
) -> None:
    order = list(range(len(pair[0])))
    chance.shuffle(order)
    assert imbalance(pair[0][order], pair[1][order]) == pytest.approx(imbalance(*pair))
