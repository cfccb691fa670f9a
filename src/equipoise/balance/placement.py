"""Initial placement: the hosts on which new VMs start, for one VM or many at once.

A host is chosen that the VM does not overload, with few soft rules broken and headroom left; of
those, the one with the lowest imbalance. If the demand of a new VM is not given, the placement
assumes the maximum: its whole memory and one core per vCPU. If no host fits, other VMs move out of
the way. If that does not help, or each host would be overloaded, hosts are powered on. A failover
reserve that holds before the placement holds after it.

The first placement ignores the rules that the search does not know. If the gate refuses it, the VMs
are placed once more, on hosts that these rules allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, NamedTuple

from equipoise.balance.advice import IntentBuilder, Transfer, move_step_id, snapshot_after_moves
from equipoise.balance.placement_score import PlacementScore
from equipoise.balance.repair.exact_repair import place_exactly
from equipoise.balance.repair.failover import FailoverReserve, LostVm
from equipoise.balance.repair.faults import BalanceFault, find_host_obstacles
from equipoise.balance.repair.move_order import VmAssignment
from equipoise.balance.repair.placement_state import PlacementProblem, PlacementState, ProblemKind
from equipoise.balance.repair.repair_search import makes_overload_worse, search_repair
from equipoise.balance.rules import PlacementRules, read_rules
from equipoise.balance.start_action import (
    at_full_load,
    host_to_leave,
    is_demand_known,
    is_placeable,
    overload_warnings,
    start_action,
)
from equipoise.balance.start_rules import StartRules, VmChange
from equipoise.capacity.admission import CPU_RESERVATIONS, MEMORY_RESERVATIONS, PoolReservations
from equipoise.model.action import Action, PowerOn
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState
from equipoise.model.plan import Intent, Violation
from equipoise.model.quantity import HostId, RuleId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.plan.order import GateFilter

POWER_ON_REASON: Final = "no host that is on can take the VM"
"""The reason of every power-on of a placement."""
OPTIONS_JUDGED_MAX: Final = 16
"""So many hosts that the rules allow are enough to choose from; each costs a judgement."""
EXACT_FAILURES_MAX: Final = 3
"""After so many VMs without a plan, the exact planner is not called again in a placement."""


class PlacementOption(NamedTuple):
    """A host on which a VM could start, and the imbalance of the cluster then."""

    host: HostId
    imbalance: float
    overload: float = 0.0
    """By which part of its capacity the host would be overloaded more than now."""


@dataclass(frozen=True, slots=True)
class StartAdvice:
    """The host on which a VM should start, and the alternatives."""

    vm: VmId
    host: HostId
    imbalance: float
    alternatives: tuple[PlacementOption, ...]
    demand: Demand
    """The demand that the placement counts with."""
    estimated: bool
    """Whether this demand is the maximum, because none is given."""
    action: Action
    """How the VM gets to the host: it starts, resumes or migrates."""
    source: HostId | None
    """The host of a VM that resumes or migrates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementAdvice:
    """The hosts of new VMs, and the moves and power-ons that must come first."""

    placed: tuple[StartAdvice, ...]
    moves: tuple[Transfer, ...]
    wakes: tuple[HostId, ...]
    faults: tuple[BalanceFault, ...]
    intents: tuple[Intent, ...]
    """All of it as intents that pass the gate."""
    warnings: tuple[BalanceFault, ...] = ()
    """The starts that overload a host, because no host has capacity without overload."""


class _JudgedIntents(NamedTuple):
    """The intents of a placement, and why the gate refuses them together."""

    first: tuple[Intent, ...]
    """The moves and power-ons that come before the starts."""
    boots: tuple[Intent, ...]
    violations: tuple[Violation, ...]


