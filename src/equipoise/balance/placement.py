"""Initial placement: the hosts on which new VMs start, for one VM or many at once.

The demand of a new VM is unknown, so the placement assumes the maximum: its whole memory and one
core per vCPU. If no host fits, other VMs move out of the way. If that does not help, hosts are
powered on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from equipoise.balance.advice import BalanceIntentBuilder, move_step_id
from equipoise.balance.repair.faults import BalanceFault, find_host_obstacles
from equipoise.balance.repair.move_order import VmAssignment
from equipoise.balance.repair.placement_state import PlacementProblem, PlacementState, ProblemKind
from equipoise.balance.repair.repair_search import search_repair
from equipoise.balance.repair.rule_repair import Transfer
from equipoise.balance.rules import read_rules
from equipoise.capacity.admission import CPU_RESERVATIONS, MEMORY_RESERVATIONS, PoolReservations
from equipoise.capacity.entitlement import vm_entitlements
from equipoise.capacity.imbalance import imbalance
from equipoise.capacity.waterfill import Floats
from equipoise.model.action import Boot, PowerOn
from equipoise.model.estimate import Estimates
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.plan.order import GateFilter


class PlacementScore:
    """The loads of all hosts that are on, updated as VMs are placed."""

    def __init__(self, snapshot: Snapshot, placement_state: PlacementState) -> None:
        self._hosts = [
            host
            for host in snapshot.hosts.values()
            if host.state is HostState.ON and min(_capacity(host)) > 0
        ]
        self._row = {host.id: row for row, host in enumerate(self._hosts)}
        self._loads = np.zeros((len(self._hosts), 2))
        self._size = np.array([_capacity(host) for host in self._hosts]).reshape(-1, 2)
        running = [vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING]
        self._entitlements = dict(
            zip(
                (vm.id for vm in running),
                vm_entitlements(snapshot, running, fast=False),
                strict=True,
            )
        )
        for vm, host in placement_state.host_of.items():
            if host in self._row:
                self._loads[self._row[host]] += self._load(placement_state.vms[vm], host)

    def imbalance_with(self, vm: Vm, host: HostId) -> float:
        """Return the imbalance with a VM on a host."""
        row = self._row[host]
        before = self._loads[row].copy()
        self._loads[row] += self._load(vm, host)
        result = imbalance(self._loads)
        self._loads[row] = before
        return result

    def add(self, vm: Vm, host: HostId) -> None:
        """Add the load of a VM to a host."""
        self._loads[self._row[host]] += self._load(vm, host)

    def remove(self, vm: Vm, host: HostId) -> None:
        """Remove the load of a VM from a host."""
        self._loads[self._row[host]] -= self._load(vm, host)

    def move(self, vm: Vm, source: HostId, target: HostId) -> None:
        """Move the load of a VM to another host."""
        self.remove(vm, source)
        self.add(vm, target)

    def _load(self, vm: Vm, name: HostId) -> Floats:
        """Return the load of a VM on a host, as a part of the capacity of the host.

        For a VM that runs it is the entitlement; for a new VM it is what it can use at most there.
        """
        row = self._row[name]
        if vm.id in self._entitlements:
            entitled: Floats = self._entitlements[vm.id] / self._size[row]
            return entitled
        cpu_mhz = min(vm.demand.cpu_mhz, vm.vcpus * self._hosts[row].mhz_per_core)
        memory_mib = min(vm.demand.memory_mib, vm.memory_mib)
        if vm.cpu.limit_mhz is not None:
            cpu_mhz = min(cpu_mhz, vm.cpu.limit_mhz)
        if vm.memory.limit_mib is not None:
            memory_mib = min(memory_mib, vm.memory.limit_mib)
        load: Floats = np.array([cpu_mhz, memory_mib]) / self._size[row]
        return load


def _capacity(host: Host) -> tuple[int, int]:
    return host.usable_cpu_mhz, host.usable_memory_mib


UNLIMITED_MHZ: Final = 10**9
"""More than any host has."""
POWER_ON_REASON: Final = "no host that is on can take the VM"
"""The reason of every power-on of a placement."""


class PlacementOption(NamedTuple):
    """A host on which a VM could start, and the imbalance of the cluster then."""

    host: HostId
    imbalance: float


@dataclass(frozen=True, slots=True)
class StartAdvice:
    """The host on which a VM should start, and the alternatives."""

    vm: VmId
    host: HostId
    imbalance: float
    alternatives: tuple[PlacementOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementAdvice:
    """The hosts of new VMs, and the moves and power-ons that must come first."""

    placed: tuple[StartAdvice, ...]
    moves: tuple[Transfer, ...]
    wakes: tuple[HostId, ...]
    faults: tuple[BalanceFault, ...]
    intents: tuple[Intent, ...]
    """All of it as intents that pass the gate."""


def place_vms(
    snapshot: Snapshot, vms: Sequence[VmId], estimates: Estimates, *, known: bool = False
) -> PlacementAdvice:
    """Return a host for each of the VMs, which must be in state ready.

    With ``known``, the demand of the VMs is taken from the snapshot, because they have run before.
    """
    ready = [vm for vm in vms if snapshot.vms[vm].state is VmState.READY]
    faults = [
        BalanceFault(
            code="not-ready", subject=vm, detail=f"{vm} is {snapshot.vms[vm].state}, not ready"
        )
        for vm in vms
        if vm not in ready
    ]
    new_vms = [snapshot.vms[vm] for vm in ready]
    advice = _Placer(snapshot, new_vms if known else map(at_full_load, new_vms), estimates).run()
    return replace(advice, faults=(*faults, *advice.faults))


class _Placer:
    """Places VMs one by one, the hardest to place first."""

    def __init__(self, snapshot: Snapshot, vms: Iterable[Vm], estimates: Estimates) -> None:
        self._snapshot, self._estimates = snapshot, estimates
        self._vms = {vm.id: vm for vm in vms}
        hosts = snapshot.hosts.values()
        self._mean_capacity = (
            fmean(max(1, host.usable_cpu_mhz) for host in hosts),
            fmean(max(1, host.usable_memory_mib) for host in hosts),
        )
        self._cores = fmean(host.cores for host in hosts)
        # Standby hosts count for admission, because they can be powered on.
        woken = [
            host.but(state=HostState.ON) if host.state is HostState.STANDBY else host
            for host in hosts
        ]
        self._reservations = [
            PoolReservations(woken, snapshot.vms.values(), snapshot.settings.pools, resource)
            for resource in (CPU_RESERVATIONS, MEMORY_RESERVATIONS)
        ]
        self._rules = read_rules(snapshot)
        self._placed: dict[VmId, StartAdvice] = {}
        self._moves: dict[VmId, Transfer] = {}
        self._wakes: list[HostId] = []
        self._faults: list[BalanceFault] = []
        self._load_state(snapshot)

    def _load_state(self, snapshot: Snapshot) -> None:
        """Build the placement state and the scores; powered-on hosts are part of ``snapshot``."""
        self._placement_state = PlacementState(snapshot, self._rules, self._vms.values())
        for vm, transfer in self._moves.items():
            self._placement_state.place(vm, transfer.target)
        for vm, placed in self._placed.items():
            self._placement_state.place(vm, placed.host)
        self._score = PlacementScore(snapshot, self._placement_state)

    def run(self) -> PlacementAdvice:
        """Return the advice for all VMs."""
        for vm in sorted(self._vms.values(), key=self._size):
            if vm.id in self._placed:
                continue  # together with its partner
            if not self._is_admitted(vm):
                continue
            if not self._place_vm(vm.id):
                self._release_admission(vm)
                self._faults.append(self._fault(vm.id))
        return self._verified()

    def _is_admitted(self, vm: Vm) -> bool:
        """Return whether the pools admit a VM and its fault-tolerant partner; reserve if so."""
        for member in self._with_ft_pair(vm):
            shortages = [reservations.shortage(member) for reservations in self._reservations]
            shortage = next((shortage for shortage in shortages if shortage is not None), None)
            if shortage is not None:
                detail = f"the pool does not admit {vm.id}: {shortage.sentence}"
                self._faults.append(
                    BalanceFault(code="admission-refused", subject=vm.id, detail=detail)
                )
                self._release_admission(vm, until=member)
                return False
            for reservations in self._reservations:
                reservations.admit(member)
        return True

    def _release_admission(self, vm: Vm, until: Vm | None = None) -> None:
        """Remove the reservations of a VM and its partner, up to ``until``."""
        for member in self._with_ft_pair(vm):
            if member is until:
                break
            for reservations in self._reservations:
                reservations.release(member)

    def _with_ft_pair(self, vm: Vm) -> list[Vm]:
        """Return a VM and its fault-tolerant partner, if that is to be placed as well."""
        partner = None if vm.ft_pair is None else self._vms.get(vm.ft_pair)
        together = partner is not None and partner.id not in self._placed
        return [vm, partner] if partner is not None and together else [vm]

    def _size(self, vm: Vm) -> tuple[float, float, str]:
        """Return a sort key: large reservations first, then large demands."""
        cpu_mhz, memory_mib = self._mean_capacity
        held = max(vm.cpu.reservation_mhz / cpu_mhz, vm.memory.reservation_mib / memory_mib)
        asked = max(vm.vcpus / self._cores, vm.demand.memory_mib / memory_mib)
        return -held, -asked, vm.id

    def _place_vm(self, vm: VmId) -> bool:
        return (
            self._place_directly(vm) or self._place_with_moves(vm) or self._place_with_power_on(vm)
        )

    def _place_directly(self, vm: VmId) -> bool:
        """Place a VM on the best host without obstacle, and its partner on another host."""
        options = self._options(vm)
        partner = next(
            (member.id for member in self._with_ft_pair(self._vms[vm]) if member.id != vm), None
        )
        for number, option in enumerate(options):
            self._record(vm, option, options[number:])
            partner_options = self._options(partner) if partner is not None else []
            if partner is None or partner_options:
                if partner is not None:
                    self._record(partner, partner_options[0], partner_options)
                return True
            self._undo(vm)
        return False

    def _options(self, vm: VmId) -> list[PlacementOption]:
        """Return the hosts on which a VM can start now, best first."""
        placement_state = self._placement_state
        hosts = [
            host
            for host in placement_state.open_hosts()
            if not placement_state.has_obstacle(vm, host)
        ]
        options = [
            PlacementOption(host, self._score.imbalance_with(self._vms[vm], host)) for host in hosts
        ]
        return sorted(options, key=lambda option: (option.imbalance, option.host))

    def _record(
        self, vm: VmId, option: PlacementOption, options: Sequence[PlacementOption]
    ) -> None:
        """Place a VM on a host."""
        if vm in self._placed:
            self._undo(vm)
        others = tuple(other for other in options if other.host != option.host)
        self._placed[vm] = StartAdvice(vm, option.host, option.imbalance, others)
        self._placement_state.place(vm, option.host)
        self._score.add(self._vms[vm], option.host)

    def _undo(self, vm: VmId) -> None:
        """Remove a VM from its host."""
        self._score.remove(self._vms[vm], self._placed.pop(vm).host)
        self._placement_state.place(vm, None)

    def _place_with_moves(self, vm: VmId) -> bool:
        """Place a VM on a host from which the fewest other VMs move away."""
        placement_state = self._placement_state
        placement_state.problems = {}
        placement_state.refresh_problem(PlacementProblem(ProblemKind.MUST_MOVE, vm))
        search_result = search_repair(placement_state)
        if placement_state.host_of[vm] is None:
            return False
        for assignment in sorted(
            search_result.assignments, key=lambda assignment: assignment.vm in self._vms
        ):
            self._apply_assignment(assignment)  # VMs that move away come first
        return True

    def _apply_assignment(self, assignment: VmAssignment) -> None:
        vm, host, before = assignment
        if vm in self._vms:  # not started yet: it is placed elsewhere instead of moved
            self._record(
                vm, PlacementOption(host, self._score.imbalance_with(self._vms[vm], host)), ()
            )
            return
        assert before is not None
        source = self._moves.pop(vm).source if vm in self._moves else before
        if source != host:
            self._moves[vm] = Transfer(vm, source, host)
        self._score.move(self._snapshot.vms[vm], before, host)

    def _place_with_power_on(self, vm: VmId) -> bool:
        """Power on the largest standby host on which a VM can start."""
        standby = [
            host.id
            for host in self._snapshot.hosts.values()
            if host.state is HostState.STANDBY and host.id not in self._wakes
        ]
        for host in sorted(standby, key=lambda name: (-self._snapshot.hosts[name].cpu_mhz, name)):
            before = self._placement_state, self._score
            self._wakes.append(host)
            self._load_state(_with_hosts_on(self._snapshot, self._wakes))
            if self._place_directly(vm) or self._place_with_moves(vm):
                return True
            self._wakes.pop()
            self._placement_state, self._score = before
        return False

    def _fault(self, vm: VmId) -> BalanceFault:
        obstacles = find_host_obstacles(self._placement_state, vm)
        return BalanceFault(
            code="no-target-host",
            subject=vm,
            detail=f"{vm} {obstacles.sentence}",
            rules=tuple(dict.fromkeys(map(str, obstacles.rules))),
            unblock="; or ".join(obstacles.remedies),
        )

    def _verified(self) -> PlacementAdvice:
        """Return the advice without what the gate refuses."""
        passing, builder = (
            GateFilter(self._snapshot),
            BalanceIntentBuilder(self._snapshot, self._estimates),
        )
        first = [self._power_on_intent(host) for host in self._wakes]
        first += [builder.move(*transfer) for transfer in self._moves.values()]
        boots = [self._boot_intent(start) for start in self._placed.values()]
        violations = passing.objections((*first, *boots))
        passed = boots
        if violations:
            accepted = passing.of(first)
            passed = list(passing.of(boots, accepted))
            first = list(accepted)
        started = {intent.id for intent in passed}
        objections = "; ".join(
            dict.fromkeys(
                f"{violation.constraint}: {violation.detail}" for violation in violations[:3]
            )
        )
        for start in self._placed.values():
            if _start_step_id(start.vm) not in started:
                detail = f"the gate refuses the start of {start.vm} on {start.host}: {objections}"
                self._faults.append(
                    BalanceFault(code="gate-refuses", subject=start.vm, detail=detail)
                )
        kept = {intent.id for intent in first}
        return PlacementAdvice(
            placed=tuple(
                start for start in self._placed.values() if _start_step_id(start.vm) in started
            ),
            moves=tuple(
                transfer for transfer in self._moves.values() if move_step_id(transfer.vm) in kept
            ),
            wakes=tuple(self._wakes),
            faults=tuple(self._faults),
            intents=(*first, *passed),
        )

    def _power_on_intent(self, host: HostId) -> Intent:
        action = PowerOn(host=host)
        return Intent(
            id=StepId(f"wake-{host}"),
            action=action,
            duration_ms=self._estimates.duration_ms(action, self._snapshot),
            reason=POWER_ON_REASON,
        )

    def _boot_intent(self, start: StartAdvice) -> Intent:
        action = Boot(vm=start.vm, target=start.host)
        return Intent(
            id=_start_step_id(start.vm),
            action=action,
            duration_ms=self._estimates.duration_ms(action, self._snapshot),
            reason=f"the imbalance is {start.imbalance:.3f} with the VM there",
        )


def at_full_load(vm: Vm) -> Vm:
    """Return a VM with the maximum demand; the score limits the MHz to what a host can give."""
    return vm.but(
        demand=Demand(cpu_mhz=UNLIMITED_MHZ, memory_mib=vm.memory_mib, named=vm.consumption)
    )


def _with_hosts_on(snapshot: Snapshot, hosts: Sequence[HostId]) -> Snapshot:
    on = {host: snapshot.hosts[host].but(state=HostState.ON) for host in hosts}
    return replace(snapshot, hosts=FrozenMap({**snapshot.hosts, **on}))


def _start_step_id(vm: VmId) -> StepId:
    return StepId(f"start-{vm}")
