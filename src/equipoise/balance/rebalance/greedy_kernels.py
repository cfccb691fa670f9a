"""Greedy search kernels: repeatedly take the move that reduces the imbalance most.

Plain arithmetic that can be compiled. The imbalance follows from the sums of the loads and of their
squares, so a move is judged from its two hosts alone. The rating of a unit is kept until it is the
best of all and is then computed again: other moves rarely make a move better.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from equipoise.balance.rebalance import cost_benefit
from equipoise.balance.rebalance.cluster_arrays import (
    COST_EXCEEDS_BENEFIT,
    FT_INCOMPATIBLE,
    HOST_CLOSED,
    LEFT_LATELY,
    MAKES_SCARCE,
    MUST_BE_APART,
    NO_CAPACITY,
    NO_GAIN,
    NO_OBSTACLE,
    PINNED,
    RULE_FORBIDS,
    SAME_HOST,
    TOO_FEW_CORES,
    ClusterArrays,
    LoadTotals,
)
from equipoise.balance.rebalance.cost_benefit import cannot_pay_off, pays_off, source_relief
from equipoise.capacity.arrays import LEDGER_FUNCTIONS, commit_unit, release_unit, unit_fits
from equipoise.capacity.imbalance import FULL_LOAD
from equipoise.capacity.waterfill import NO_INDEX, Floats, Ints

STALE_RATING_TOLERANCE: Final = 0.97
"""A rating that is computed again and is at least this part of the old one is still the best."""
SCARCE_LOAD: Final = FULL_LOAD
RATINGS_MAX: Final = 4
"""How often all units are rated in one search."""
GAIN_TOLERANCE: Final = 1e-9
"""A smaller gain is rounding."""


class GreedyTask(NamedTuple):
    """The hosts and units of one search, its limits, and the arrays for its result."""

    hosts: Ints
    """The hosts between which units move."""
    units: Ints
    """The units on these hosts."""
    target: float
    """The search ends at this imbalance."""
    goodness: float
    """A move must gain this part of the imbalance above the target, divided by the hosts."""
    gain_min: float
    """A move must gain this part of a host, unless the host that it leaves is overloaded."""
    relaxed_above: float
    """While the imbalance exceeds so many targets, a tenth of that gain is enough."""
    exact: bool
    """Whether all units are rated again after each move."""
    tries: int
    """For how many hosts per unit the cost-benefit analysis runs."""
    unit: Ints
    """The result: the unit, source, target and gain of each move."""
    source: Ints
    host: Ints
    gain: Floats
    before: Floats
    """The imbalance before each move."""


def has_capacity(arrays: ClusterArrays, unit: int, host: int) -> bool:
    """Return whether the claim of a unit fits on a host, and the host has what the unit uses."""
    for resource in range(arrays.load.shape[1]):
        # A load on a host without the resource would vanish from all sums, and look like a gain.
        if arrays.load[unit, resource] > 0.0 and arrays.capacity[host, resource] == inf:
            return False
    return unit_fits(arrays.ledger, unit, host)


def is_overloaded(arrays: ClusterArrays, host: int) -> bool:
    """Return whether the units on a host ask for more than it has."""
    for resource in range(arrays.load.shape[1]):
        if arrays.host_demand[host, resource] * arrays.inverse[host, resource] > SCARCE_LOAD:
            return True
    return False


def must_be_apart(arrays: ClusterArrays, unit: int, host: int) -> bool:
    """Return whether a rule keeps a unit apart from another one on a host."""
    for index in range(arrays.group_first[unit], arrays.group_first[unit + 1]):
        group = arrays.group_of[index]
        for member in range(arrays.member_first[group], arrays.member_first[group + 1]):
            if arrays.unit_host[arrays.member[member]] == host and arrays.member[member] != unit:
                return True
    return False


def find_obstacle(arrays: ClusterArrays, unit: int, host: int) -> int:
    """Return what prevents a unit from being on a host; ``NO_OBSTACLE`` if nothing does."""
    if host == arrays.unit_host[unit]:
        return SAME_HOST
    if arrays.open[host] == 0:
        return HOST_CLOSED
    if arrays.allowed[arrays.allowed_row[unit], host] == 0:
        return RULE_FORBIDS
    if arrays.vcpus[unit] > arrays.cores[host]:
        return TOO_FEW_CORES
    if not has_capacity(arrays, unit, host):
        return NO_CAPACITY
    if must_be_apart(arrays, unit, host):
        return MUST_BE_APART
    if arrays.left[unit] == host:
        return LEFT_LATELY
    partner = arrays.partner[unit]
    if partner != NO_INDEX and arrays.kind[host] != arrays.kind[arrays.unit_host[partner]]:
        return FT_INCOMPATIBLE
    return NO_OBSTACLE


def compute_gains(
    arrays: ClusterArrays, totals: LoadTotals, unit: int, hosts: Ints, before: float, gains: Floats
) -> None:
    """Write the fall of the imbalance, if a unit moves to each host, to ``gains``.

    The load of the source changes from ``a`` to ``a - x``, that of the target from ``b`` to ``b +
    y``. The function calls no other, because it runs for every pair of a unit and a host.
    """
    unit_host, host_load, inverse, load = (
        arrays.unit_host[unit],
        arrays.host_load,
        arrays.inverse,
        arrays.load,
    )
    for index in range(len(hosts)):
        gains[index] = before
    for resource in range(arrays.load.shape[1]):
        amount, part = load[unit, resource], 1.0 / max(1.0, totals.host_count[resource])
        x = amount * inverse[unit_host, resource]
        a = host_load[unit_host, resource] * inverse[unit_host, resource]
        total_a = totals.sums[resource] - x
        square_a = totals.squares[resource] + x * (x - 2.0 * a)
        weight = totals.weight[resource]
        for index in range(len(hosts)):
            host = hosts[index]
            y = amount * inverse[host, resource]
            b = host_load[host, resource] * inverse[host, resource]
            total = total_a + y
            variance = (square_a + y * (y + 2.0 * b) - total * total * part) * part
            gains[index] -= weight * sqrt(max(0.0, variance))


def measure_imbalance(arrays: ClusterArrays, totals: LoadTotals, hosts: Ints) -> float:
    """Return the imbalance of hosts with the given weights, and refresh ``totals``."""
    result = 0.0
    for resource in range(arrays.load.shape[1]):
        total, square, count = 0.0, 0.0, 0.0
        totals.capacity_min[resource], totals.capacity_max[resource] = inf, 1.0
        for index in range(len(hosts)):
            host = hosts[index]
            size = arrays.capacity[host, resource]
            if size == inf:
                continue
            load = arrays.host_load[host, resource] * arrays.inverse[host, resource]
            total, square, count = total + load, square + load * load, count + 1.0
            totals.capacity_min[resource] = min(totals.capacity_min[resource], size)
            totals.capacity_max[resource] = max(totals.capacity_max[resource], size)
        totals.sums[resource], totals.squares[resource] = total, square
        totals.host_count[resource] = count
        variance = (square - total * total / count) / count if count > 0.0 else 0.0
        if variance > 0.0:
            result += totals.weight[resource] * sqrt(variance)
    return result


def makes_scarce(arrays: ClusterArrays, totals: LoadTotals, unit: int, host: int) -> bool:
    """Return whether a move overloads the target, or makes a resource scarce that was not.

    A scarce resource has a larger weight. If a move could make one scarce, the next pass could undo
    it, and so on without end. The demand on a target never exceeds its capacity by a move either:
    the next pass would have to relieve it.
    """
    for resource in range(arrays.usable.shape[1]):
        amount = arrays.usable[unit, resource]
        if amount > 0.0:
            full = (arrays.host_usable[host, resource] + amount) * arrays.inverse[host, resource]
            if full > SCARCE_LOAD:
                return True
    for resource in range(arrays.load.shape[1]):
        load = arrays.host_load[host, resource] + arrays.load[unit, resource]
        if totals.scarce[resource] == 0 and load * arrays.inverse[host, resource] > SCARCE_LOAD:
            return True
    return False


def ratings(
    arrays: ClusterArrays, totals: LoadTotals, unit: int, hosts: Ints, before: float, gains: Floats
) -> Ints:
    """Return the obstacle of each host for a unit; the gains are written to ``gains``."""
    codes = np.zeros(len(hosts), dtype=np.int64)
    compute_gains(arrays, totals, unit, hosts, before, gains)
    relieved = source_relief(arrays, unit)
    for index in range(len(hosts)):
        host, gain = hosts[index], gains[index]
        obstacle = PINNED if arrays.movable[unit] == 0 else find_obstacle(arrays, unit, host)
        if obstacle == NO_OBSTACLE and gain <= GAIN_TOLERANCE:
            obstacle = NO_GAIN
        if obstacle == NO_OBSTACLE and makes_scarce(arrays, totals, unit, host):
            obstacle = MAKES_SCARCE
        if obstacle == NO_OBSTACLE and not pays_off(arrays, totals, unit, host, gain, relieved):
            obstacle = COST_EXCEEDS_BENEFIT
        codes[index] = obstacle
        if obstacle in (SAME_HOST, PINNED):
            gains[index] = 0.0
    return codes


def drop_forbidden(
    arrays: ClusterArrays, totals: LoadTotals, unit: int, hosts: Ints, gains: Floats
) -> None:
    """Set the gain of hosts with an obstacle to zero."""
    for index in range(len(hosts)):
        if gains[index] > GAIN_TOLERANCE and (
            find_obstacle(arrays, unit, hosts[index]) != NO_OBSTACLE
            or makes_scarce(arrays, totals, unit, hosts[index])
        ):
            gains[index] = 0.0


def find_best_host(
    arrays: ClusterArrays, totals: LoadTotals, unit: int, hosts: Ints, before: float, tries: int
) -> tuple[int, float]:
    """Return the best host for a unit and the gain there, or ``NO_INDEX``.

    Hosts are tried by falling gain. If ``tries`` hosts are not worth the cost, the others are not
    tried: their gain is smaller, and most of them are fuller.
    """
    if arrays.movable[unit] == 0:
        return NO_INDEX, 0.0
    gains = np.empty(len(hosts))
    compute_gains(arrays, totals, unit, hosts, before, gains)
    index = int(np.argmax(gains))
    if gains[index] <= GAIN_TOLERANCE:
        return NO_INDEX, 0.0
    relieved = source_relief(arrays, unit)
    if cannot_pay_off(arrays, totals, unit, gains[index], relieved):
        return NO_INDEX, 0.0
    for _ in range(tries):
        index = int(np.argmax(gains))
        if gains[index] <= GAIN_TOLERANCE:
            break
        if find_obstacle(arrays, unit, hosts[index]) != NO_OBSTACLE or makes_scarce(
            arrays, totals, unit, hosts[index]
        ):
            drop_forbidden(arrays, totals, unit, hosts, gains)
            index = int(np.argmax(gains))
            if gains[index] <= GAIN_TOLERANCE:
                break
        if pays_off(arrays, totals, unit, hosts[index], gains[index], relieved):
            return hosts[index], gains[index]
        gains[index] = 0.0
    return NO_INDEX, 0.0


def move_unit(arrays: ClusterArrays, unit: int, host: int) -> None:
    """Move a unit to another host in the arrays."""
    unit_host = arrays.unit_host[unit]
    for resource in range(arrays.load.shape[1]):
        arrays.host_load[unit_host, resource] -= arrays.load[unit, resource]
        arrays.host_load[host, resource] += arrays.load[unit, resource]
        arrays.host_demand[unit_host, resource] -= arrays.demand[unit, resource]
        arrays.host_demand[host, resource] += arrays.demand[unit, resource]
        arrays.host_demand_min[unit_host, resource] -= arrays.demand_min[unit, resource]
        arrays.host_demand_min[host, resource] += arrays.demand_min[unit, resource]
        arrays.host_demand_max[unit_host, resource] -= arrays.demand_max[unit, resource]
        arrays.host_demand_max[host, resource] += arrays.demand_max[unit, resource]
    for resource in range(arrays.usable.shape[1]):
        arrays.host_usable[unit_host, resource] -= arrays.usable[unit, resource]
        arrays.host_usable[host, resource] += arrays.usable[unit, resource]
    release_unit(arrays.ledger, unit, unit_host)
    commit_unit(arrays.ledger, unit, host)
    arrays.unit_host[unit] = host


def min_gain(arrays: ClusterArrays, task: GreedyTask, before: float, source: int) -> float:
    """Return the smallest gain that a move from a host must have at this imbalance."""
    excess, hosts = before - task.target, max(1, len(task.hosts))
    least = task.goodness * excess / hosts
    if before > task.relaxed_above * task.target:
        least /= 10.0
    # The imbalance is a mean over the hosts; times their number it is in hosts.
    return least if is_overloaded(arrays, source) else max(least, task.gain_min / hosts)


def rate_units(
    arrays: ClusterArrays, totals: LoadTotals, task: GreedyTask, before: float, keys: Floats
) -> None:
    """Write the gain of the best move of each unit, times the imbalance, to ``keys``.

    Gains grow while the imbalance falls. Their product stays about the same, so that old keys can
    be compared with new ones.
    """
    for index in range(len(task.units)):
        _, gain = find_best_host(arrays, totals, task.units[index], task.hosts, before, task.tries)
        keys[index] = gain * before


def find_best_unit(
    arrays: ClusterArrays, totals: LoadTotals, task: GreedyTask, before: float, keys: Floats
) -> tuple[int, int, float]:
    """Return the index of the best unit, its target host and its gain.

    The unit with the best key is rated again. If it is still about as good, it is taken: no other
    unit can be much better.
    """
    while True:
        index = int(np.argmax(keys))
        if keys[index] <= 0.0:
            return NO_INDEX, NO_INDEX, 0.0
        host, gain = find_best_host(
            arrays, totals, task.units[index], task.hosts, before, task.tries
        )
        stale, keys[index] = keys[index], gain * before
        if gain > 0.0 and gain * before >= (1.0 if task.exact else STALE_RATING_TOLERANCE) * stale:
            return index, host, gain


def is_above_mean(arrays: ClusterArrays, totals: LoadTotals, host: int) -> bool:
    """Return whether the weighted load of a host is above the mean."""
    above = 0.0
    for resource in range(len(totals.sums)):
        load = arrays.host_load[host, resource] * arrays.inverse[host, resource]
        above += totals.weight[resource] * (
            load - totals.sums[resource] / max(1.0, totals.host_count[resource])
        )
    return above > 0.0


def update_ratings(
    arrays: ClusterArrays,
    totals: LoadTotals,
    task: GreedyTask,
    moved: tuple[int, int, float],
    keys: Floats,
) -> None:
    """After a move, raise the keys of moves that became better: off the target, onto the source.

    If both hosts stay on their side of the mean, little has changed. What is missed is found when
    all units are rated again.
    """
    source, target, before = moved
    fuller, emptier = (
        is_above_mean(arrays, totals, target),
        not is_above_mean(arrays, totals, source),
    )
    if not fuller and not emptier:
        return
    source_only, high = np.full(1, source), np.zeros(len(arrays.open), dtype=np.int64)
    for index in range(len(task.hosts)):
        high[task.hosts[index]] = is_above_mean(arrays, totals, task.hosts[index])
    for index in range(len(task.units)):
        unit = task.units[index]
        unit_host = arrays.unit_host[unit]
        # A unit of a host below the mean hardly gains by leaving it, and each search costs time.
        if high[unit_host] == 0 or arrays.movable[unit] == 0:
            continue
        if fuller and unit_host == target:
            _, gain = find_best_host(arrays, totals, unit, task.hosts, before, task.tries)
            keys[index] = max(keys[index], gain * before)
        elif emptier:
            _, gain = find_best_host(arrays, totals, unit, source_only, before, task.tries)
            keys[index] = max(keys[index], gain * before)


def run(arrays: ClusterArrays, totals: LoadTotals, task: GreedyTask) -> int:
    """Take the best move until none is good enough; return the number of moves.

    After ``RATINGS_MAX`` ratings of all units the search ends; the next pass continues.
    """
    moves, fresh, ratings_made = 0, False, 0
    keys = np.zeros(len(task.units))
    while moves < len(task.unit) and len(task.units) > 0:
        before = measure_imbalance(arrays, totals, task.hosts)
        if before <= task.target:
            break
        if task.exact or ratings_made == 0:
            rate_units(arrays, totals, task, before, keys)
            fresh, ratings_made = True, ratings_made + 1
        index, host, gain = find_best_unit(arrays, totals, task, before, keys)
        if index == NO_INDEX or gain < min_gain(
            arrays, task, before, arrays.unit_host[task.units[index]]
        ):
            # Old keys may hide a good move. Only with fresh ones is it certain that none is left.
            if fresh or ratings_made >= RATINGS_MAX:
                break
            rate_units(arrays, totals, task, before, keys)
            fresh, ratings_made = True, ratings_made + 1
            continue
        unit = task.units[index]
        unit_host = arrays.unit_host[unit]
        task.unit[moves], task.source[moves], task.host[moves] = unit, unit_host, host
        task.gain[moves], task.before[moves] = gain, before
        moves += 1
        move_unit(arrays, unit, host)
        arrays.movable[unit], keys[index], fresh = 0, 0.0, False
        if not task.exact:
            update_ratings(
                arrays,
                totals,
                task,
                (unit_host, host, measure_imbalance(arrays, totals, task.hosts)),
                keys,
            )
    return moves


GREEDY_FUNCTIONS: Final[tuple[Any, ...]] = (
    *LEDGER_FUNCTIONS,
    has_capacity,
    is_overloaded,
    must_be_apart,
    find_obstacle,
    *cost_benefit.COST_BENEFIT_FUNCTIONS,
    compute_gains,
    measure_imbalance,
    makes_scarce,
    ratings,
    drop_forbidden,
    find_best_host,
    move_unit,
    min_gain,
    rate_units,
    find_best_unit,
    is_above_mean,
    update_ratings,
    run,
)
"""Callee before caller, for ``KernelSet``."""
INLINE_FUNCTIONS: Final[tuple[Any, ...]] = (
    *cost_benefit.COST_BENEFIT_FUNCTIONS,
    unit_fits,
    has_capacity,
    is_overloaded,
    must_be_apart,
    find_obstacle,
    compute_gains,
    makes_scarce,
)
"""Functions that run for each pair of a unit and a host."""
ENTRY_FUNCTIONS: Final[tuple[Any, ...]] = (run, measure_imbalance, ratings)
"""Functions that Python calls; ``move_unit`` for one move is faster as plain Python."""
