"""A draft: a private, writable copy of a snapshot, for whoever applies or tries out changes.

Each map is copied when it is first written, so a draft that changes one VM costs one copy of one
map, and a draft that takes a thousand events costs no more. A draft never escapes its owner;
``freeze`` gives the snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from equipoise.model.change.duties import DutyDraft
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Settings
from equipoise.model.quantity import HostId, ProcessorId, StepId, VmId
from equipoise.model.roles.duty import table_of
from equipoise.model.snapshot import DemandFrame, LastMove, LastSwitch, Running, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Demand, Vm, VmState


class Touched(NamedTuple):
    """What changes have touched: all that needs to be looked at again."""

    vms: tuple[VmId, ...]
    hosts: tuple[HostId, ...]


class Draft:
    """The working copy that ``transition`` writes to. It knows what was touched since asked."""

    def __init__(self, base: Snapshot) -> None:
        self.version = base.version
        self.at_ms = base.at_ms
        self.name = base.name
        self.settings: Settings = base.settings
        self.history: tuple[DemandFrame, ...] = base.history
        self.hosts: FrozenMap[HostId, Host] = base.hosts
        self.vms: FrozenMap[VmId, Vm] = base.vms
        self.in_flight: FrozenMap[StepId, Running] = base.in_flight
        self.moves: FrozenMap[VmId, LastMove] = base.moves
        self.switches: FrozenMap[HostId, LastSwitch] = base.switches
        self.duties = DutyDraft(base.duties)
        self._owns_hosts = self._owns_vms = self._owns_in_flight = self._owns_moves = False
        self._residents: dict[HostId, dict[VmId, None]] | None = None
        self._runners: dict[HostId, frozenset[VmId]] = {}
        self._by_vm: dict[VmId, dict[StepId, Running]] = {}
        self._by_host: dict[HostId, dict[StepId, Running]] = {}
        for running in self.in_flight.values():
            self._index(running)
        self.touched_vms: dict[VmId, None] = {}
        self.touched_hosts: dict[HostId, None] = {}
        self.comings_and_goings = 0
        """How often a VM or a host has come or gone."""
        self._vm_names: frozenset[VmId] | None = None
        self._host_names: frozenset[HostId] | None = None
        self._names_of = 0

    def freeze(self) -> Snapshot:
        """Give the snapshot; the draft may go on, and will copy again before it writes."""
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
            switches=self.switches,
            duties=self.duties.freeze(),
        )

    def vm_names(self) -> frozenset[VmId]:
        """The names of all VMs; the set is made anew when somebody has come or gone."""
        if self._vm_names is None or self._names_of != self.comings_and_goings:
            self._vm_names, self._host_names = frozenset(self.vms), frozenset(self.hosts)
            self._names_of = self.comings_and_goings
        return self._vm_names

    def host_names(self) -> frozenset[HostId]:
        """The names of all hosts."""
        self.vm_names()
        assert self._host_names is not None
        return self._host_names

    def residents(self, host: HostId) -> tuple[VmId, ...]:
        """The VMs that run or sleep on a host. The index is made when first asked for."""
        if self._residents is None:
            self._residents = {}
            for vm in self.vms.values():
                if vm.host is not None:
                    self._residents.setdefault(vm.host, {})[vm.id] = None
        return tuple(self._residents.get(host, ()))

    def runners(self, host: HostId) -> frozenset[VmId]:
        """The VMs that run on a host. Kept until one of its VMs changes."""
        found = self._runners.get(host)
        if found is None:
            vms = self.vms
            found = self._runners[host] = frozenset(
                [vm for vm in self.residents(host) if vms[vm].state is VmState.RUNNING]
            )
        return found

    def running_on(self, vm: VmId) -> tuple[Running, ...]:
        """The actions under way on a VM."""
        running = self._by_vm.get(vm)
        return tuple(running.values()) if running else ()

    def running_at(self, host: HostId) -> tuple[Running, ...]:
        """The actions under way that touch a host."""
        running = self._by_host.get(host)
        return tuple(running.values()) if running else ()

    def count_running_at(self, host: HostId) -> int:
        """How many actions under way touch a host."""
        return len(self._by_host.get(host, ()))

    def put_host(self, host: Host) -> None:
        """Add or replace a host."""
        before = self.hosts.get(host.id)
        self.comings_and_goings += before is None
        if self.settings.layout is not None:
            was_up = before is not None and before.state is HostState.ON
            self._note_up(host.id, was_up, host.state is HostState.ON)
        dict.__setitem__(self._own_hosts(), host.id, host)
        self.touched_hosts[host.id] = None

    def drop_host(self, host: HostId) -> None:
        """Remove a host."""
        self.comings_and_goings += 1
        if self.settings.layout is not None:
            self._note_up(host, self.hosts[host].state is HostState.ON, False)
        dict.__delitem__(self._own_hosts(), host)
        self.touched_hosts[host] = None
        if host in self.switches:
            self.switches = FrozenMap({k: v for k, v in self.switches.items() if k != host})

    def put_vm(self, vm: Vm) -> None:
        """Add or replace a VM."""
        before = self.vms.get(vm.id)
        self.comings_and_goings += before is None
        if self.settings.layout is not None:
            was_up = before is not None and before.state is VmState.RUNNING
            self._note_up(vm.id, was_up, vm.state is VmState.RUNNING)
        self._reside(vm.id, before.host if before else None, vm.host)
        dict.__setitem__(self._own_vms(), vm.id, vm)

    def put_demands(self, demands: Mapping[VmId, Demand]) -> None:
        """Note the demands of VMs, which touches nobody: no plan is judged by them."""
        # Every VM, every few minutes: this is the busiest line of a long run.
        mine, write, replaced = self._own_vms(), dict.__setitem__, replace
        for vm, demand in demands.items():
            write(mine, vm, replaced(mine[vm], demand=demand))

    def drop_vm(self, vm: VmId) -> None:
        """Remove a VM."""
        self.comings_and_goings += 1
        if self.settings.layout is not None:
            self._note_up(vm, self.vms[vm].state is VmState.RUNNING, False)
        self._reside(vm, self.vms[vm].host, None)
        dict.__delitem__(self._own_vms(), vm)
        if vm in self.moves:
            dict.__delitem__(self._own_moves(), vm)

    def note_move(self, vm: VmId, move: LastMove) -> None:
        """Note that a VM has migrated, and how fast."""
        dict.__setitem__(self._own_moves(), vm, move)

    def note_switch(self, host: HostId, switch: LastSwitch) -> None:
        """Note how the waking of a host went, or its being put to sleep."""
        self.switches = FrozenMap({**self.switches, host: switch})  # it happens seldom

    def put_running(self, running: Running) -> None:
        """Note that an action is under way."""
        if running.step.id in self.in_flight:
            self.drop_running(running.step.id)
        dict.__setitem__(self._own_in_flight(), running.step.id, running)
        self._index(running)
        self._touch(running)

    def drop_running(self, step: StepId) -> Running:
        """Note that an action is no longer under way."""
        running = dict.pop(self._own_in_flight(), step)
        self._forget(running)
        self._touch(running)
        return running

    def replace_all(self, snapshot: Snapshot) -> None:
        """Start over from another cluster, keeping only the count of events."""
        self.comings_and_goings += 1
        self.touched_vms.update(dict.fromkeys(self.vms))
        self.touched_hosts.update(dict.fromkeys(self.hosts))
        self.name, self.settings = snapshot.name, snapshot.settings
        self.hosts, self.vms = snapshot.hosts, snapshot.vms
        self.in_flight, self.history = snapshot.in_flight, snapshot.history
        self.moves, self.switches = snapshot.moves, snapshot.switches
        reigned, self.duties = self.duties.epoch, DutyDraft(snapshot.duties)
        self.duties.reign(reigned)  # who reigned once is obeyed no more, whatever is loaded
        self._owns_hosts = self._owns_vms = self._owns_in_flight = self._owns_moves = False
        self._residents = None
        self._runners = {}
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
        """Something about a processor has changed."""
        host, vm = HostId(processor), VmId(processor)
        if host in self.hosts:
            self.touched_hosts[host] = None
        elif vm in self.vms:
            self.touched_vms[vm] = None

    def take_touched(self) -> Touched:
        """Say which VMs and hosts were touched since the last time, and start counting anew."""
        touched = Touched(tuple(self.touched_vms), tuple(self.touched_hosts))
        self.touched_vms, self.touched_hosts = {}, {}
        return touched

    def _index(self, running: Running) -> None:
        seen = running.step.footprint
        if seen.vm is not None:
            self._by_vm.setdefault(seen.vm, {})[running.step.id] = running
        for host in seen.hosts:
            self._by_host.setdefault(host, {})[running.step.id] = running

    def _forget(self, running: Running) -> None:
        seen, step = running.step.footprint, running.step.id
        if seen.vm is not None:
            del self._by_vm[seen.vm][step]
        for host in seen.hosts:
            del self._by_host[host][step]

    def _note_up(self, name: HostId | VmId, was_up: bool, up: bool) -> None:
        assert self.settings.layout is not None
        processor = ProcessorId(name)
        if was_up != up and processor in table_of(self.settings.layout).teams_of:
            self.duties.switched(processor, up=up, at_ms=self.at_ms)

    def _touch(self, running: Running) -> None:
        seen = running.step.footprint
        if seen.vm is not None:
            self.touched_vms[seen.vm] = None
        self.touched_hosts.update(dict.fromkeys(seen.hosts))

    def _reside(self, vm: VmId, before: HostId | None, after: HostId | None) -> None:
        self.touched_vms[vm] = None
        for host in (before, after):
            if host is not None:
                self.touched_hosts[host] = None
                self._runners.pop(host, None)
        if self._residents is None or before == after:
            return
        if before is not None:
            del self._residents[before][vm]
        if after is not None:
            self._residents.setdefault(after, {})[vm] = None

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

    def _own_in_flight(self) -> FrozenMap[StepId, Running]:
        if not self._owns_in_flight:
            self.in_flight, self._owns_in_flight = FrozenMap(self.in_flight), True
        return self.in_flight
