"""The snapshot: everything known about the cluster at one moment, frozen."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

from equipoise.model.host import Host
from equipoise.model.inventory import ClusterSettings, Inventory
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.roles.state import RoleState
from equipoise.model.state.move_record import DemandPair, FailedMoves, LastMove, MoveSpeeds
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Demand, Vm

HISTORY_MS = 60 * 60 * 1000
"""Length of the demand history: the last hour, the longest window of the deciders."""


class RunningAction(NamedTuple):
    """An action that has started and has not ended."""

    step: Step
    attempt: int
    started_ms: int
    sharing: int = 1
    """For a migration: how many shared the busier of its links when it started."""


class LastPowerChange(NamedTuple):
    """The last power-on or power-off of a host."""

    ended_ms: int
    on: bool
    """Whether it was a power-on."""
    failed: bool

    @property
    def power_on_failed(self) -> bool:
        """Whether it was a power-on that failed."""
        return self.on and self.failed


@dataclass(frozen=True, slots=True)
class DemandSample:
    """The demand of all VMs after one observation."""

    at_ms: int
    demand: FrozenMap[VmId, Demand]


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The cluster at one moment. All steps of a pass read the same snapshot."""

    version: int = 0
    """The number of events that led to this state; equals the length of the journal."""
    at_ms: int = 0
    name: str = "cluster"
    hosts: FrozenMap[HostId, Host] = field(default_factory=FrozenMap)
    vms: FrozenMap[VmId, Vm] = field(default_factory=FrozenMap)
    settings: ClusterSettings = field(default_factory=ClusterSettings)
    in_flight: FrozenMap[StepId, RunningAction] = field(default_factory=FrozenMap)
    history: tuple[DemandSample, ...] = ()
    """The observations of the last hour, oldest first."""
    moves: FrozenMap[VmId, LastMove] = field(default_factory=FrozenMap)
    """The last migration of each VM since the cluster was loaded."""
    failed_moves: FrozenMap[VmId, FailedMoves] = field(default_factory=FrozenMap)
    """The migrations of each VM that failed since its last success."""
    changed_ms: int = 0
    """When a host, a VM or a setting last changed for another reason than a move or the power of a
    host: an outside event after which VMs that have moved may move again."""
    demand_total: DemandPair | None = None
    """What all VMs asked for at the last observation."""
    contended: FrozenMap[str, int] = field(default_factory=FrozenMap)
    """When balance last found too little of a resource on some host."""
    moves_seen: FrozenMap[VmId, tuple[HostId, int]] = field(default_factory=FrozenMap)
    """Where the last pass of balance would move each VM, and how many passes in a row would; only
    with ``passes_seen`` in the policy."""
    switches: FrozenMap[HostId, LastPowerChange] = field(default_factory=FrozenMap)
    """The last power-on or power-off of each host."""
    role_state: RoleState = field(default_factory=RoleState)
    """The processors of the slots, and the roles that they run."""

    @classmethod
    def of(cls, inventory: Inventory, *, at_ms: int = 0, version: int = 0) -> Self:
        """Return the snapshot that an inventory describes."""
        return cls(
            version=version,
            at_ms=at_ms,
            name=inventory.name,
            hosts=FrozenMap({host.id: inventory.overcommitted(host) for host in inventory.hosts}),
            vms=FrozenMap({vm.id: vm for vm in inventory.vms}),
            settings=ClusterSettings(
                **{name: getattr(inventory, name) for name in ClusterSettings.__struct_fields__}
            ),
        )

    def inventory(self) -> Inventory:
        """Return the inventory of this state: the inverse of ``Snapshot.of``.

        Its hosts state their factors of overcommitment.
        """
        return Inventory(
            name=self.name,
            hosts=tuple(self.hosts.values()),
            vms=tuple(self.vms.values()),
            **{name: getattr(self.settings, name) for name in ClusterSettings.__struct_fields__},
        )

    @cached_property
    def placement(self) -> FrozenMap[VmId, HostId]:
        """The host of each VM, without the VMs that have none."""
        return FrozenMap({vm.id: vm.host for vm in self.vms.values() if vm.host is not None})

    @cached_property
    def move_speeds(self) -> MoveSpeeds:
        """What the migrations so far say of the speed of the next ones."""
        return MoveSpeeds(self.moves, self.failed_moves, self.settings.limits.parallel_migrations)

    @cached_property
    def residents(self) -> FrozenMap[HostId, tuple[VmId, ...]]:
        """The VMs that run or sleep on each host, in the order of the VMs."""
        vms_of: dict[HostId, list[VmId]] = {host: [] for host in self.hosts}
        for vm, host in self.placement.items():
            vms_of[host].append(vm)
        return FrozenMap({host: tuple(vms) for host, vms in vms_of.items()})
