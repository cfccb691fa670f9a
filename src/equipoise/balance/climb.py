"""Climbing: the single move that lowers the imbalance most, again and again, on arrays.

Plain arithmetic that can be compiled. The imbalance follows from the sums of the loads and of their
squares, so a move is judged without looking at any other host than its two.
"""

from __future__ import annotations

from math import erf, exp, pi, sqrt
from typing import Any, Final, NamedTuple

from equipoise.place.water import NOBODY, Floats, Ints, Records

NEXT_TO_NOTHING: Final = 1e-9
ROOT_OF_2: Final = sqrt(2.0)
ROOT_OF_2_PI: Final = sqrt(2.0 * pi)


class Weighing(NamedTuple):
    """What a move must be worth."""

    cost_benefit: bool
    spread: float
    evenness: float
    horizon_s: float
    migration_cpu_mhz: float
    slowdown: float


class Field(NamedTuple):
    """Everything that is climbed on."""

    units: Records
    hosts: Records
    allowed: Ints
    group_of: Ints
    group_first: Ints
    there: Ints
    weighing: Weighing


def deviation(total: float, square: float, count: float) -> float:
    """The standard deviation, from the sum and the sum of the squares."""
    mean = total / count
    variance = square / count - mean * mean
    return sqrt(variance) if variance > 0.0 else 0.0


def may_go(field: Field, unit: int, host: int) -> bool:
    """Whether reservations and plain rules let a unit onto a host."""
    one, there = field.units[unit], field.hosts[host]
    if there["open"] == 0 or field.allowed[one["allowed"], host] == 0:
        return False
    for resource in range(2):
        if there["reserved"][resource] + one["reserved"][resource] > there["capacity"][resource]:
            return False
    for place in range(field.group_first[unit], field.group_first[unit + 1]):
        if field.there[field.group_of[place], host] > 0:
            return False
    return True


def shortfall(demand: float, capacity: float, spread: float) -> float:
    """How much demand is not met, on average, if it may be somewhat other than expected."""
    width = spread * demand
    if width <= NEXT_TO_NOTHING * capacity:
        return max(0.0, demand - capacity)
    z = (demand - capacity) / width
    density = exp(-0.5 * z * z) / ROOT_OF_2_PI
    return width * (density + z * 0.5 * (1.0 + erf(z / ROOT_OF_2)))


def worth(field: Field, unit: int, host: int, resource: int) -> float:
    """What a move gains less what it costs, in MHz- or MiB-seconds.

    For as long as demand has stayed the same lately it is taken to stay; then the worst comes: the
    source needs as little and the target as much as they ever did within the last hour.
    """
    one, weighing = field.units[unit], field.weighing
    source, target = field.hosts[one["host"]], field.hosts[host]
    want, spread = one["want"][resource], weighing.spread
    here, there = source["capacity"][resource], target["capacity"][resource]
    now = shortfall(source["want"][resource], here, spread)
    now -= shortfall(source["want"][resource] - want, here, spread)
    now += shortfall(target["want"][resource], there, spread)
    now -= shortfall(target["want"][resource] + want, there, spread)
    least, most = one["least"][resource], one["most"][resource]
    worst = max(0.0, source["least"][resource] - here)
    worst -= max(0.0, source["least"][resource] - least - here)
    worst += max(0.0, target["most"][resource] - there)
    worst -= max(0.0, target["most"][resource] + most - there)
    stable_s = min(source["stable_s"], target["stable_s"], weighing.horizon_s)
    cost = want * one["move_s"] * (weighing.slowdown if resource == 0 else 0.0)
    if resource == 0:
        cost += 2.0 * weighing.migration_cpu_mhz * one["move_s"]
    net: float = now * stable_s + worst * (weighing.horizon_s - stable_s) - cost
    return net


def is_worth_it(field: Field, unit: int, host: int, weight: Floats, evened: float) -> bool:
    """Whether a move pays, in both resources together, each as a part of what a host has.

    That hosts are ``evened`` out is worth something by itself, for whatever comes; the more, the
    longer demand has stayed the same.
    """
    if not field.weighing.cost_benefit:
        return True
    home, horizon_s = field.units[unit]["host"], field.weighing.horizon_s
    stable_s = min(field.hosts[home]["stable_s"], field.hosts[host]["stable_s"], horizon_s)
    total = field.weighing.evenness * evened * stable_s * stable_s / horizon_s
    for resource in range(2):
        share = worth(field, unit, host, resource) / field.hosts[host]["capacity"][resource]
        total += weight[resource] * share
    return bool(total > 0.0)


def best_move(
    field: Field, sources: Ints, targets: Ints, sums: Floats, squares: Floats, weight: Floats
) -> tuple[int, int, float]:
    """The unit, the host and the gain of the best move there is, or nobody.

    ``sources`` has 1 for the hosts whose units may go; ``targets`` lists hosts they may go to.
    """
    count, hosts, units = float(sums[2]), field.hosts, field.units
    before = weight[0] * deviation(sums[0], squares[0], count)
    before += weight[1] * deviation(sums[1], squares[1], count)
    best, best_unit, best_host = 0.0, NOBODY, NOBODY
    for unit in range(len(units)):
        one = units[unit]
        home = one["host"]
        if one["movable"] == 0 or sources[home] == 0:
            continue
        for place in range(len(targets)):
            host = targets[place]
            if host == home:
                continue
            after = 0.0
            for resource in range(2):
                away, to = hosts[home], hosts[host]
                load = one["load"][resource]
                old_a = away["load"][resource] / away["capacity"][resource]
                old_b = to["load"][resource] / to["capacity"][resource]
                new_a = (away["load"][resource] - load) / away["capacity"][resource]
                new_b = (to["load"][resource] + load) / to["capacity"][resource]
                total = sums[resource] + new_a + new_b - old_a - old_b
                square = squares[resource]
                square += new_a * new_a + new_b * new_b - old_a * old_a - old_b * old_b
                after += weight[resource] * deviation(total, square, count)
            gain = before - after
            if gain <= best or not may_go(field, unit, host):
                continue
            if is_worth_it(field, unit, host, weight, gain * count):
                best, best_unit, best_host = gain, unit, host
    return best_unit, best_host, best


def move(field: Field, unit: int, host: int, sums: Floats, squares: Floats) -> None:
    """Let a unit be on another host."""
    one = field.units[unit]
    home = one["host"]
    for sign, row in ((-1.0, home), (1.0, host)):
        there = field.hosts[row]
        for resource in range(2):
            load = there["load"][resource] / there["capacity"][resource]
            sums[resource] -= load
            squares[resource] -= load * load
            there["load"][resource] += sign * one["load"][resource]
            there["want"][resource] += sign * one["want"][resource]
            there["least"][resource] += sign * one["least"][resource]
            there["most"][resource] += sign * one["most"][resource]
            there["reserved"][resource] += sign * one["reserved"][resource]
            load = there["load"][resource] / there["capacity"][resource]
            sums[resource] += load
            squares[resource] += load * load
    for place in range(field.group_first[unit], field.group_first[unit + 1]):
        field.there[field.group_of[place], home] -= 1
        field.there[field.group_of[place], host] += 1
    one["host"] = host


FUNCTIONS: Final[tuple[Any, ...]] = (
    deviation,
    may_go,
    shortfall,
    worth,
    is_worth_it,
    best_move,
    move,
)
"""Callee before caller, for ``Kernels``."""
