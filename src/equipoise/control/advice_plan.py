"""The advice of all deciders as one plan: what the loop would execute if all of it were approved.

The proposals pass the same arbitration, the same ordering and the same gate as in the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from equipoise.balance.advice import (
    MANDATORY_PRIORITY,
    BalanceAdvice,
    BalanceCode,
    move_step_id,
    switch_step_id,
)
from equipoise.control.arbitrate import Arbitration, arbitrate
from equipoise.model.action import Migrate, describe
from equipoise.model.host import HostState
from equipoise.model.plan import Intent, Plan, Proposal, Rejection, Step
from equipoise.model.quantity import HostId, PlanId, RuleId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import snapshot_after_actions, with_contention
from equipoise.model.vm import VmState
from equipoise.plan.order import GateFilter, order
from equipoise.plan.verify import Refusal
from equipoise.power.advice import PowerAdvice, PowerCode
from equipoise.spec.rules import broken_soft_rules

ADVICE: PlanId = PlanId("advice")
"""The id of a plan of advice."""
MIB_PER_GIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionWorth:
    """Why an action is advised, and what it is worth.

    Benefit and cost are in host-seconds: the work of one host in one second. A move or switch that
    a rule or the operator requires has no benefit.
    """

    decider: str
    code: str
    priority: int
    automatic: bool = True
    benefit: float | None = None
    evenness: float | None = None
    """The part of the benefit that the lower imbalance itself is worth."""
    cost: float | None = None
    considered: tuple[Rejection, ...] = ()


class AdvisedHost(NamedTuple):
    """A host: its state, its VMs, and their demand as a part of what VMs can use."""

    host: HostId
    state: HostState
    vms: int
    cpu: float
    memory: float


class PlanTotals(NamedTuple):
    """The extent of a plan."""

    actions: int
    moves: int
    moved_gib: float
    move_s: float
    """The sum of the durations of the moves."""
    ends_s: float
    """The end of the last action, with concurrent actions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePlan:
    """All advised actions in the order of execution, accepted by the gate."""

    snapshot: Snapshot
    plan: Plan
    worth: tuple[ActionWorth, ...]
    """One entry per step of the plan."""
    dropped: tuple[Rejection, ...] = ()
    """Actions that are in conflict with more urgent ones, or that the gate refuses."""
    after: Snapshot
    """The state after all actions."""
    unmet: tuple[tuple[RuleId, str], ...] = ()
    """The soft rules that do not hold after all actions, each with the reason."""

    @property
    def totals(self) -> PlanTotals:
        """How much the plan moves, and how long it takes."""
        moved_mib = move_ms = moves = 0
        for step in self.plan.steps:
            if isinstance(step.action, Migrate):
                moves += 1
                moved_mib += self.snapshot.vms[step.action.vm].memory_mib
                move_ms += step.duration_ms
        return PlanTotals(
            actions=len(self.plan.steps),
            moves=moves,
            moved_gib=moved_mib / MIB_PER_GIB,
            move_s=move_ms / 1000,
            ends_s=max((step.end_ms for step in self.plan.steps), default=0) / 1000,
        )

    @property
    def host_loads(self) -> tuple[tuple[AdvisedHost, AdvisedHost], ...]:
        """Each host before and after the plan."""
        pairs = zip(host_loads(self.snapshot), host_loads(self.after), strict=True)
        return tuple(pairs)


def host_loads(snapshot: Snapshot) -> tuple[AdvisedHost, ...]:
    """Return the load of each host; a load above 1 is demand that the host cannot meet."""
    cpu: dict[HostId, int] = dict.fromkeys(snapshot.hosts, 0)
    memory, vms = dict(cpu), dict(cpu)
    for vm in snapshot.vms.values():
        if vm.host is not None:
            vms[vm.host] += not vm.agent
            running = vm.state is VmState.RUNNING
            cpu[vm.host] += running * vm.demand.cpu_mhz
            memory[vm.host] += running * vm.demand.memory_mib
    return tuple(
        AdvisedHost(
            host=name,
            state=host.state,
            vms=vms[name],
            cpu=cpu[name] / max(1, host.usable_cpu_mhz),
            memory=memory[name] / max(1, host.usable_memory_mib),
        )
        for name, host in snapshot.hosts.items()
    )


