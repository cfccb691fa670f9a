"""The field that is climbed on: units and hosts as arrays, one column for each resource.

What moves is a *unit*: a VM, or the VMs of a rule that keeps them together. CPU is the first column
and memory the second; then come the shareable resources that hosts offer by name.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from equipoise.place.water import Floats, Ints

FINE: Final = 0
HERE: Final = 1
FIXED: Final = 2
CLOSED: Final = 3
FORBIDDEN: Final = 4
SMALL: Final = 5
FULL: Final = 6
APART: Final = 7
UNLIKE: Final = 8
USELESS: Final = 9
COSTLY: Final = 10
CROWDED: Final = 11


class Weighing(NamedTuple):
    """What a move must be worth."""

    cost_benefit: bool
    spread: float
    evenness: float
    horizon_s: float
    migration_cpu_mhz: float
    slowdown: float


class Field(NamedTuple):
    """Units and hosts; the figures of hosts change while units move."""

    home: Ints
    """Per unit: the row of its host, ..."""
    movable: Ints
    allowed_row: Ints
    vcpus: Ints
    partner: Ints
    """... the unit of the other half of a fault-tolerant pair, ..."""
    move_s: Floats
    load: Floats
    """... what it deserves of each resource, ..."""
    want: Floats
    """... asks for now, ..."""
    least: Floats
    """... asked for at the least, ..."""
    most: Floats
    """... and at the most within the last hour, ..."""
    reserved: Floats
    """... and what is reserved for it."""
    open: Ints
    """Per host: whether units may come, ..."""
    cores: Ints
    kind: Ints
    """... which hosts are like it, for fault-tolerant pairs, ..."""
    stable_s: Floats
    """... how long its demand has stayed about the same, ..."""
    room: Floats
    """... what can be reserved of each resource, ..."""
    capacity: Floats
    """... what it has to give: infinite where it has none, so that it never matters, ..."""
    inverse: Floats
    """... one by that, ..."""
    host_load: Floats
    host_want: Floats
    host_least: Floats
    host_most: Floats
    host_reserved: Floats
    """... and the sums of its units."""
    allowed: Ints
    """Which hosts the rules allow: one row per set of rules, the first allows all."""
    group_of: Ints
    """The groups of units that must not share a host; those of unit u from ``group_first[u]`` to
    ``group_first[u + 1]``."""
    group_first: Ints
    member: Ints
    """The units of each group, likewise."""
    member_first: Ints
    weighing: Weighing


class Scale(NamedTuple):
    """The loads of the hosts that take part, added up for each resource."""

    sums: Floats
    squares: Floats
    there: Floats
    """How many hosts have any of it."""
    weight: Floats
    """How much each counts, by what is scarce at the beginning of the pass, ..."""
    tight: Ints
    """... and whether it is scarce then."""
    small: Floats
    """What the smallest of them has, ..."""
    large: Floats
    """... and the largest."""
