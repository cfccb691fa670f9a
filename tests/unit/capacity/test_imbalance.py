"""Imbalance: standard deviations of loads, and which of the two resources counts more."""

from __future__ import annotations

from math import sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.capacity.imbalance import imbalance, resource_weights
from equipoise.capacity.waterfill import Floats

loads = st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3)), min_size=1, max_size=8).map(
    lambda pairs: of([load for load, _ in pairs], [capacity for _, capacity in pairs])
)


def of(*columns: list[float]) -> Floats:
    """Loads: one list for each resource."""
    return np.array(columns, dtype=np.float64).T


def test_equal_loads_and_no_loads_have_no_imbalance() -> None:
    assert imbalance(of([0.5, 0.5], [0.2, 0.2])) == 0
    assert imbalance(of([], [])) == 0
    assert imbalance(of([0.9], [0.1])) == 0, "one host alone is always even"


def test_without_contention_resources_have_equal_weights() -> None:
    """Loads of 0 and 1 deviate by a half; 2/3 of each resource is counted."""
    assert resource_weights(of([0, 1], [0, 1])) == pytest.approx((2 / 3, 2 / 3))
    assert imbalance(of([0, 1], [0.4, 0.4])) == pytest.approx(1 / 3)
    assert imbalance(of([0, 1], [0, 1])) == pytest.approx(2 / 3)


def test_a_contended_resource_weighs_three_times_as_much() -> None:
    assert resource_weights(of([1.01, 0], [1, 1])) == pytest.approx((1, 1 / 3))
    assert resource_weights(of([1, 0], [0, 1.01])) == pytest.approx((1 / 3, 1))
    assert imbalance(of([2, 0], [0, 1])) == pytest.approx(1 + 0.5 / 3)


def test_if_all_resources_are_contended_their_weights_are_equal() -> None:
    assert resource_weights(of([2, 0], [0, 2])) == pytest.approx((2 / 3, 2 / 3))


def test_the_deviation_is_that_of_the_population() -> None:
    assert imbalance(of([0, 0, 0, 1], [0] * 4)) == pytest.approx(2 / 3 * sqrt(3) / 4)


@given(loads)
def test_the_sum_of_weights_is_constant_and_no_weight_is_negative(some: Floats) -> None:
    assert sum(resource_weights(some)) == pytest.approx(4 / 3)
    assert imbalance(some) >= 0


@given(loads, st.randoms(use_true_random=False))
def test_the_order_of_hosts_does_not_matter(some: Floats, chance: Random) -> None:
    order = list(range(len(some)))
    chance.shuffle(order)
    assert imbalance(some[order]) == pytest.approx(imbalance(some))


def test_a_host_without_a_resource_does_not_count_for_it() -> None:
    """Two of three hosts have an accelerator, and both are used the same."""
    nan = float("nan")
    assert imbalance(of([0.5, 0.5, 0.5], [0.2, 0.2, 0.2], [0.7, 0.7, nan])) == pytest.approx(0)
    uneven = of([0.5, 0.5, 0.5], [0.2, 0.2, 0.2], [0, 1, nan])
    assert imbalance(uneven) == pytest.approx(2 / 3 * 0.5)


def test_with_three_resources_a_contended_one_weighs_three_times_as_much() -> None:
    assert resource_weights(of([0, 1], [0, 1], [0, 2])) == pytest.approx((0.4, 0.4, 1.2))
