"""Initial placement: where new VMs should start, one by one or many in one decision.

Nothing is known yet about what a new VM will ask for, so it is taken to ask for all it can: its
memory, and a core for each vCPU. Where no host fits, others make way; where that does not help
either, hosts are woken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, NamedTuple

from equipoise.balance.goodness import Goodness
from equipoise.balance.mending.fault import Fault, blocks_of
from equipoise.balance.mending.feasible import Choice
from equipoise.balance.mending.mend import Transfer
from equipoise.balance.mending.settle import settle
from equipoise.balance.mending.standing import Problem, Standing
from equipoise.balance.rules import read_rules
from equipoise.balance.wishes import Wishes, step_of
from equipoise.model.action import Boot, PowerOn
from equipoise.model.estimate import Estimates
from equipoise.model.host import HostState
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.place.admission import CPU, MEMORY, Books
from equipoise.plan.passing import Passing

MHZ_MAX: Final = 10**9
WAKING: Final = "no host that is on will do"
"""Why a host is woken."""


class Option(NamedTuple):
    """A host where a VM could start, and how uneven the cluster would be then."""

    host: HostId
    imbalance: float


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a VM should start, and where else it could."""

    vm: VmId
    host: HostId
    imbalance: float
    alternatives: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where VMs should start, and what has to be done before."""

    placed: tuple[Placed, ...]
    moves: tuple[Transfer, ...]
    wakes: tuple[HostId, ...]
    faults: tuple[Fault, ...]
    intents: tuple[Intent, ...]
    """All of it as wishes that pass the gate."""


def place(
    snapshot: Snapshot, vms: Sequence[VmId], estimates: Estimates, *, known: bool = False
) -> Placement:
    """Find hosts for VMs of the snapshot that are ready to start.

    What VMs that have run before ask for may be ``known``.
    """
    ready = [vm for vm in vms if snapshot.vms[vm].state is VmState.READY]
    running = [
        Fault(code="not_ready", subject=vm, detail=f"{vm} is {snapshot.vms[vm].state}, not ready")
        for vm in vms
        if vm not in ready
    ]
    wanted = [snapshot.vms[vm] for vm in ready]
    found = _Placing(snapshot, wanted if known else map(at_full_load, wanted), estimates).run()
    return replace(found, faults=(*running, *found.faults))


class _Placing:
    def __init__(self, snapshot: Snapshot, vms: Iterable[Vm], estimates: Estimates) -> None:
        self._snapshot, self._estimates = snapshot, estimates
        self._vms = {vm.id: vm for vm in vms}
        hosts = snapshot.hosts.values()
        self._usual = (
            fmean(max(1, host.usable_cpu_mhz) for host in hosts),
            fmean(max(1, host.usable_memory_mib) for host in hosts),
        )
        self._cores = fmean(host.cores for host in hosts)
        # Hosts that sleep count: they can be woken.
        woken = [
            host.but(state=HostState.ON) if host.state is HostState.STANDBY else host
            for host in hosts
        ]
        self._books = [
            Books(woken, snapshot.vms.values(), snapshot.settings.pools, resource)
            for resource in (CPU, MEMORY)
        ]
        self._rules = read_rules(snapshot)
        self._placed: dict[VmId, Placed] = {}
        self._moves: dict[VmId, Transfer] = {}
        self._wakes: list[HostId] = []
        self._faults: list[Fault] = []
        self._look_at(snapshot)

    def _look_at(self, snapshot: Snapshot) -> None:
        """See the cluster anew: hosts may have been woken since."""
        self._standing = Standing(snapshot, self._rules, self._vms.values())
        for vm, transfer in self._moves.items():
            self._standing.place(vm, transfer.target)
        for vm, placed in self._placed.items():
            self._standing.place(vm, placed.host)
        self._goodness = Goodness(snapshot, self._standing)

    def run(self) -> Placement:
        for vm in sorted(self._vms.values(), key=self._size):
            if vm.id in self._placed:
                continue  # with its other half
            if not self._is_admitted(vm):
                continue
            if not self._place_somewhere(vm.id):
                self._let_go(vm)
                self._faults.append(self._fault(vm.id))
        return self._checked()

    def _is_admitted(self, vm: Vm) -> bool:
        """Whether its pools let it in, and its other half too."""
        for one in self._with_half(vm):
            shortages = [books.shortage(one) for books in self._books]
            short = next((found for found in shortages if found is not None), None)
            if short is not None:
                detail = f"{vm.id} is not admitted: {short.sentence}"
                self._faults.append(Fault(code="admission", subject=vm.id, detail=detail))
                self._let_go(vm, until=one)
                return False
            for books in self._books:
                books.admit(one)
        return True

    def _let_go(self, vm: Vm, until: Vm | None = None) -> None:
        """Give back what the pools had reserved for it."""
        for one in self._with_half(vm):
            if one is until:
                break
            for books in self._books:
                books.admit(one, back=True)

    def _with_half(self, vm: Vm) -> list[Vm]:
        """A VM and, if that is to be placed with it, the other half of a fault-tolerant pair."""
        half = None if vm.ft_pair is None else self._vms.get(vm.ft_pair)
        together = half is not None and half.id not in self._placed
        return [vm, half] if half is not None and together else [vm]

    def _size(self, vm: Vm) -> tuple[float, float, str]:
        """What fits in the fewest places comes first: by what is reserved, then what it may ask."""
        cpu_mhz, memory_mib = self._usual
        held = max(vm.cpu.reservation_mhz / cpu_mhz, vm.memory.reservation_mib / memory_mib)
        asked = max(vm.vcpus / self._cores, vm.demand.memory_mib / memory_mib)
        return -held, -asked, vm.id

    def _place_somewhere(self, vm: VmId) -> bool:
        return self._as_is(vm) or self._with_moves(vm) or self._with_a_host_more(vm)

    def _as_is(self, vm: VmId) -> bool:
        """Put it onto the best host where nothing is in the way, and its other half elsewhere."""
        options = self._options(vm)
        other = next((one.id for one in self._with_half(self._vms[vm]) if one.id != vm), None)
        for number, option in enumerate(options):
            self._note(vm, option, options[number:])
            second = self._options(other) if other is not None else []
            if other is None or second:
                if other is not None:
                    self._note(other, second[0], second)
                return True
            self._forget(vm)
        return False

    def _options(self, vm: VmId) -> list[Option]:
        """The hosts where it could start now, the best first."""
        standing = self._standing
        hosts = [host for host in standing.open_hosts() if not standing.obstacles(vm, host)]
        found = [Option(host, self._goodness.with_(self._vms[vm], host)) for host in hosts]
        return sorted(found, key=lambda one: (one.imbalance, one.host))

    def _note(self, vm: VmId, option: Option, options: Sequence[Option]) -> None:
        """Let it be there."""
        if vm in self._placed:
            self._forget(vm)
        others = tuple(one for one in options if one.host != option.host)
        self._placed[vm] = Placed(vm, option.host, option.imbalance, others)
        self._standing.place(vm, option.host)
        self._goodness.add(self._vms[vm], option.host)

    def _forget(self, vm: VmId) -> None:
        """Let it be nowhere again."""
        self._goodness.take(self._vms[vm], self._placed.pop(vm).host)
        self._standing.place(vm, None)

    def _with_moves(self, vm: VmId) -> bool:
        """Put it onto a host where others make way, as few as possible."""
        standing = self._standing
        standing.problems = {}
        standing.look(Problem("out", vm))
        settlement = settle(standing)
        if standing.where[vm] is None:
            return False
        for choice in sorted(settlement.choices, key=lambda one: one.vm in self._vms):
            self._take(choice)  # first those who make way
        return True

    def _take(self, choice: Choice) -> None:
        vm, host, before = choice
        if vm in self._vms:  # it does not run yet, so it need not move
            self._note(vm, Option(host, self._goodness.with_(self._vms[vm], host)), ())
            return
        assert before is not None
        source = self._moves.pop(vm).source if vm in self._moves else before
        if source != host:
            self._moves[vm] = Transfer(vm, source, host)
        self._goodness.move(self._snapshot.vms[vm], before, host)

    def _with_a_host_more(self, vm: VmId) -> bool:
        """Wake the standby host that suits it best."""
        asleep = [
            host.id
            for host in self._snapshot.hosts.values()
            if host.state is HostState.STANDBY and host.id not in self._wakes
        ]
        for host in sorted(asleep, key=lambda name: (-self._snapshot.hosts[name].cpu_mhz, name)):
            before = self._standing, self._goodness
            self._wakes.append(host)
            self._look_at(_woken(self._snapshot, self._wakes))
            if self._as_is(vm) or self._with_moves(vm):
                return True
            self._wakes.pop()
            self._standing, self._goodness = before
        return False

    def _fault(self, vm: VmId) -> Fault:
        blocks = blocks_of(self._standing, vm)
        return Fault(
            code="no_host",
            subject=vm,
            detail=f"{vm} {blocks.sentence}",
            rules=tuple(dict.fromkeys(map(str, blocks.rules))),
            unblock="; or ".join(blocks.helps),
        )

    def _checked(self) -> Placement:
        """Leave out what the gate would refuse."""
        passing, wishes = Passing(self._snapshot), Wishes(self._snapshot, self._estimates)
        first = [self._wake(host) for host in self._wakes]
        first += [wishes.move(*one) for one in self._moves.values()]
        boots = [self._boot(one) for one in self._placed.values()]
        against = passing.objections((*first, *boots))
        passed = boots
        if against:
            made = passing.of(first)
            passed = list(passing.of(boots, made))
            first = list(made)
        started = {intent.id for intent in passed}
        said = "; ".join(dict.fromkeys(f"{one.constraint}: {one.detail}" for one in against[:3]))
        for one in self._placed.values():
            if _boot_step(one.vm) not in started:
                detail = f"{one.vm} should start on {one.host}, but {said}"
                self._faults.append(Fault(code="refused", subject=one.vm, detail=detail))
        kept = {intent.id for intent in first}
        return Placement(
            placed=tuple(p for p in self._placed.values() if _boot_step(p.vm) in started),
            moves=tuple(m for m in self._moves.values() if step_of(m.vm) in kept),
            wakes=tuple(self._wakes),
            faults=tuple(self._faults),
            intents=(*first, *passed),
        )

    def _wake(self, host: HostId) -> Intent:
        action = PowerOn(host=host)
        return Intent(
            id=StepId(f"wake-{host}"),
            action=action,
            duration_ms=self._estimates.duration_ms(action, self._snapshot),
            reason=WAKING,
        )

    def _boot(self, one: Placed) -> Intent:
        action = Boot(vm=one.vm, target=one.host)
        return Intent(
            id=_boot_step(one.vm),
            action=action,
            duration_ms=self._estimates.duration_ms(action, self._snapshot),
            reason=f"the imbalance would be {one.imbalance:.3f}",
        )


def at_full_load(vm: Vm) -> Vm:
    """A VM that asks for all it can: how many MHz that is depends on the host, which sees to it."""
    return vm.but(demand=Demand(cpu_mhz=MHZ_MAX, memory_mib=vm.memory_mib, named=vm.consumption))


def _woken(snapshot: Snapshot, hosts: Sequence[HostId]) -> Snapshot:
    on = {host: snapshot.hosts[host].but(state=HostState.ON) for host in hosts}
    return replace(snapshot, hosts=FrozenMap({**snapshot.hosts, **on}))


def _boot_step(vm: VmId) -> StepId:
    return StepId(f"start-{vm}")
