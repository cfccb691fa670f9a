"""Initial placement: where new VMs should start, one by one or many in one decision.

Nothing is known yet about what a new VM will ask for, so it is taken to ask for all it can: its
memory, and a core for each vCPU. Where no host fits, others make way; where that does not help
either, hosts are woken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, NamedTuple

from equipoise.balance.goodness import Goodness
from equipoise.balance.mending.fault import Fault, blocks_of
from equipoise.balance.mending.mend import Transfer
from equipoise.balance.mending.settle import Choice, settle
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
        for vm in self._admitted():
            if vm in self._placed:
                continue  # with its other half
            if not self._place_somewhere(vm):
                self._faults.append(self._fault(vm))
        return self._checked()

    def _admitted(self) -> Iterator[VmId]:
        """Those whose pools let them in; what fits in the fewest places comes first."""
        # Hosts that sleep count: they can be woken.
        woken = [
            host.but(state=HostState.ON) if host.state is HostState.STANDBY else host
            for host in self._snapshot.hosts.values()
        ]
        vms, pools = self._snapshot.vms.values(), self._snapshot.settings.pools
        books = [Books(woken, vms, pools, resource) for resource in (CPU, MEMORY)]
        for vm in sorted(self._vms.values(), key=self._size, reverse=True):
            shortages = [one.shortage(vm) for one in books]
            short = next((one for one in shortages if one is not None), None)
            if short is None:
                for one in books:
                    one.admit(vm)
                yield vm.id
            else:
                detail = f"{vm.id} is not admitted: {short.sentence}"
                self._faults.append(Fault(code="admission", subject=vm.id, detail=detail))

    def _size(self, vm: Vm) -> tuple[float, float, str]:
        """How much of an average host it takes: what is reserved first, then what it may ask."""
        cpu_mhz, memory_mib = self._usual
        held = max(vm.cpu.reservation_mhz / cpu_mhz, vm.memory.reservation_mib / memory_mib)
        asked = max(vm.vcpus / self._cores, vm.demand.memory_mib / memory_mib)
        return held, asked, vm.id

    def _place_somewhere(self, vm: VmId) -> bool:
        return self._as_is(vm) or self._with_moves(vm) or self._with_a_host_more(vm)

    def _as_is(self, vm: VmId) -> bool:
        """Put it onto the best host where nothing is in the way, and its other half elsewhere."""
        options = self._options(vm)
        pair = self._vms[vm].ft_pair
        other = pair if pair in self._vms and pair not in self._placed else None
        for option in options:
            self._standing.place(vm, option.host)
            second = self._options(other) if other is not None else []
            if other is None or second:
                self._note(vm, option, options)
                if other is not None:
                    self._standing.place(other, second[0].host)
                    self._note(other, second[0], second)
                return True
            self._standing.place(vm, None)
        return False

    def _options(self, vm: VmId) -> list[Option]:
        """The hosts where it could start now, the best first."""
        standing = self._standing
        hosts = [host for host in standing.open_hosts() if not standing.obstacles(vm, host)]
        found = [Option(host, self._goodness.with_(self._vms[vm], host)) for host in hosts]
        return sorted(found, key=lambda one: (one.imbalance, one.host))

    def _note(self, vm: VmId, option: Option, options: Sequence[Option]) -> None:
        others = tuple(one for one in options if one.host != option.host)
        self._placed[vm] = Placed(vm, option.host, option.imbalance, others)
        self._goodness.add(self._vms[vm], option.host)

    def _with_moves(self, vm: VmId) -> bool:
        """Put it onto a host where others make way, as few as possible."""
        standing = self._standing
        standing.problems = {}
        standing.look(Problem("out", vm))
        settlement = settle(standing)
        if standing.where[vm] is None:
            return False
        for choice in settlement.choices:
            self._take(choice)
        return True

    def _take(self, choice: Choice) -> None:
        vm, host, before = choice
        if vm in self._vms:  # it does not run yet, so it need not move
            option = Option(host, self._goodness.with_(self._vms[vm], host))
            self._note(vm, option, ())
        else:
            assert before is not None
            source = self._moves[vm].source if vm in self._moves else before
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
            reason="no host that is on has room",
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
