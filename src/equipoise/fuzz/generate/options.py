"""What trials are like: how many hosts and VMs, in which states, and what happens to them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.host import HostState
from equipoise.model.problem.network import Mbps
from equipoise.model.problem.problem import ActionKind
from equipoise.model.value import FrozenMap, Value
from equipoise.model.vm import VmState

Count = Annotated[int, Meta(ge=0, le=10_000)]
Part = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[int, Meta(ge=0, le=10_000)]
Span = tuple[Count, Count]
"""From the least to the most, both included."""
Switches = Annotated[int, Meta(ge=1, le=32)]
Speeds = tuple[Mbps, Mbps]
"""From the least to the most, in multiples of the least: so several often just fit into one."""


class Plans(StrEnum):
    """What plans there are."""

    CAREFUL = "careful"
    """Drawn such that machines can carry them out."""
    REJECTED = "rejected"
    """Drawn anyhow, and drawn anew if machines could not carry them out."""
    ANY = "any"
    """Drawn anyhow: some of them, machines could not carry out."""


class Amounts(Value):
    """A resource besides CPU and memory."""

    capacity: Span = (0, 10)
    consumption: Span = (0, 1)
    offered: Part = 0.9
    """How many of the hosts have it at all; of the others nobody says what they have."""


class Wires(Value):
    """A network: every host has a link to a switch, every switch but the first to one before it.

    So there are stars, chains and trees, and with a few more links there are circles and twins.
    """

    switches: tuple[Switches, Switches] = (1, 3)
    hosts_mbps: Speeds = (2_000, 10_000)
    """What the links of hosts carry. A VM of 1 GiB takes 4.3 s at 2,000 Mbit/s ..."""
    trunks_mbps: Speeds = (2_000, 10_000)
    """... and what those between switches do."""
    limited: Part = 0.3
    """How many of the switches have a limit of their own ..."""
    switches_mbps: Speeds = (2_000, 20_000)
    """... and what goes through such a one."""
    detours: Part = 0.2
    """How many of the switches have a second link to one before them, perhaps to the same."""
    hurried: Part = 0.2
    """How many migrations may end too soon for what is copied; of careful plans, none."""


class Options(Value):
    """The ranges from which chance draws."""

    hosts: Span = (1, 5)
    vms: Span = (0, 6)
    host_states: Mapping[HostState, Weight] = FrozenMap(
        {HostState.ON: 18, HostState.STANDBY: 3, HostState.MAINTENANCE: 1}
    )
    vm_states: Mapping[VmState, Weight] = FrozenMap(
        {VmState.RUNNING: 14, VmState.READY: 3, VmState.SLEEPING: 2, VmState.INIT: 1}
    )
    overfull: Part = 0.05
    """How many of the hosts have less of their resources than VMs take there already."""
    agents: Part = 0.03
    """How many of the VMs belong to their host; nothing happens to them by themselves."""
    paired: Part = 0.05
    """How many of the VMs are the other half of the one before them."""
    replaceable: Part = 0.1
    """How many of the VMs may be made anew instead of being moved."""
    actions: Span = (0, 3)
    """How many actions a VM may have, one after the other."""
    end_states: Mapping[VmState, Weight] = FrozenMap(
        {VmState.RUNNING: 14, VmState.READY: 2, VmState.SLEEPING: 2, VmState.TERMINATED: 1}
    )
    """Into which state an action leads, where there is a choice."""
    total: Span | None = None
    """How many actions a plan has in all; as many as come together, if nothing is said."""
    kinds: frozenset[ActionKind] = frozenset(ActionKind)
    """Which actions there are."""
    plans: Plans = Plans.CAREFUL
    allocated: Part = 0.1
    """How many of those who stay where they are get another amount of something."""
    switched: Part = 0.1
    """How many of the hosts are switched on or off, if they can be."""
    seconds: Span = (1, 4)
    """How long actions take."""
    waits: Span = (0, 1)
    """How many seconds pass before an action: few, so that many begin or end together."""
    meets: Part = 0.6
    """How often a VM goes where something happens already, if it can."""
    resources: Mapping[str, Amounts] = FrozenMap({"licences": Amounts()})
    network: Wires | None = None
    """What migrations go through; without one, nobody asks how fast they are."""
    labels: Mapping[str, tuple[str, ...]] = FrozenMap(
        {"zone": ("a", "b"), "rack": ("a", "b"), "flavor": ("a", "b")}
    )
    """Which labels hosts and VMs may have, with the values there are."""
    labelled: Part = 0.5
    """How many of those labels there are."""
    tenants: tuple[str, ...] = ("a", "b")
    owned: Part = 0.7
    """How many of the VMs have a tenant."""
    busy: Part = 0.5
    """How often a single VM or host is one that something happens to, if there is one."""
    unusual: Part = 0.3
    """How many arguments are unusual: empty, a single one, or all there are."""
    given: Mapping[str, tuple[str | int, ...]] = {}
    """Values for single arguments that are numbers or words, by their names."""
    continuous: bool | None = None
    """Whether every moment counts; if nothing is said and the constraint has both, mostly."""
    broken_at_first: bool | None = None
    """Whether the constraint is broken before the plan begins; by chance, if nothing is said."""


USUAL: Final = Options()
