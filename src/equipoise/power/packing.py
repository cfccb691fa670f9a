"""Packing: what if a host were emptied, or one came to help? Plain arithmetic, can be compiled.

A unit goes to the first host that can bear it, those first that will sleep last: so some hosts
become full, instead of all of them a little busier, and others empty. To bear means that what a
host is then expected to need stays within what hosts should use, by every span that counts.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Final, NamedTuple

from equipoise.balance.levelling.climb import has_room, move, obstacle
from equipoise.balance.levelling.field import FINE, Field
from equipoise.place.compiled import Kernels
from equipoise.place.water import NOBODY, Ints
from equipoise.power.demand import Asked

PATIENCE: Final = 256


class Packing(NamedTuple):
    """Who is to go where, and the room to write it down."""

    units: Ints
    """Those who leave, in the order in which they look for a place."""
    hosts: Ints
    """Where they may go, the most wanted first."""
    part: float
    """Which part of a host may be used."""
    spans: Ints
    """The spans that count."""
    target: Ints
    """Where each of them goes."""


def need(asked: Asked, span: int, host: int, unit: int, resource: int) -> float:
    """What a host is expected to need by a span if a unit comes; nobody is no unit."""
    begin, end = asked.first[span], asked.first[span + 1]
    total, count = 0.0, end - begin
    for at in range(begin, end):
        total += asked.hosts[at, host, resource]
        if unit != NOBODY:
            total += asked.units[at, unit, resource]
    mean: float = total / count
    if count == 1:
        return mean
    square = 0.0
    for at in range(begin, end):
        off = asked.hosts[at, host, resource] - mean
        if unit != NOBODY:
            off += asked.units[at, unit, resource]
        square += off * off
    deviation: float = asked.deviations[span] * sqrt(square / count)
    return mean + deviation


def bears(field: Field, asked: Asked, packing: Packing, host: int, unit: int) -> bool:
    """Whether a host has enough for all it is expected to need, with a unit that may come."""
    for resource in range(asked.hosts.shape[2]):
        most = packing.part * field.capacity[host, resource]
        for place in range(len(packing.spans)):
            if need(asked, packing.spans[place], host, unit, resource) > most:
                return False
    return True


def shift(field: Field, asked: Asked, unit: int, host: int) -> None:
    """Let a unit be on another host."""
    home = field.home[unit]
    for at in range(len(asked.units)):
        for resource in range(asked.units.shape[2]):
            asked.hosts[at, home, resource] -= asked.units[at, unit, resource]
            asked.hosts[at, host, resource] += asked.units[at, unit, resource]
    move(field, unit, host)


def pack(field: Field, asked: Asked, packing: Packing) -> int:
    """Let units go, each to the first host that bears it; say how many did before one could not."""
    for place in range(len(packing.units)):
        unit, found = packing.units[place], NOBODY
        for choice in range(len(packing.hosts)):
            host = packing.hosts[choice]
            if obstacle(field, unit, host) == FINE and bears(field, asked, packing, host, unit):
                found = host
                break
        packing.target[place] = found
        if found == NOBODY:
            return place
        shift(field, asked, unit, found)
    return len(packing.units)


def fullness(field: Field, asked: Asked, packing: Packing, host: int, unit: int) -> float:
    """What part of a host would be needed with a unit, of CPU or memory, whichever is more."""
    most = 0.0
    for resource in range(asked.hosts.shape[2]):
        for place in range(len(packing.spans)):
            part = need(asked, packing.spans[place], host, unit, resource)
            most = max(most, part * field.inverse[host, resource])
    return most


def spread(field: Field, asked: Asked, packing: Packing) -> int:
    """Let units go, each to the host that is then the least full; say how many could."""
    for place in range(len(packing.units)):
        unit, found, least = packing.units[place], NOBODY, packing.part
        for choice in range(len(packing.hosts)):
            host = packing.hosts[choice]
            if obstacle(field, unit, host) == FINE:
                full = fullness(field, asked, packing, host, unit)
                if full < least:
                    found, least = host, full
        packing.target[place] = found
        if found == NOBODY:
            return place
        shift(field, asked, unit, found)
    return len(packing.units)


def relieve(field: Field, asked: Asked, packing: Packing) -> None:
    """Let units go while their host has too much to do, each to the first that bears it.

    Once so many in a row were borne by nobody, those who could help are full.
    """
    refused = 0
    for place in range(len(packing.units)):
        unit = packing.units[place]
        if bears(field, asked, packing, field.home[unit], NOBODY):
            continue
        refused += 1
        for choice in range(len(packing.hosts)):
            host = packing.hosts[choice]
            if obstacle(field, unit, host) == FINE and bears(field, asked, packing, host, unit):
                packing.target[place] = host
                shift(field, asked, unit, host)
                refused = 0
                break
        if refused >= PATIENCE:
            return


def unpack(field: Field, asked: Asked, units: Ints, homes: Ints) -> None:
    """Let units be where they were."""
    for place in range(len(units)):
        if field.home[units[place]] != homes[place]:
            shift(field, asked, units[place], homes[place])


FUNCTIONS: Final[tuple[Any, ...]] = (
    has_room,
    obstacle,
    move,
    need,
    bears,
    shift,
    pack,
    fullness,
    spread,
    relieve,
    unpack,
)
"""Callee before caller, for ``Kernels``."""
KERNELS: Final = Kernels(
    *FUNCTIONS, inline=(has_room, obstacle, need), doors=(pack, spread, relieve, unpack)
)