def place_vms(
    snapshot: Snapshot,
    vms: Sequence[VmId],
    estimates: Estimates,
    *,
    known: bool = False,
    resident: bool = False,
) -> PlacementAdvice:
    """Return a host for each of the VMs, which must be in state ready.

    With ``known``, the demand of the VMs is taken from the snapshot, because they have run before.
    Without it, only a demand of zero is unknown. With ``resident``, sleeping VMs resume, on their
    host or on another one, and running VMs move to the best other host.
    """
    ready = [vm for vm in vms if is_placeable(snapshot.vms[vm], resident=resident)]
    faults = [
        BalanceFault(
            code="not-ready", subject=vm, detail=f"{vm} is {snapshot.vms[vm].state}, not ready"
        )
        for vm in vms
        if vm not in ready
    ]
    estimated = frozenset(vm for vm in ready if not known and not is_demand_known(snapshot.vms[vm]))
    fastest = max((host.mhz_per_core for host in snapshot.hosts.values()), default=0)
    new_vms = [
        at_full_load(snapshot.vms[vm], fastest) if vm in estimated else snapshot.vms[vm]
        for vm in ready
    ]
    rules = read_rules(snapshot)
    placer = _Placer(snapshot, new_vms, estimates, rules, estimated)
    placer.decide()
    unknown = (*rules.gate_only_rules, *(rule for rule, _ in rules.failover_counts))
    # Mostly the gate accepts the best hosts at once. Only a refusal pays for the judgement of each
    # candidate.
    if unknown and placer.objections():
        start_rules = StartRules(snapshot, unknown, estimates)
        judged = _Placer(snapshot, new_vms, estimates, rules, estimated, start_rules)
        judged.decide()
        advice = judged.advice()
        # VMs that a rule allows only together pass the first placement, but not one by one.
        if len(advice.placed) < placer.placed_count:
            advice = max(advice, placer.advice(), key=lambda found: len(found.placed))
    else:
        advice = placer.advice()
    return replace(advice, faults=(*faults, *advice.faults))