def plan_advice(
    snapshot: Snapshot,
    proposals: Sequence[Proposal],
    worth: Mapping[tuple[str, StepId], ActionWorth],
    *,
    units: Iterable[Sequence[VmId]] = (),
    top: int | None = None,
) -> AdvicePlan:
    """Return one plan of all proposals, with the actions that need approval.

    :param proposals: with the rules that all intents of a proposal repair, approved or not.
    :param worth: the worth of each intent, by its decider and its id.
    :param units: the VMs that move together.
    :param top: the plan has at most so many actions, the most useful ones.
    """
    approved = [
        proposal.but(intents=(*proposal.intents, *proposal.advised), advised=())
        for proposal in proposals
    ]
    arbitration = arbitrate(approved, ADVICE)
    named = {
        StepId(f"{ADVICE}/{decider}/{step}"): value for (decider, step), value in worth.items()
    }
    choice = _Choice(snapshot, arbitration, named)
    kept = choice.all() if top is None else choice.top(top, [set(unit) for unit in units])
    # A plan without steps repairs nothing, and the gate would refuse its promise.
    ordered = order(snapshot, kept, ADVICE, choice.repairs if kept else ())
    assert not isinstance(ordered, Refusal), "the gate has accepted these intents"
    steps = sorted(ordered.steps, key=lambda step: step.start_ms)
    after = snapshot_after_actions(snapshot, (step.action for step in steps))
    # The next pass remembers what this one found contended.
    after = with_contention(after, (name for proposal in proposals for name in proposal.contended))
    return AdvicePlan(
        snapshot=snapshot,
        plan=ordered.but(base_version=0, steps=_renumbered(steps)),
        worth=tuple(named[step.id] for step in steps),
        dropped=(*arbitration.dropped, *choice.refused),
        after=after,
        unmet=tuple(broken_soft_rules(after)),
    )


