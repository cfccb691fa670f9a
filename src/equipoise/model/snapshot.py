"""The snapshot: everything known about the cluster at one moment, frozen."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

from equipoise.model.host import Host
from equipoise.model.inventory import Inventory, Settings
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.roles.duty import Duties
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Demand, Vm

if TYPE_CHECKING:  # NumPy takes a third of the start-up budget, so only who asks for columns pays
    from equipoise.model.columns import Columns

HISTORY_MS = 60 * 60 * 1000
"""How long demand is remembered: the last hour, which is what the deciders look back on."""


class Running(NamedTuple):
    """An action that was started and has not ended."""

    step: Step
    attempt: int
    started_ms: int


class LastMove(NamedTuple):
    """The last migration of a VM."""

    ended_ms: int
    source: HostId
    target: HostId
    mib_per_s: float
    """Its memory by the time it took: what rounds of copying cost is in it."""


class LastSwitch(NamedTuple):
    """The last time somebody wanted a host to wake, or to sleep."""

    ended_ms: int
    on: bool
    failed: bool

    @property
    def failed_to_wake(self) -> bool:
        """Whether it was to wake, and did not."""
        return self.on and self.failed


@dataclass(frozen=True, slots=True)
class DemandFrame:
    """The demand of all VMs as one observation left it."""

    at_ms: int
    demand: FrozenMap[VmId, Demand]


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The cluster at one moment. Every step of a pass reads this one value."""

    version: int = 0
    """How many events have led here; equals the length of the journal."""
    at_ms: int = 0
    name: str = "cluster"
    hosts: FrozenMap[HostId, Host] = field(default_factory=FrozenMap)
    vms: FrozenMap[VmId, Vm] = field(default_factory=FrozenMap)
    settings: Settings = field(default_factory=Settings)
    in_flight: FrozenMap[StepId, Running] = field(default_factory=FrozenMap)
    history: tuple[DemandFrame, ...] = ()
    """The observations of the last hour, oldest first."""
    moves: FrozenMap[VmId, LastMove] = field(default_factory=FrozenMap)
    """The last migration of each VM that has moved since the cluster was loaded."""
    switches: FrozenMap[HostId, LastSwitch] = field(default_factory=FrozenMap)
    """How the last waking or putting to sleep of each host went."""
    duties: Duties = field(default_factory=Duties)
    """Who fills which slot, and who runs which role."""

    @classmethod
    def of(cls, inventory: Inventory, *, at_ms: int = 0, version: int = 0) -> Self:
        """Make the snapshot that an inventory describes."""
        return cls(
            version=version,
            at_ms=at_ms,
            name=inventory.name,
            hosts=FrozenMap({host.id: host for host in inventory.hosts}),
            vms=FrozenMap({vm.id: vm for vm in inventory.vms}),
            settings=Settings(
                **{name: getattr(inventory, name) for name in Settings.__struct_fields__}
            ),
        )

    def inventory(self) -> Inventory:
        """Describe the cluster as a file would: the opposite of ``Snapshot.of``."""
        return Inventory(
            name=self.name,
            hosts=tuple(self.hosts.values()),
            vms=tuple(self.vms.values()),
            **{name: getattr(self.settings, name) for name in Settings.__struct_fields__},
        )

    @cached_property
    def placement(self) -> FrozenMap[VmId, HostId]:
        """Where each VM runs or sleeps; VMs without a host are not in it."""
        return FrozenMap({vm.id: vm.host for vm in self.vms.values() if vm.host is not None})

    @cached_property
    def residents(self) -> FrozenMap[HostId, tuple[VmId, ...]]:
        """The VMs that run or sleep on each host, in the order of the VMs."""
        lists: dict[HostId, list[VmId]] = {host: [] for host in self.hosts}
        for vm, host in self.placement.items():
            lists[host].append(vm)
        return FrozenMap({host: tuple(vms) for host, vms in lists.items()})

    @cached_property
    def columns(self) -> Columns:
        """The same facts as NumPy arrays, built once, for the kernels."""
        from equipoise.model.columns import Columns  # noqa: PLC0415  (see the top)

        return Columns.of(self)