class _Placer:
    """Places VMs one by one, the hardest to place first."""

    def __init__(
        self,
        snapshot: Snapshot,
        vms: Iterable[Vm],
        estimates: Estimates,
        rules: PlacementRules,
        estimated: frozenset[VmId],
        start_rules: StartRules | None = None,
    ) -> None:
        self._snapshot, self._estimates, self._estimated = snapshot, estimates, estimated
        self._start_rules = start_rules
        self._refusing: dict[VmId, dict[HostId, list[RuleId]]] = {}
        """Per VM, the hosts without another obstacle that ``start_rules`` refuse, and the rules."""
        self._exact_failures = 0
        self._gate = GateFilter(snapshot)
        self._judged: _JudgedIntents | None = None
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
        self._rules = rules
        self._placed: dict[VmId, StartAdvice] = {}
        self._moves: dict[VmId, Transfer] = {}
        self._wakes: list[HostId] = []
        self._faults: list[BalanceFault] = []
        self._warnings: list[BalanceFault] = []
        self._without_restart: dict[VmId, LostVm] = {}
        """Per VM, which VM could not restart if it started on the host that was tried last."""
        self._load_state(snapshot)
        # A reserve that does not hold now is the work of a balance pass and blocks no start.
        self._reserve = FailoverReserve(rules)
        self._keeps_reserve = self._reserve.find_lost_vm(self._placement_state) is None

    def _load_state(self, snapshot: Snapshot) -> None:
        """Build the placement state and the scores; powered-on hosts are part of ``snapshot``."""
        self._placement_state = PlacementState(snapshot, self._rules, self._vms.values())
        # A fresh state knows nothing of the decisions made so far: they are applied again.
        for vm, transfer in self._moves.items():
            self._placement_state.place(vm, transfer.target)
        for vm, placed in self._placed.items():
            self._placement_state.place(vm, placed.host)
        self._score = PlacementScore(snapshot, self._placement_state)

    def decide(self) -> None:
        """Place all VMs; the gate judges the result afterwards."""
        for vm in sorted(self._vms.values(), key=self._size):
            if vm.id in self._placed:
                continue  # together with its partner
            if not self._is_admitted(vm):
                continue
            if not self._place_vm(vm.id):
                self._release_admission(vm)
                self._faults.append(self._fault(vm.id))

    def _is_admitted(self, vm: Vm) -> bool:
        """Return whether the pools admit a VM and its fault-tolerant partner; reserve if so."""
        if vm.state is VmState.RUNNING:
            return True  # its pool has admitted it already
        for member in self._with_ft_pair(vm):
            # Members are admitted one after the other, because both of a pair draw on the same
            # pool.
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
            if member is until or member.state is VmState.RUNNING:
                break
            for reservations in self._reservations:
                reservations.release(member)

    def _with_ft_pair(self, vm: Vm) -> list[Vm]:
        """Return a VM and its fault-tolerant partner, if that is to be placed as well."""
        partner = None if vm.ft_pair is None else self._vms.get(vm.ft_pair)
        together = partner is not None and partner.id not in self._placed
        return [vm, partner] if partner is not None and together else [vm]

    def _size(self, vm: Vm) -> tuple[float, float, str]:
        """Return a sort key: what holds much capacity first, then large demands."""
        cpu_mhz, memory_mib = self._mean_capacity
        # The configured memory is at least the reservation, and limited like it.
        held = max(vm.cpu.reservation_mhz / cpu_mhz, vm.memory_mib / memory_mib)
        asked = max(vm.vcpus / self._cores, vm.demand.memory_mib / memory_mib)
        # Large VMs first: small ones fit into the gaps that remain. The name makes the order total.
        return -held, -asked, vm.id

    def _place_vm(self, vm: VmId) -> bool:
        if self._place_directly(vm):
            return True
        # Moves make room for what a VM reserves. They do not help if only the load is too high.
        overloads = bool(self._options(vm, overload=True))
        can_make_room = not overloads and self._vms[vm].state is VmState.READY
        if can_make_room and (self._place_with_moves(vm) or self._place_exactly(vm)):
            return True
        if self._place_with_power_on(vm):
            return True
        if overloads:
            return self._place_with_overload(vm)
        return can_make_room and self._place_with_moves(vm, overload=True)

    def _place_directly(self, vm: VmId, *, overload: bool = False) -> bool:
        """Place a VM on the best host without obstacle, and its partner on another host."""
        options = self._options(vm, overload=overload)
        partner = next(
            (member.id for member in self._with_ft_pair(self._vms[vm]) if member.id != vm), None
        )
        for number, option in enumerate(options):
            # The partner is judged with the VM on its host. If no host is left for the partner, the
            # next option of the VM is tried.
            self._record(vm, option, options[number:])
            partner_options = []
            if partner is not None:
                partner_options = self._options(partner, overload=overload)
                if partner_options:
                    self._record(partner, partner_options[0], partner_options)
            if (partner is None or partner_options) and self._reserve_holds(vm):
                return True
            if partner_options and partner is not None:
                self._undo(partner)
            self._undo(vm)
        return False

    def _place_with_overload(self, vm: VmId) -> bool:
        """Place a VM on the host that it overloads least, and say so."""
        if not self._place_directly(vm, overload=True):
            return False
        start = self._placed[vm]
        kind = "estimated" if start.estimated else "given"
        detail = (
            f"{vm} starts on {start.host}, which its {kind} demand of {start.demand.cpu_mhz:,} MHz "
            f"and {start.demand.memory_mib:,} MiB overloads; no host has as much capacity"
        )
        self._warnings.append(
            BalanceFault(code="host-overloaded", subject=start.host, detail=detail, vms=(vm,))
        )
        return True

    def _reserve_holds(self, vm: VmId) -> bool:
        """Return whether all VMs could still restart after the failures the rules prepare for."""
        if not self._keeps_reserve:
            return True
        lost = self._reserve.find_lost_vm(self._placement_state)
        if lost is not None:
            self._without_restart[vm] = lost
        return lost is None

    def _options(self, vm: VmId, *, overload: bool) -> list[PlacementOption]:
        """Return the hosts on which a VM can start now, best first.

        Without ``overload``, only those that it does not overload.
        """
        placement_state = self._placement_state
        ranked = []
        left = host_to_leave(self._snapshot.vms[vm])
        for host in placement_state.open_hosts():
            if host == left or placement_state.has_obstacle(vm, host):
                continue
            rank = self._score.rank(self._vms[vm], host)
            if overload or rank[0] == 0.0:
                score = self._score.imbalance_with(self._vms[vm], host)
                ranked.append((rank, PlacementOption(host, score, rank[0])))
        # Equal hosts are taken by name, so that the same inventory always gives the same answer.
        ranked.sort(key=lambda pair: (pair[0], pair[1].imbalance, pair[1].host))
        options = [option for _, option in ranked]
        return options if self._start_rules is None else self._allowed(vm, options)

    def _allowed(self, vm: VmId, options: Sequence[PlacementOption]) -> list[PlacementOption]:
        """Return the first options that the rules allow; remember which they refuse."""
        start_rules = self._following_rules()
        allowed: list[PlacementOption] = []
        refusing = self._refusing.setdefault(vm, {})
        for option in options:
            if rules := start_rules.refusing(vm, option.host):
                refusing[option.host] = rules
            else:
                allowed.append(option)
            if len(allowed) == OPTIONS_JUDGED_MAX:
                break
        return allowed

    def _following_rules(self) -> StartRules:
        """Return the rules that the search does not know, in the state after all decisions."""
        assert self._start_rules is not None
        decided = {vm: transfer.target for vm, transfer in self._moves.items()}
        decided |= {vm: start.host for vm, start in self._placed.items()}
        self._start_rules.follow(decided, self._wakes)
        return self._start_rules

    def _record(
        self, vm: VmId, option: PlacementOption, options: Sequence[PlacementOption]
    ) -> None:
        """Place a VM on a host."""
        if vm in self._placed:
            self._undo(vm)
        others = tuple(other for other in options if other.host != option.host)
        demand = self._score.assumed(self._vms[vm], option.host)
        self._placed[vm] = StartAdvice(
            vm,
            option.host,
            option.imbalance,
            others,
            demand,
            vm in self._estimated,
            start_action(self._snapshot.vms[vm], option.host),
            self._snapshot.vms[vm].host,
        )
        self._placement_state.place(vm, option.host)
        self._score.add(self._vms[vm], option.host)

    def _undo(self, vm: VmId) -> None:
        """Remove a VM from its host."""
        self._score.remove(self._vms[vm], self._placed.pop(vm).host)
        self._placement_state.place(vm, None)

    def _place_with_moves(self, vm: VmId, *, overload: bool = False) -> bool:
        """Place a VM on a host from which the fewest other VMs move away."""
        placement_state = self._placement_state
        before = placement_state.excess_demand()
        # Only this VM is a problem here. Rules that are broken elsewhere are the work of a balance
        # pass and must not cause moves in an initial placement.
        placement_state.problems = {}
        placement_state.refresh_problem(PlacementProblem(ProblemKind.MUST_MOVE, vm))
        search_result = search_repair(placement_state)
        if placement_state.host_of[vm] is None:
            return False
        worse = makes_overload_worse(placement_state, before)
        if (worse and not overload) or not self._reserve_holds(vm):
            self._load_state(_with_hosts_on(self._snapshot, self._wakes))
            return False
        if self._start_rules is not None:
            changes = [
                VmChange(assigned.vm, assigned.host) for assigned in search_result.assignments
            ]
            if rules := self._following_rules().refusing_together(changes):
                host = placement_state.host_of[vm]
                assert host is not None
                self._refusing.setdefault(vm, {})[host] = rules
                self._load_state(_with_hosts_on(self._snapshot, self._wakes))
                return False
        self._apply_assignments(search_result.assignments)
        if worse:
            now = placement_state.excess_demand()
            self._warnings += overload_warnings(vm, before, now)
        return True

    def _place_exactly(self, vm: VmId) -> bool:
        """Let the exact planner place a VM, with moves of others, if only rules refuse it."""
        rules = dict.fromkeys(
            rule for refused in self._refusing.get(vm, {}).values() for rule in refused
        )
        if not rules or self._exact_failures >= EXACT_FAILURES_MAX:
            return False
        now = _with_hosts_on(self._snapshot, self._wakes)
        placed = {
            start.vm: self._snapshot.vms[start.vm].but(state=VmState.RUNNING, host=start.host)
            for start in self._placed.values()
        }
        now = snapshot_after_moves(
            replace(now, vms=now.vms.but(placed)),
            ((move.vm, move.target) for move in self._moves.values()),
        )
        targets = place_exactly(now, self._rules, vm, tuple(rules))
        if targets is None:
            self._exact_failures += 1
            return False
        assignments = [VmAssignment(name, to, now.vms[name].host) for name, to in targets.items()]
        before = self._placement_state.excess_demand()
        for assignment in assignments:
            self._placement_state.place(assignment.vm, assignment.host)
        worse = makes_overload_worse(self._placement_state, before)
        if worse or not self._reserve_holds(vm):
            self._load_state(_with_hosts_on(self._snapshot, self._wakes))
            return False
        self._apply_assignments(assignments)
        return True

    def _apply_assignments(self, assignments: Iterable[VmAssignment]) -> None:
        for assignment in sorted(assignments, key=lambda assignment: assignment.vm in self._vms):
            self._apply_assignment(assignment)  # VMs that move away come first

    def _apply_assignment(self, assignment: VmAssignment) -> None:
        vm, host, before = assignment
        if vm in self._vms:  # not started yet: it is placed elsewhere instead of moved
            self._record(
                vm, PlacementOption(host, self._score.imbalance_with(self._vms[vm], host)), ()
            )
            return
        assert before is not None
        # A VM that moves away twice migrates once, from its first host to its last.
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
        # The largest host takes most of the VMs that follow, so fewer hosts are powered on.
        for host in sorted(standby, key=lambda name: (-self._snapshot.hosts[name].cpu_mhz, name)):
            before = self._placement_state, self._score
            self._wakes.append(host)
            self._load_state(_with_hosts_on(self._snapshot, self._wakes))
            if self._place_directly(vm):
                return True
            # A host that is woken must end the overload, or the VM starts without it.
            can_make_room = self._vms[vm].state is VmState.READY
            full = can_make_room and not self._options(vm, overload=True)
            if full and self._place_with_moves(vm):
                return True
            self._wakes.pop()
            self._placement_state, self._score = before
        return False

    def _fault(self, vm: VmId) -> BalanceFault:
        if vm in self._without_restart:
            return self._reserve_fault(vm, self._without_restart[vm])
        refusing = self._refusing.get(vm, {})
        obstacles = find_host_obstacles(self._placement_state, vm, refusing)
        return BalanceFault(
            # Without these rules, the VM would have a host.
            code="gate-refuses" if refusing else "no-target-host",
            subject=vm,
            detail=f"{vm} {obstacles.sentence}",
            rules=tuple(dict.fromkeys(map(str, obstacles.rules))),
            unblock="; or ".join(obstacles.remedies),
        )

    def _reserve_fault(self, vm: VmId, lost: LostVm) -> BalanceFault:
        detail = f"with {vm} running, {lost.vm} could not restart if {lost.host} fails"
        return BalanceFault(
            code="failover-reserve",
            subject=vm,
            detail=detail,
            rules=tuple(map(str, self._reserve.rules)),
            vms=(lost.vm,),
            unblock=f"add a host, lower the reservation of {vm}, or relax the rule",
        )

    @property
    def placed_count(self) -> int:
        """How many VMs have a host, before the gate judges it."""
        return len(self._placed)

    def objections(self) -> tuple[Violation, ...]:
        """Return why the gate refuses the decisions all together; empty if it accepts them."""
        return self._judge().violations

    def _judge(self) -> _JudgedIntents:
        """Return the intents of all decisions with the objections of the gate, judged once."""
        if self._judged is None:
            builder = IntentBuilder(self._snapshot, self._estimates)
            first = [
                builder.of(StepId(f"wake-{host}"), PowerOn(host=host), POWER_ON_REASON)
                for host in self._wakes
            ]
            first += [builder.move(transfer) for transfer in self._moves.values()]
            boots = [
                builder.of(
                    _start_step_id(start.vm),
                    start.action,
                    f"the imbalance is {start.imbalance:.3f} with the VM there",
                )
                for start in self._placed.values()
            ]
            violations = self._gate.objections((*first, *boots))
            self._judged = _JudgedIntents(tuple(first), tuple(boots), violations)
        return self._judged

    def advice(self) -> PlacementAdvice:
        """Return the decisions without what the gate refuses."""
        first, boots, violations = self._judge()
        passed = boots
        # Mostly the gate accepts everything at once. Only a refusal pays for the search of the
        # subset that passes: first what must happen before, then the starts that remain possible.
        if violations:
            accepted = self._gate.of(first)
            passed = self._gate.of(boots, accepted)
            first = accepted
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
            warnings=tuple(
                warning
                for warning in self._warnings
                if started.issuperset(_start_step_id(VmId(vm)) for vm in warning.vms)
            ),
        )


def _with_hosts_on(snapshot: Snapshot, hosts: Sequence[HostId]) -> Snapshot:
    on = {host: snapshot.hosts[host].but(state=HostState.ON) for host in hosts}
    return replace(snapshot, hosts=snapshot.hosts.but(on))


def _start_step_id(vm: VmId) -> StepId:
    return StepId(f"start-{vm}")
