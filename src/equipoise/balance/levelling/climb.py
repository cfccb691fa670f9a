"""Climbing: the single move that lowers the imbalance most, again and again, on arrays.

Plain arithmetic that can be compiled. The imbalance follows from the sums of the loads and of their
squares, so a move is judged without looking at any other host than its two. What was found for a
unit is kept until it is the best of all; only then it is looked at again, because what others do
meanwhile seldom makes a move better.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from equipoise.balance.levelling import worth
from equipoise.balance.levelling.field import (
    APART,
    CLOSED,
    COSTLY,
    CROWDED,
    FINE,
    FIXED,
    FORBIDDEN,
    FULL,
    HERE,
    SMALL,
    UNLIKE,
    USELESS,
    Field,
    Scale,
)
from equipoise.balance.levelling.worth import is_hopeless, is_worth_it, reliefs
from equipoise.place.imbalance import FULL as FULL_LOAD
from equipoise.place.water import NOBODY, Floats, Ints

NEARLY: Final = 0.97
"""What has come to be so much of the best is still taken for the best."""
SCARCE: Final = FULL_LOAD
LOOKS: Final = 4
"""How often everything is looked at in one climb."""
ROUNDING: Final = 1e-9
"""A gain of so little is none: only the last bits differ."""


class Climb(NamedTuple):
    """Which hosts are climbed on, how far, and the room to do it in."""

    hosts: Ints
    """The hosts that take part: between them units move."""
    units: Ints
    """The units on them."""
    target: float
    """At or below this imbalance it ends."""
    goodness: float
    """A move must gain this part of what is above the target, divided over the hosts ..."""
    relaxed_above: float
    """... or a tenth of it while the imbalance is so many times the target."""
    exact: bool
    """Whether everything is looked at again after each move."""
    tries: int
    """How many hosts are asked for each unit whether a move is worth it."""
    unit: Ints
    """The moves that were found: who, ..."""
    source: Ints
    host: Ints
    gain: Floats
    before: Floats
    """... and the imbalance before each of them."""


def has_room(field: Field, unit: int, host: int) -> bool:
    """Whether all that is reserved for a unit can be had on a host, and some of all it asks for.

    What is asked for where there is none would be missing from all sums, and so seem to be gained.
    """
    for resource in range(field.room.shape[1]):
        if field.load[unit, resource] > 0.0 and field.capacity[host, resource] == inf:
            return False
        need = field.reserved[unit, resource]
        if need > 0.0 and field.host_reserved[host, resource] + need > field.room[host, resource]:
            return False
    return True


def obstacle(field: Field, unit: int, host: int) -> int:
    """What keeps a unit from a host, whether or not that would be good; ``FINE`` if nothing."""
    if host == field.home[unit]:
        return HERE
    if field.open[host] == 0:
        return CLOSED
    if field.allowed[field.allowed_row[unit], host] == 0:
        return FORBIDDEN
    if field.vcpus[unit] > field.cores[host]:
        return SMALL
    if not has_room(field, unit, host):
        return FULL
    for place in range(field.group_first[unit], field.group_first[unit + 1]):
        group = field.group_of[place]
        for other in range(field.member_first[group], field.member_first[group + 1]):
            if field.home[field.member[other]] == host and field.member[other] != unit:
                return APART
    partner = field.partner[unit]
    if partner != NOBODY and field.kind[host] != field.kind[field.home[partner]]:
        return UNLIKE
    return FINE


def gains(field: Field, scale: Scale, unit: int, hosts: Ints, before: float, found: Floats) -> None:
    """By how much a unit's move to each host lowers the imbalance.

    The load of the source goes from ``a`` to ``a - x``, that of the target from ``b`` to ``b + y``.
    All is at hand here, and nobody is called: this is done for every pair of a unit and a host.
    """
    home, host_load, inverse, load = field.home[unit], field.host_load, field.inverse, field.load
    for place in range(len(hosts)):
        found[place] = before
    for resource in range(field.room.shape[1]):
        amount, part = load[unit, resource], 1.0 / max(1.0, scale.there[resource])
        x = amount * inverse[home, resource]
        a = host_load[home, resource] * inverse[home, resource]
        total_a = scale.sums[resource] - x
        square_a = scale.squares[resource] + x * (x - 2.0 * a)
        weight = scale.weight[resource]
        for place in range(len(hosts)):
            host = hosts[place]
            y = amount * inverse[host, resource]
            b = host_load[host, resource] * inverse[host, resource]
            total = total_a + y
            variance = (square_a + y * (y + 2.0 * b) - total * total * part) * part
            found[place] -= weight * sqrt(max(0.0, variance))


def measure(field: Field, scale: Scale, hosts: Ints) -> float:
    """Add up the loads of hosts, and give the imbalance by the weights that are given."""
    found = 0.0
    for resource in range(field.room.shape[1]):
        total, square, count = 0.0, 0.0, 0.0
        scale.small[resource], scale.large[resource] = inf, 1.0
        for place in range(len(hosts)):
            host = hosts[place]
            size = field.capacity[host, resource]
            if size == inf:
                continue
            load = field.host_load[host, resource] * field.inverse[host, resource]
            total, square, count = total + load, square + load * load, count + 1.0
            scale.small[resource] = min(scale.small[resource], size)
            scale.large[resource] = max(scale.large[resource], size)
        scale.sums[resource], scale.squares[resource] = total, square
        scale.there[resource] = count
        variance = (square - total * total / count) / count if count > 0.0 else 0.0
        if variance > 0.0:
            found += scale.weight[resource] * sqrt(variance)
    return found


def crowds(field: Field, scale: Scale, unit: int, host: int) -> bool:
    """Whether a move makes a resource scarce that was not.

    What is scarce counts more. If evening out one resource could make another one scarce, the next
    pass might undo it, and so on for ever.
    """
    for resource in range(field.room.shape[1]):
        load = field.host_load[host, resource] + field.load[unit, resource]
        if scale.tight[resource] == 0 and load * field.inverse[host, resource] > SCARCE:
            return True
    return False


def verdicts(
    field: Field, scale: Scale, unit: int, hosts: Ints, before: float, found: Floats
) -> Ints:
    """What speaks against the move of a unit to each host; what it would gain goes to ``found``."""
    codes = np.zeros(len(hosts), dtype=np.int64)
    gains(field, scale, unit, hosts, before, found)
    relieved = reliefs(field, unit)
    for place in range(len(hosts)):
        host, gain = hosts[place], found[place]
        against = FIXED if field.movable[unit] == 0 else obstacle(field, unit, host)
        if against == FINE and gain <= ROUNDING:
            against = USELESS
        if against == FINE and crowds(field, scale, unit, host):
            against = CROWDED
        if against == FINE and not is_worth_it(field, scale, unit, host, gain, relieved):
            against = COSTLY
        codes[place] = against
        if against in (HERE, FIXED):
            found[place] = 0.0
    return codes


def clear(field: Field, scale: Scale, unit: int, hosts: Ints, found: Floats) -> None:
    """Take the hosts out of the gains of a unit that it may not go to."""
    for place in range(len(hosts)):
        if found[place] > ROUNDING and (
            obstacle(field, unit, hosts[place]) != FINE or crowds(field, scale, unit, hosts[place])
        ):
            found[place] = 0.0


def best_host(
    field: Field, scale: Scale, unit: int, hosts: Ints, before: float, tries: int
) -> tuple[int, float]:
    """Where a unit should best go, and what that gains, or nobody.

    The most gainful host is asked first. If a move to so many is not worth it, it is not worth it
    to those where it gains less, which are mostly fuller.
    """
    if field.movable[unit] == 0:
        return NOBODY, 0.0
    found = np.empty(len(hosts))
    gains(field, scale, unit, hosts, before, found)
    place = int(np.argmax(found))
    if found[place] <= ROUNDING:
        return NOBODY, 0.0
    relieved = reliefs(field, unit)
    if is_hopeless(field, scale, unit, found[place], relieved):
        return NOBODY, 0.0
    for _ in range(tries):
        place = int(np.argmax(found))
        if found[place] <= ROUNDING:
            break
        if obstacle(field, unit, hosts[place]) != FINE or crowds(field, scale, unit, hosts[place]):
            clear(field, scale, unit, hosts, found)
            place = int(np.argmax(found))
            if found[place] <= ROUNDING:
                break
        if is_worth_it(field, scale, unit, hosts[place], found[place], relieved):
            return hosts[place], found[place]
        found[place] = 0.0
    return NOBODY, 0.0


def move(field: Field, unit: int, host: int) -> None:
    """Let a unit be on another host."""
    home = field.home[unit]
    for resource in range(field.room.shape[1]):
        field.host_load[home, resource] -= field.load[unit, resource]
        field.host_load[host, resource] += field.load[unit, resource]
        field.host_want[home, resource] -= field.want[unit, resource]
        field.host_want[host, resource] += field.want[unit, resource]
        field.host_least[home, resource] -= field.least[unit, resource]
        field.host_least[host, resource] += field.least[unit, resource]
        field.host_most[home, resource] -= field.most[unit, resource]
        field.host_most[host, resource] += field.most[unit, resource]
        field.host_reserved[home, resource] -= field.reserved[unit, resource]
        field.host_reserved[host, resource] += field.reserved[unit, resource]
    field.home[unit] = host


def least_gain(climb: Climb, before: float) -> float:
    """What a move must gain to be good enough, if this is the imbalance."""
    left = before - climb.target
    least = climb.goodness * left / max(1, len(climb.hosts))
    return least / 10.0 if before > climb.relaxed_above * climb.target else least


def look(field: Field, scale: Scale, climb: Climb, before: float, keys: Floats) -> None:
    """Note for every unit how good its best move is, times the imbalance.

    Gains grow as the imbalance falls; the product stays about the same, so that old figures can be
    compared with new ones.
    """
    for place in range(len(climb.units)):
        _, gain = best_host(field, scale, climb.units[place], climb.hosts, before, climb.tries)
        keys[place] = gain * before


def best_unit(
    field: Field, scale: Scale, climb: Climb, before: float, keys: Floats
) -> tuple[int, int, float]:
    """The place of the unit that should move, where to, and what that gains.

    The best by what is noted is looked at again, and taken if it is still about as good as it was:
    none of the others can be much better.
    """
    while True:
        place = int(np.argmax(keys))
        if keys[place] <= 0.0:
            return NOBODY, NOBODY, 0.0
        host, gain = best_host(field, scale, climb.units[place], climb.hosts, before, climb.tries)
        noted, keys[place] = keys[place], gain * before
        if gain > 0.0 and gain * before >= (1.0 if climb.exact else NEARLY) * noted:
            return place, host, gain


def pressed(field: Field, scale: Scale, host: int) -> bool:
    """Whether a host is loaded more than the mean, all resources weighed together."""
    above = 0.0
    for resource in range(len(scale.sums)):
        load = field.host_load[host, resource] * field.inverse[host, resource]
        above += scale.weight[resource] * (
            load - scale.sums[resource] / max(1.0, scale.there[resource])
        )
    return above > 0.0


def note(
    field: Field, scale: Scale, climb: Climb, moved: tuple[int, int, float], keys: Floats
) -> None:
    """After a move, note what has become better: leaving the one host, going to the other.

    Where a host is still on its side of the mean, little that matters has become better; what was
    overlooked is found when all is looked at again.
    """
    left, entered, before = moved
    fuller, emptier = pressed(field, scale, entered), not pressed(field, scale, left)
    if not fuller and not emptier:
        return
    there, high = np.full(1, left), np.zeros(len(field.open), dtype=np.int64)
    for place in range(len(climb.hosts)):
        high[climb.hosts[place]] = pressed(field, scale, climb.hosts[place])
    for place in range(len(climb.units)):
        unit = climb.units[place]
        home = field.home[unit]
        if high[home] == 0 or field.movable[unit] == 0:
            continue
        if fuller and home == entered:
            _, gain = best_host(field, scale, unit, climb.hosts, before, climb.tries)
            keys[place] = max(keys[place], gain * before)
        elif emptier:
            _, gain = best_host(field, scale, unit, there, before, climb.tries)
            keys[place] = max(keys[place], gain * before)


def run(field: Field, scale: Scale, climb: Climb) -> int:
    """Take the best move there is, until none is good enough; say how many were taken.

    Once everything has been looked at a few times, what little is left waits for the next pass.
    """
    found, fresh, looks = 0, False, 0
    keys = np.zeros(len(climb.units))
    while found < len(climb.unit) and len(climb.units) > 0:
        before = measure(field, scale, climb.hosts)
        if before <= climb.target:
            break
        if climb.exact or looks == 0:
            look(field, scale, climb, before, keys)
            fresh, looks = True, looks + 1
        place, host, gain = best_unit(field, scale, climb, before, keys)
        if place == NOBODY or gain < least_gain(climb, before):
            if fresh or looks >= LOOKS:
                break
            look(field, scale, climb, before, keys)
            fresh, looks = True, looks + 1
            continue
        unit = climb.units[place]
        home = field.home[unit]
        climb.unit[found], climb.source[found], climb.host[found] = unit, home, host
        climb.gain[found], climb.before[found] = gain, before
        found += 1
        move(field, unit, host)
        field.movable[unit], keys[place], fresh = 0, 0.0, False
        if not climb.exact:
            note(field, scale, climb, (home, host, measure(field, scale, climb.hosts)), keys)
    return found


FUNCTIONS: Final[tuple[Any, ...]] = (
    has_room,
    obstacle,
    *worth.FUNCTIONS,
    gains,
    measure,
    crowds,
    verdicts,
    clear,
    best_host,
    move,
    least_gain,
    look,
    best_unit,
    pressed,
    note,
    run,
)
"""Callee before caller, for ``Kernels``."""
INNER: Final[tuple[Any, ...]] = (*worth.FUNCTIONS, has_room, obstacle, gains, crowds)
"""Those that are asked for each pair of a unit and a host."""
DOORS: Final[tuple[Any, ...]] = (run, measure, verdicts)
"""Those that are called from outside; a single move is made sooner as it stands."""
