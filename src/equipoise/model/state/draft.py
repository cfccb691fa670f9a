"""A draft: a private, writable copy of a snapshot.

Each map is copied on its first write: a draft that changes one VM costs one copy of one map, and
a draft that applies a thousand events costs no more. ``freeze`` returns the snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from equipoise.model.action import Migrate
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import ClusterSettings
from equipoise.model.quantity import HostId, ProcessorId, RoleGroupId, SlotId, StepId, VmId
from equipoise.model.roles.state import (
    INITIAL_STATUS,
    GroupRole,
    ProcessorStatus,
    RoleFailures,
    RoleInstance,
    RoleState,
    layout_index,
)
from equipoise.model.state.move_record import DemandPair, FailedMoves, LastMove, with_earlier
from equipoise.model.state.snapshot import (
    DemandSample,
    LastPowerChange,
    RunningAction,
    Snapshot,
)
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Demand, Vm, VmState


class RoleStateDraft:
    """A writable copy of a ``RoleState``."""

    def __init__(self, base: RoleState) -> None:
        self.epoch = base.epoch
        self.held = base.held
        self.slots = base.slots
        self.statuses = base.statuses
        self.failures = base.failures
        self.pins = base.pins
        self._own: set[str] = set()
        self._frozen: RoleState | None = base

    def freeze(self) -> RoleState:
        """Return the role state. The draft stays usable and copies a map before its next write."""
        if self._frozen is None:
            self._frozen = RoleState(
                self.epoch, self.held, self.slots, self.statuses, self.failures, self.pins
            )
            self._own.clear()
        return self._frozen

    def raise_epoch(self, epoch: int) -> None:
        """Set the epoch of the leader, unless a higher one is known."""
        if epoch > self.epoch:
            self.epoch, self._frozen = epoch, None

    def status(self, processor: ProcessorId) -> ProcessorStatus:
        """Return the status of a processor."""
        status: ProcessorStatus = self.statuses.get(processor, INITIAL_STATUS)
        return status

    def put_status(self, processor: ProcessorId, status: ProcessorStatus) -> None:
        """Set the status of a processor."""
        if self.statuses.get(processor) != status:
            self.statuses, self._frozen = self.statuses.put(processor, status), None

    def add_held(self, processor: ProcessorId, group_role: GroupRole) -> None:
        """Add a running role to a processor."""
        roles = self.held.get(processor, ())
        if group_role not in roles:
            self.put_held(processor, (*roles, group_role))

    def remove_held(self, processor: ProcessorId, group_role: GroupRole) -> None:
        """Remove a running role from a processor."""
        roles = self.held.get(processor, ())
        if group_role in roles:
            self.put_held(processor, tuple(role for role in roles if role != group_role))

    def put_held(self, processor: ProcessorId, roles: tuple[GroupRole, ...]) -> None:
        """Set the running roles of a processor."""
        if self.held.get(processor, ()) != roles:
            held = self.held.put(processor, roles) if roles else self.held.drop(processor)
            self.held, self._frozen = held, None

    def power_changed(self, processor: ProcessorId, *, up: bool, at_ms: int) -> None:
        """Apply that a processor came up or went down: it runs no roles now.

        The lock of the operator stays. Failures are cleared when the processor comes up.
        """
        locked = self.status(processor).locked
        self.put_status(processor, ProcessorStatus(since_ms=at_ms, locked=locked))
        self.put_held(processor, ())
        if up:
            self.clear_failures(processor)

    def clear_failures(self, processor: ProcessorId) -> None:
        """Clear the failures of all roles on a processor."""
        for instance in [instance for instance in self.failures if instance.processor == processor]:
            self._erase("failures", instance)

    def add_failure(self, instance: RoleInstance, at_ms: int) -> None:
        """Count a failed start or stop of a role."""
        before = self.failures.get(instance)
        times = 1 if before is None else before.times + 1
        self._write("failures", instance, RoleFailures(times, at_ms))

    def clear_failure(self, instance: RoleInstance) -> None:
        """Clear the failures of a role on a processor."""
        if instance in self.failures:
            self._erase("failures", instance)

    def assign_slots(self, group: RoleGroupId, slots: Mapping[SlotId, ProcessorId]) -> None:
        """Set the processors of the slots of a group."""
        self._write("slots", group, FrozenMap(slots))

    def drop_group(self, group: RoleGroupId) -> None:
        """Remove a group. Its running roles stay until they are stopped."""
        if group in self.slots:
            self._erase("slots", group)
        for instance in [instance for instance in self.failures if instance.group == group]:
            self._erase("failures", instance)

    def pin(self, group_role: GroupRole, slot: SlotId | None) -> None:
        """Pin a role to a slot, or remove its pin."""
        if slot is not None:
            self._write("pins", group_role, slot)
        elif group_role in self.pins:
            self._erase("pins", group_role)

    def drop_processor(self, processor: ProcessorId) -> None:
        """Remove the status of a processor that belongs to no group."""
        if processor in self.statuses:
            self.statuses, self._frozen = self.statuses.drop(processor), None

    def _write(self, name: str, key: Any, value: Any) -> None:
        dict.__setitem__(self._owned(name), key, value)

    def _erase(self, name: str, key: Any) -> None:
        dict.__delitem__(self._owned(name), key)

    def _owned(self, name: str) -> FrozenMap[Any, Any]:
        """Return a map that this draft may write, after copying it on its first write."""
        self._frozen = None
        if name not in self._own:
            setattr(self, name, FrozenMap(getattr(self, name)))
            self._own.add(name)
        owned: FrozenMap[Any, Any] = getattr(self, name)
        return owned


class TouchedEntities(NamedTuple):
    """The VMs and hosts that changes have touched, which readers have to check again."""

    vms: tuple[VmId, ...]
    hosts: tuple[HostId, ...]


class Draft:
    """The writable state that ``transition`` changes. It collects the touched VMs and hosts."""

    def __init__(self, base: Snapshot) -> None:
        self.version = base.version
        self.at_ms = base.at_ms
        self.name = base.name
        self.settings: ClusterSettings = base.settings
        self.history: tuple[DemandSample, ...] = base.history
        self.hosts: FrozenMap[HostId, Host] = base.hosts
        self.vms: FrozenMap[VmId, Vm] = base.vms
        self.in_flight: FrozenMap[StepId, RunningAction] = base.in_flight
        self.moves: FrozenMap[VmId, LastMove] = base.moves
        self.failed_moves: FrozenMap[VmId, FailedMoves] = base.failed_moves
        self.changed_ms = base.changed_ms
        self.demand_total: DemandPair | None = base.demand_total
        self.contended: FrozenMap[str, int] = base.contended
        self.moves_seen: FrozenMap[VmId, tuple[HostId, int]] = base.moves_seen
        self.switches: FrozenMap[HostId, LastPowerChange] = base.switches
        self.role_state = RoleStateDraft(base.role_state)
        self._owns_hosts = self._owns_vms = self._owns_in_flight = self._owns_moves = False
        self._residents: dict[HostId, dict[VmId, None]] | None = None
        self._running_vms: dict[HostId, frozenset[VmId]] = {}
        self._by_vm: dict[VmId, dict[StepId, RunningAction]] = {}
        self._by_host: dict[HostId, dict[StepId, RunningAction]] = {}
        for running in self.in_flight.values():
            self._index(running)
        # Dicts, not sets: readers go over them, and the order of a set differs between processes.
        self.touched_vms: dict[VmId, None] = {}
        self.touched_hosts: dict[HostId, None] = {}
        self.membership_version = 0
        """Increases whenever a VM or a host is added or removed."""
        self._vm_names: frozenset[VmId] | None = None
        self._host_names: frozenset[HostId] | None = None
        self._names_of = 0

    def freeze(self) -> Snapshot:
        """Return the snapshot. The draft stays usable and copies a map before its next write."""
        self._owns_hosts = self._owns_vms = self._owns_in_flight = self._owns_moves = False
        return Snapshot(
            version=self.version,
            at_ms=self.at_ms,
            name=self.name,
            hosts=self.hosts,
            vms=self.vms,
            settings=self.settings,
            in_flight=self.in_flight,
            history=self.history,
            moves=self.moves,
            failed_moves=self.failed_moves,
            changed_ms=self.changed_ms,
            demand_total=self.demand_total,
            contended=self.contended,
            moves_seen=self.moves_seen,
            switches=self.switches,
            role_state=self.role_state.freeze(),
        )

    def vm_names(self) -> frozenset[VmId]:
        """Return the ids of all VMs; the set is cached until a VM or host is added or removed."""
        if self._vm_names is None or self._names_of != self.membership_version:
            self._vm_names, self._host_names = frozenset(self.vms), frozenset(self.hosts)
            self._names_of = self.membership_version
        return self._vm_names

    def host_names(self) -> frozenset[HostId]:
        """Return the ids of all hosts."""
        self.vm_names()
        assert self._host_names is not None
        return self._host_names

    def residents(self, host: HostId) -> tuple[VmId, ...]:
        """Return the VMs that run or sleep on a host. The first call builds the index."""
        if self._residents is None:
            self._residents = {}
            for vm in self.vms.values():
                if vm.host is not None:
                    self._residents.setdefault(vm.host, {})[vm.id] = None
        return tuple(self._residents.get(host, ()))

    def running_vms(self, host: HostId) -> frozenset[VmId]:
        """Return the VMs that run on a host, cached until a VM of the host changes."""
        running = self._running_vms.get(host)
        if running is None:
            vms = self.vms
            running = self._running_vms[host] = frozenset(
                [vm for vm in self.residents(host) if vms[vm].state is VmState.RUNNING]
            )
        return running

    def actions_on_vm(self, vm: VmId) -> tuple[RunningAction, ...]:
        """Return the running actions on a VM."""
        running = self._by_vm.get(vm)
        return tuple(running.values()) if running else ()

    def actions_on_host(self, host: HostId) -> tuple[RunningAction, ...]:
        """Return the running actions that touch a host."""
        running = self._by_host.get(host)
        return tuple(running.values()) if running else ()

    def count_actions_on_host(self, host: HostId) -> int:
        """Return the number of running actions that touch a host."""
        return len(self._by_host.get(host, ()))

    def count_migrations_on_host(self, host: HostId) -> int:
        """Return the number of running migrations from or to a host."""
        running = self._by_host.get(host, {}).values()
        return sum(isinstance(action.step.action, Migrate) for action in running)

    def link_sharing(self, action: Migrate) -> int:
        """Return how many running migrations use the busier link of a migration."""
        source = self.count_migrations_on_host(action.source)
        return max(source, self.count_migrations_on_host(action.target))

    def put_host(self, host: Host) -> None:
        """Add or replace a host."""
        before = self.hosts.get(host.id)
        self.membership_version += before is None
        if self.settings.layout is not None:
            was_up = before is not None and before.state is HostState.ON
            self._note_processor_power(host.id, was_up, host.state is HostState.ON)
        dict.__setitem__(self._own_hosts(), host.id, host)
        self.touched_hosts[host.id] = None

    def drop_host(self, host: HostId) -> None:
        """Remove a host."""
        self.membership_version += 1
        if self.settings.layout is not None:
            self._note_processor_power(host, self.hosts[host].state is HostState.ON, False)
        dict.__delitem__(self._own_hosts(), host)
        self.touched_hosts[host] = None
        if host in self.switches:
            self.switches = FrozenMap({k: v for k, v in self.switches.items() if k != host})

    def put_vm(self, vm: Vm) -> None:
        """Add or replace a VM."""
        before = self.vms.get(vm.id)
        self.membership_version += before is None
        if self.settings.layout is not None:
            was_up = before is not None and before.state is VmState.RUNNING
            self._note_processor_power(vm.id, was_up, vm.state is VmState.RUNNING)
        self._update_residence(vm.id, before.host if before else None, vm.host)
        dict.__setitem__(self._own_vms(), vm.id, vm)

    def put_demands(self, demands: Mapping[VmId, Demand]) -> None:
        """Set the demand of VMs. No VM counts as touched: the gate does not read demand."""
        # Local names, because this loop runs for every VM at every observation.
        vms, write, with_demand = self._own_vms(), dict.__setitem__, replace
        for vm, demand in demands.items():
            write(vms, vm, with_demand(vms[vm], demand=demand))

    def drop_vm(self, vm: VmId) -> None:
        """Remove a VM."""
        self.membership_version += 1
        if self.settings.layout is not None:
            self._note_processor_power(vm, self.vms[vm].state is VmState.RUNNING, False)
        self._update_residence(vm, self.vms[vm].host, None)
        dict.__delitem__(self._own_vms(), vm)
        if vm in self.moves:
            dict.__delitem__(self._own_moves(), vm)
        self._forget_failed_moves(vm)

    def note_move(self, running: RunningAction, ended_ms: int) -> None:
        """Record that a migration has succeeded. ``running`` is still a running action."""
        action, mib_per_s, sharing = self._measure(running, ended_ms)
        demand = self.vms[action.vm].demand
        move = LastMove(
            ended_ms,
            action.source,
            action.target,
            mib_per_s,
            sharing,
            (demand.cpu_mhz, demand.memory_mib),
            self.demand_total,
        )
        before = self.moves.get(action.vm)
        dict.__setitem__(self._own_moves(), action.vm, with_earlier(move, before))
        self._forget_failed_moves(action.vm)

    def note_failed_move(self, running: RunningAction, ended_ms: int, *, late: bool) -> None:
        """Record that a migration has failed; ``late`` if it was broken off for being too slow."""
        action, mib_per_s, sharing = self._measure(running, ended_ms)
        before = self.failed_moves.get(action.vm)
        count = 1 if before is None else before.failures + 1
        most = mib_per_s if late else None
        failed = FailedMoves(ended_ms, action.source, action.target, count, most, sharing)
        # A full copy is acceptable: failures are rare.
        self.failed_moves = self.failed_moves.but({action.vm: failed})

    def _forget_failed_moves(self, vm: VmId) -> None:
        if vm in self.failed_moves:
            remaining = {name: failed for name, failed in self.failed_moves.items() if name != vm}
            self.failed_moves = FrozenMap(remaining)

    def _measure(self, running: RunningAction, ended_ms: int) -> tuple[Migrate, float, float]:
        """Return a migration, its speed, and how many migrations shared its link on average."""
        action = running.step.action
        assert isinstance(action, Migrate)
        # A world may answer within the millisecond of the start.
        seconds = max(1, ended_ms - running.started_ms) / 1000
        mib_per_s = self.vms[action.vm].memory_mib / seconds
        return action, mib_per_s, (running.sharing + max(1, self.link_sharing(action))) / 2

    def note_outside_change(self) -> None:
        """Record that something other than a move or the power of a host has changed."""
        self.changed_ms = self.at_ms

    def note_power_change(self, host: HostId, change: LastPowerChange) -> None:
        """Record the last power change of a host."""
        # A full copy is acceptable: power changes are rare.
        self.switches = self.switches.but({host: change})

    def put_action(self, running: RunningAction) -> None:
        """Add a running action."""
        if running.step.id in self.in_flight:
            self.drop_action(running.step.id)
        dict.__setitem__(self._own_in_flight(), running.step.id, running)
        self._index(running)
        self._touch(running)

    def drop_action(self, step: StepId) -> RunningAction:
        """Remove a running action, and return it."""
        running = dict.pop(self._own_in_flight(), step)
        self._forget(running)
        self._touch(running)
        return running

    def reload(self, snapshot: Snapshot) -> None:
        """Replace the cluster by another one. The version and the leader epoch stay."""
        self.membership_version += 1
        self.touched_vms.update(dict.fromkeys(self.vms))
        self.touched_hosts.update(dict.fromkeys(self.hosts))
        self.name, self.settings = snapshot.name, snapshot.settings
        self.hosts, self.vms = snapshot.hosts, snapshot.vms
        self.in_flight, self.history = snapshot.in_flight, snapshot.history
        self.moves, self.switches = snapshot.moves, snapshot.switches
        self.failed_moves, self.contended = snapshot.failed_moves, snapshot.contended
        self.demand_total, self.changed_ms = snapshot.demand_total, snapshot.changed_ms
        self.moves_seen = snapshot.moves_seen
        epoch, self.role_state = self.role_state.epoch, RoleStateDraft(snapshot.role_state)
        # Earlier leaders stay deposed, also after the load of another cluster.
        self.role_state.raise_epoch(epoch)
        self._owns_hosts = self._owns_vms = self._owns_in_flight = self._owns_moves = False
        self._residents = None
        self._running_vms = {}
        # An inventory has no running actions, so that the indexes start empty.
        self._by_vm, self._by_host = {}, {}
        self.touched_vms.update(dict.fromkeys(self.vms))
        self.touched_hosts.update(dict.fromkeys(self.hosts))

    def is_up(self, processor: ProcessorId) -> bool:
        """Whether a host is on, or a VM runs."""
        host = self.hosts.get(HostId(processor))
        if host is not None:
            return host.state is HostState.ON
        vm = self.vms.get(VmId(processor))
        return vm is not None and vm.state is VmState.RUNNING

    def touch(self, processor: ProcessorId) -> None:
        """Mark a processor as touched."""
        host, vm = HostId(processor), VmId(processor)
        if host in self.hosts:
            self.touched_hosts[host] = None
        elif vm in self.vms:
            self.touched_vms[vm] = None

    def pop_touched(self) -> TouchedEntities:
        """Return the VMs and hosts that were touched since the last call."""
        touched = TouchedEntities(tuple(self.touched_vms), tuple(self.touched_hosts))
        self.touched_vms, self.touched_hosts = {}, {}
        return touched

    def _index(self, running: RunningAction) -> None:
        touched = running.step.footprint
        if touched.vm is not None:
            self._by_vm.setdefault(touched.vm, {})[running.step.id] = running
        for host in touched.hosts:
            self._by_host.setdefault(host, {})[running.step.id] = running

    def _forget(self, running: RunningAction) -> None:
        touched, step = running.step.footprint, running.step.id
        if touched.vm is not None:
            del self._by_vm[touched.vm][step]
        for host in touched.hosts:
            del self._by_host[host][step]

    def _note_processor_power(self, name: HostId | VmId, was_up: bool, up: bool) -> None:
        assert self.settings.layout is not None
        processor = ProcessorId(name)
        if was_up != up and processor in layout_index(self.settings.layout).groups_of:
            self.role_state.power_changed(processor, up=up, at_ms=self.at_ms)

    def _touch(self, running: RunningAction) -> None:
        touched = running.step.footprint
        if touched.vm is not None:
            self.touched_vms[touched.vm] = None
        self.touched_hosts.update(dict.fromkeys(touched.hosts))

    def _update_residence(self, vm: VmId, before: HostId | None, after: HostId | None) -> None:
        self.touched_vms[vm] = None
        for host in (before, after):
            if host is not None:
                self.touched_hosts[host] = None
                self._running_vms.pop(host, None)
        # The running set above changes with the state of a VM, the residents only with its host.
        if self._residents is None or before == after:
            return
        if before is not None:
            del self._residents[before][vm]
        if after is not None:
            self._residents.setdefault(after, {})[vm] = None

    # Copy on first write: ``freeze`` hands the maps to a snapshot, which must not change.

    def _own_hosts(self) -> FrozenMap[HostId, Host]:
        if not self._owns_hosts:
            self.hosts, self._owns_hosts = FrozenMap(self.hosts), True
        return self.hosts

    def _own_vms(self) -> FrozenMap[VmId, Vm]:
        if not self._owns_vms:
            self.vms, self._owns_vms = FrozenMap(self.vms), True
        return self.vms

    def _own_moves(self) -> FrozenMap[VmId, LastMove]:
        if not self._owns_moves:
            self.moves, self._owns_moves = FrozenMap(self.moves), True
        return self.moves

    def _own_in_flight(self) -> FrozenMap[StepId, RunningAction]:
        if not self._owns_in_flight:
            self.in_flight, self._owns_in_flight = FrozenMap(self.in_flight), True
        return self.in_flight
