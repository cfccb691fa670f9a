"""What trials are like: how many hosts and VMs, in which states, and what happens to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.host import HostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.value import FrozenMap, Value
from equipoise.model.vm import VmState

Count = Annotated[int, Meta(ge=0, le=10_000)]
Part = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[int, Meta(ge=0, le=10_000)]
Span = tuple[Count, Count]
"""From the least to the most, both included."""


class Amounts(Value):
    """A resource besides CPU and memory."""

    capacity: Span = (0, 8)
    consumption: Span = (0, 2)
    offered: Part = 0.9
    """How many of the hosts have it at all; of the others nobody says what they have."""


class Options(Value):
    """The ranges from which chance draws."""

    hosts: Span = (1, 4)
    vms: Span = (0, 5)
    host_states: Mapping[HostState, Weight] = FrozenMap({HostState.ON: 8, HostState.STANDBY: 2})
    vm_states: Mapping[VmState, Weight] = FrozenMap(
        {VmState.RUNNING: 12, VmState.READY: 4, VmState.SLEEPING: 3, VmState.INIT: 1}
    )
    actions: Span = (0, 3)
    """How many actions a VM may have, one after the other."""
    end_states: Mapping[VmState, Weight] = FrozenMap(
        {VmState.RUNNING: 10, VmState.READY: 2, VmState.SLEEPING: 2, VmState.TERMINATED: 1}
    )
    """Into which state an action leads, where there is a choice."""
    total: Span | None = None
    """How many actions a plan has in all; as many as come together, if nothing is said."""
    kinds: frozenset[ActionKind] = frozenset(ActionKind)
    """Which actions there are."""
    switched: Part = 0.15
    """How many of the hosts are switched on or off, if they can be."""
    seconds: Span = (1, 4)
    """How long actions take."""
    waits: Span = (0, 1)
    """How many seconds pass before an action: few, so that many begin or end together."""
    resources: Mapping[str, Amounts] = FrozenMap({"licences": Amounts()})
    labels: Mapping[str, tuple[str, ...]] = FrozenMap(
        {"zone": ("a", "b"), "rack": ("a", "b"), "flavor": ("a", "b")}
    )
    """Which labels hosts and VMs may have, with the values there are."""
    labelled: Part = 0.5
    """How many of those labels there are."""
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