def _renumbered(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with short ids: a name within an id could make it too long for a file."""
    new = {step.id: StepId(f"s{number}") for number, step in enumerate(steps, start=1)}
    return tuple(
        step.but(id=new[step.id], after=tuple(new[before] for before in step.after))
        for step in steps
    )


class _Choice:
    """Chooses the intents of a plan: all that pass the gate, or the most useful ones."""

    def __init__(
        self, snapshot: Snapshot, arbitration: Arbitration, worth: Mapping[StepId, ActionWorth]
    ) -> None:
        self._snapshot, self._intents, self._worth = snapshot, arbitration.intents, worth
        self.repairs = arbitration.repairs
        self.refused: list[Rejection] = []

    def all(self) -> tuple[Intent, ...]:
        """Return all intents, or the largest part of them that passes the gate."""
        if not self._intents:
            return ()
        gate = GateFilter(self._snapshot, self.repairs)
        violations = gate.objections(self._intents)
        if not violations:
            return self._intents
        kept = self._filtered(gate)
        ids = {intent.id for intent in kept}
        detail = f"the gate refuses it: {violations[0].detail}"
        self.refused += [
            Rejection(subject=_subject(intent), code="gate-refuses", detail=detail)
            for intent in self._intents
            if intent.id not in ids
        ]
        return kept

    def _filtered(self, gate: GateFilter) -> tuple[Intent, ...]:
        kept = gate.of(self._intents)
        if not kept and self.repairs:
            # A part of the plan does not repair what all of it would.
            self.repairs = ()
            kept = GateFilter(self._snapshot).of(self._intents)
        return kept

    def top(self, count: int, units: Sequence[set[VmId]]) -> tuple[Intent, ...]:
        """Return at most so many intents, the most useful ones, that pass the gate on their own.

        An intent is taken with those that it waits for, and with the moves of its unit.
        """
        every = self.all()
        if len(every) <= count:
            return every
        groups = self._groups(every, units)
        rank = {intent.id: number for number, intent in enumerate(every)}
        usual = sorted(groups, key=lambda step: (self._usefulness(step), rank[step]))
        taken: set[StepId] = set()
        for repairs in dict.fromkeys((self.repairs, ())):
            gate = GateFilter(self._snapshot, repairs)
            for step in usual:
                both = taken | groups[step]
                if step in taken or len(both) > count:
                    continue
                if not gate.objections([intent for intent in every if intent.id in both]):
                    taken = both
            if taken:
                self.repairs = repairs
                break
        return tuple(intent for intent in every if intent.id in taken)

    def _usefulness(self, step: StepId) -> tuple[int, float]:
        """Return a key that is smaller for an intent that is more useful."""
        worth = self._worth[step]
        if worth.benefit is None or worth.priority == MANDATORY_PRIORITY:
            return worth.priority, 0.0
        return worth.priority, (worth.cost or 0.0) - worth.benefit

    def _groups(
        self, intents: Sequence[Intent], units: Sequence[set[VmId]]
    ) -> dict[StepId, set[StepId]]:
        """Return the intents that make sense as first choice, each with those it needs."""
        by_id = {intent.id: intent for intent in intents}
        move_of = {
            intent.action.vm: intent.id for intent in intents if isinstance(intent.action, Migrate)
        }
        mates: dict[StepId, set[StepId]] = {}
        for unit in units:
            together = {move_of[vm] for vm in unit if vm in move_of}
            mates |= dict.fromkeys(together, together)
        # A move that empties a host for standby helps only together with the standby.
        helpers = {
            step
            for intent in intents
            if not isinstance(intent.action, Migrate)
            and self._worth[intent.id].code == PowerCode.SLEEP
            for step in intent.after
        }
        groups = {}
        for intent in intents:
            if intent.id in helpers:
                continue
            group, new = set(), {intent.id}
            while new:
                group |= new
                needed = {before for step in new for before in by_id[step].after}
                needed |= {mate for step in new for mate in mates.get(step, ())}
                new = needed - group
            groups[intent.id] = group
        return groups


def _subject(intent: Intent) -> str:
    return describe(intent.action)


def balance_worth(advice: BalanceAdvice) -> dict[tuple[str, StepId], ActionWorth]:
    """Return the worth of the intents of a balance pass."""
    worth = {
        ("balance", move.transfer.step): ActionWorth(
            decider="balance",
            code=move.code,
            priority=move.priority,
            automatic=move.automatic,
            benefit=move.gain.get("host_s"),
            evenness=move.gain.get("evenness_host_s"),
            cost=move.cost.get("host_s"),
            considered=move.considered,
        )
        for move in advice.moves
    }
    for switch in advice.switches:
        worth["balance", switch_step_id(switch.host)] = ActionWorth(
            decider="balance",
            code=BalanceCode.EVACUATE,
            priority=MANDATORY_PRIORITY,
            automatic=switch.automatic,
        )
    return worth


def power_worth(advice: PowerAdvice) -> dict[tuple[str, StepId], ActionWorth]:
    """Return the worth of the intents of a power pass."""
    worth = {}
    for wake in advice.wakes:
        entry = ActionWorth(
            decider="power", code=wake.code, priority=wake.priority, automatic=wake.automatic
        )
        worth["power", switch_step_id(wake.host)] = entry
    automatic = all(wake.automatic for wake in advice.wakes)
    for move in advice.moves:
        worth["power", move_step_id(move.vm)] = ActionWorth(
            decider="power",
            code=PowerCode.WAKE_RULE,
            priority=MANDATORY_PRIORITY,
            automatic=automatic,
        )
    for standby in advice.standbys:
        base = ActionWorth(
            decider="power",
            code=PowerCode.SLEEP,
            priority=standby.priority,
            automatic=standby.automatic,
        )
        # Benefit and cost belong to the standby as a whole, not to one of its moves.
        for evacuation in standby.evacuations:
            worth["power", move_step_id(evacuation.vm)] = base
        worth["power", switch_step_id(standby.host)] = ActionWorth(
            decider="power",
            code=PowerCode.SLEEP,
            priority=standby.priority,
            automatic=standby.automatic,
            benefit=standby.gain.get("host_s"),
            cost=standby.cost.get("host_s"),
        )
    return worth
