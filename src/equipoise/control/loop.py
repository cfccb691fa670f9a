"""The control loop: observe, propose, arbitrate, order, verify, execute, record.

It owns the believed state of the world (the ledger). A decision is in the journal before the
world receives it. A loop that starts on a journal with events continues where the last one
stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from equipoise.capacity.ledger import CapacityLedger
from equipoise.control.arbitrate import arbitrate, ask_deciders
from equipoise.control.config import ControlConfig
from equipoise.control.drift import drift
from equipoise.control.early_pass import Urgency, urgency
from equipoise.control.executor import Executor, instruction_for
from equipoise.control.leader_epoch import next_leader_epoch
from equipoise.control.ports import (
    CancelAction,
    Decider,
    EventDriven,
    EventLog,
    PlanReviewer,
    World,
)
from equipoise.control.recovery import end_abandoned_plan, recover_run
from equipoise.errors import Conflict
from equipoise.model.action import PowerOn, RoleAction
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ClusterLoaded,
    Event,
    LeaderEpochStarted,
    PlanAccepted,
    PlanCancelled,
    PlanRefused,
    ProposalMade,
    ProposalsArbitrated,
    SlotsFilled,
)
from equipoise.model.plan import Intent, Plan, Violation
from equipoise.model.quantity import PlanId, StepId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import Judge, Refusal, VerifiedPlan, order, verify


class ControlLoop:
    """One control loop over one world, with one journal."""

    def __init__(
        self,
        world: World,
        journal: EventLog,
        *,
        deciders: Sequence[Decider] = (),
        judges: Sequence[Judge] = (),
        config: ControlConfig | None = None,
    ) -> None:
        self._world = world
        self._journal = journal
        self._deciders = [decider for decider in deciders if not isinstance(decider, EventDriven)]
        self._event_deciders = [decider for decider in deciders if isinstance(decider, EventDriven)]
        self._judges = judges
        self._config = config or ControlConfig()
        # Empty until the journal or the first observation fills it through events.
        self._ledger = CapacityLedger(Snapshot())
        self._executor: Executor | None = None
        self._side_executors: dict[PlanId, Executor] = {}
        """What runs beside the main plan: plans of event-driven deciders, and the last actions of
        plans that have made room."""
        self._executors_cache: tuple[Executor, ...] | None = None
        self._used_step_ids: set[StepId] = set()
        """The ids of all steps so far: a world identifies an attempt by its step id."""
        self._outcome_unknown = False
        """Whether the outcome of an action is unknown since the last observation."""
        self._journal_failed = False
        self._reviewers = [decider for decider in deciders if isinstance(decider, PlanReviewer)]
        self._next_pass_ms = self._next_review_ms = self._last_pass_ms = 0
        self._lost_vms_ms: int | None = None
        """When a plan that is under way makes room for the restart of lost VMs, if any."""
        if len(journal):
            self._recover()
        else:
            self._load_cluster()
        self._now_ms = self._ledger.draft.at_ms
        self._start_leader_epoch()
        self._now_ms = self._ledger.draft.at_ms
        self._next_pass_ms = self._next_review_ms = self._last_pass_ms = self._now_ms
        self._lost_vms_ms = None

    @property
    def now_ms(self) -> int:
        """The time of the latest event, or up to which the loop has waited."""
        return self._now_ms

    @property
    def idle(self) -> bool:
        """Whether no plan runs, except beside the main plan."""
        return self._executor is None

    def snapshot(self) -> Snapshot:
        """Return the state of the world as the loop believes it."""
        return self._ledger.draft.freeze()

    def run(self, until_ms: int) -> None:
        """Run a pass every ``pass_interval_ms`` and execute its plan, until the given time.

        An event that needs a pass gets it ``pass_delay_ms`` later (``early_pass``).
        """
        while True:
            if self.idle and self._now_ms >= self._next_pass_ms:
                self._run_pass()
            elif self._lost_vms_ms is not None and self._now_ms >= self._lost_vms_ms:
                self._make_room_for_lost_vms()
                continue
            # No pass while a plan runs: it would decide on a state that the plan is changing.
            elif not self.idle and self._has_review and self._now_ms >= self._next_review_ms:
                self._review_plan()
            self._advance()
            if self._now_ms >= until_ms:
                return
            self._wait(min(until_ms, self._next_ms(until_ms)))

    def _next_ms(self, until_ms: int) -> int:
        """Return the time of the next pass, or of the next review of the running plan."""
        if self.idle:
            return self._next_pass_ms
        next_ms = self._next_review_ms if self._has_review else until_ms
        return next_ms if self._lost_vms_ms is None else min(next_ms, self._lost_vms_ms)

    @property
    def _has_review(self) -> bool:
        """Whether the deciders review the running plan."""
        return bool(self._reviewers) and self._has_own_plan

    @property
    def _has_own_plan(self) -> bool:
        """Whether the running plan is one that this loop has made."""
        if self._executor is None:
            return False
        plan = self._executor.plan
        # Arbitration prefixes the step ids of the loop's own plans with the id of the plan.
        return any(step.id.startswith(f"{plan.id}/") for step in plan.steps[:1])

    def execute(self, plan: Plan) -> VerifiedPlan | Refusal:
        """Verify a plan of the caller for the present state, and execute it to its end."""
        verdict = self.submit(plan)
        if isinstance(verdict, VerifiedPlan):
            self.finish()
        return verdict

    def submit(self, plan: Plan) -> VerifiedPlan | Refusal:
        """Verify a plan for the present state; the next ``run`` starts to execute it."""
        if self._executor is not None:
            running = self._executor.plan.id
            raise Conflict(
                f"plan {running} is still running: wait for its end or cancel it",
                code="plan-running",
            )
        return self._submit(plan)

    def finish(self) -> None:
        """Execute the running plan, if there is one, to its end."""
        self._advance()
        # Role plans of event-driven deciders may follow each other without end.
        while self._executor is not None or (self._side_executors and not self._event_deciders):
            self._wait(None)
            self._advance()

    def cancel(self, *, abort: bool = False, reason: str = "") -> None:
        """Cancel the running plan: no further step starts. ``abort`` cancels running actions."""
        if self._executor is not None:
            plan = self._executor.plan.id
            self._record([PlanCancelled(at_ms=self._now_ms, plan=plan, abort=abort, reason=reason)])
            self._run_executors()

    def _load_cluster(self) -> None:
        observed = self._world.observe()
        self._record([ClusterLoaded(at_ms=observed.at_ms, inventory=observed.inventory())])

    def _start_leader_epoch(self) -> None:
        """Become the leader: start an epoch higher than that of every earlier controller."""
        if self._event_deciders and self._ledger.draft.settings.layout is not None:
            if self._ledger.draft.role_state.epoch:
                self._observe()  # the journal has no events of the time without a controller
            epoch = next_leader_epoch(self._ledger.draft.role_state.epoch)
            self._record([LeaderEpochStarted(at_ms=self._now_ms, epoch=epoch)])

    def _recover(self) -> None:
        """Continue where the journal ends, and send the open instructions to the world again."""
        recovered = recover_run(self._journal)
        self._ledger = CapacityLedger(recovered.snapshot)
        self._used_step_ids = recovered.used_step_ids
        self._outcome_unknown = recovered.outcome_unknown
        refused: list[Plan] = []
        for event in recovered.events:
            # Verified again: an executor accepts only a plan of the gate, also after a crash.
            if isinstance(event, PlanAccepted) and event.plan.id in recovered.open_plans:
                verdict = verify(self.snapshot(), event.plan, self._judges)
                if isinstance(verdict, VerifiedPlan):
                    self._start_executor(Executor(verdict, self._ledger, self._config))
                else:  # the judges of this loop are stricter than those of the last one
                    refused.append(event.plan)
            self._apply(event)
        for executor in self._executors():
            for instruction in executor.open_instructions():
                self._world.perform(instruction)
        for plan in refused:
            own = {step.id for step in plan.steps}
            for running in self._ledger.draft.in_flight.values():
                if running.step.id in own:
                    self._world.perform(CancelAction(running.step.id, running.attempt))
            self._record(end_abandoned_plan(plan, recovered.events, self._ledger.draft))

    def _start_executor(self, executor: Executor) -> None:
        """Add an executor: beside the main plan if all its actions are role actions."""
        if all(isinstance(step.action, RoleAction) for step in executor.plan.steps):
            self._side_executors[executor.plan.id] = executor
        else:
            self._executor = executor
        self._executors_cache = None

    def _executors(self) -> tuple[Executor, ...]:
        """Return all executors, the one of the main plan first."""
        if self._executors_cache is None:
            main = () if self._executor is None else (self._executor,)
            self._executors_cache = (*main, *self._side_executors.values())
        return self._executors_cache

    def _run_pass(self) -> None:
        """Run one pass: observe, propose, arbitrate, order, verify, and start the plan."""
        self._last_pass_ms = self._now_ms
        self._observe()
        # Whatever the observation has found is known to this pass.
        self._next_pass_ms = self._last_pass_ms + self._config.pass_interval_ms
        self._lost_vms_ms = None
        snapshot = self.snapshot()
        proposals = ask_deciders(self._deciders, snapshot)
        self._record(ProposalMade(at_ms=self._now_ms, proposal=proposal) for proposal in proposals)
        plan_id = PlanId(f"plan-{self._ledger.draft.version}")
        intents, dropped, repairs = arbitrate(proposals, plan_id)
        if dropped:
            self._record([ProposalsArbitrated(at_ms=self._now_ms, dropped=dropped)])
        if intents:
            # A new snapshot: the recorded proposals have raised the version since the pass began.
            ordered = order(self.snapshot(), intents, plan_id, repairs)
            if isinstance(ordered, Refusal):
                self._refuse(ordered)
            else:
                self._submit(ordered)

    def _advance(self) -> None:
        """Run executors and event-driven deciders until none of them has anything to do now."""
        self._run_executors()
        while self._run_event_deciders():
            self._run_executors()

    def _run_event_deciders(self) -> bool:
        """Run the event-driven deciders that are due; return whether any of them was."""
        was_due = False
        for decider in self._event_deciders:
            # Read before each call: the plan of the decider before may have changed it.
            due_ms = decider.due_ms()
            if due_ms is None or due_ms > self._now_ms:
                continue
            was_due = True
            if self._outcome_unknown:
                self._observe()
            at_ms = self._now_ms
            proposal = decider.propose(replace(self.snapshot(), at_ms=at_ms))
            if proposal.intents or proposal.slot_assignments:
                self._record([ProposalMade(at_ms=at_ms, proposal=proposal)])
            self._record(
                SlotsFilled(
                    at_ms=at_ms,
                    group=assignment.group,
                    slots=assignment.slots,
                    reason=assignment.reason,
                )
                for assignment in proposal.slot_assignments
            )
            plan_id = PlanId(f"{proposal.decider}-{self._ledger.draft.version}")
            self._start_role_plan(arbitrate([proposal], plan_id).intents, plan_id)
        return was_due

    def _start_role_plan(self, intents: Sequence[Intent], plan_id: PlanId) -> None:
        """Verify and start a plan of role actions, without the intents that the gate refuses."""
        while intents:
            ordered = order(self.snapshot(), intents, plan_id, base=self._ledger)
            if isinstance(ordered, Plan):
                self._submit(ordered)
                return
            self._refuse(ordered)
            plan_id = PlanId(f"{plan_id}.")
            blamed = {violation.step for violation in ordered.violations}
            remaining = [intent for intent in intents if intent.id not in blamed]
            # A refusal that names no step would come again for ever: give up then.
            intents = remaining if len(remaining) < len(intents) else ()

    def _review_plan(self) -> None:
        """Observe, and cancel the running plan if a reviewer has a reason.

        A plan may take longer than the state stays as it was when the plan was made.
        """
        self._next_review_ms = self._now_ms + self._config.pass_interval_ms
        assert self._executor is not None
        self._observe()
        for reviewer in self._reviewers:
            remaining = self._executor.remaining()
            reason = reviewer.review(self.snapshot(), remaining) if remaining else ""
            if reason:
                plan = self._executor.plan.id
                self._record([PlanCancelled(at_ms=self._now_ms, plan=plan, reason=reason)])
                return

    def _call_pass(self, at_ms: int, needed: Urgency) -> None:
        """Let the next pass run soon after an event; an earlier one keeps its time."""
        if needed is Urgency.NONE or not self._deciders:
            return
        # An event that arrives late was unknown to the last pass.
        due_ms = max(at_ms, self._last_pass_ms) + self._config.pass_delay_ms
        self._next_pass_ms = min(self._next_pass_ms, due_ms)
        if needed is Urgency.LOST_VMS:
            known_ms = self._lost_vms_ms
            self._lost_vms_ms = due_ms if known_ms is None else min(known_ms, due_ms)

    def _make_room_for_lost_vms(self) -> None:
        """Cancel what has not started of the running plan, so that the next pass runs now.

        The running actions end beside the next plan, on the same ledger. A plan of the operator is
        executed to its end.
        """
        self._lost_vms_ms = None
        if self._has_own_plan and self._executor is not None:
            plan, reason = self._executor.plan.id, "VMs are lost and start first"
            cancelled = PlanCancelled(at_ms=self._now_ms, plan=plan, reason=reason, makes_room=True)
            self._record([cancelled])

    def _observe(self) -> None:
        """Observe the world, and record how it differs from the believed state."""
        observed = self._world.observe()
        self._now_ms = max(self._now_ms, observed.at_ms)
        self._record(drift(self.snapshot(), observed))
        self._outcome_unknown = False

    def _submit(self, plan: Plan) -> VerifiedPlan | Refusal:
        if self._outcome_unknown:
            # The observation raises the version, so the gate refuses this plan as stale: it was
            # made without the unknown outcome.
            self._observe()
        verdict = self._refuse_reused_ids(plan) or verify(
            self.snapshot(), plan, self._judges, self._ledger
        )
        if isinstance(verdict, Refusal):
            self._refuse(verdict)
            return verdict
        executor = Executor(verdict, self._ledger, self._config)
        accepted = PlanAccepted(at_ms=self._now_ms, plan=plan)
        # Between append and apply: the executor must exist when the event reaches all executors.
        self._append([accepted])
        self._start_executor(executor)
        self._next_review_ms = self._now_ms + self._config.pass_interval_ms
        self._apply(accepted)
        return verdict

    def _refuse_reused_ids(self, plan: Plan) -> Refusal | None:
        violations = tuple(
            Violation(
                constraint="form",
                at_ms=step.start_ms,
                step=step.id,
                detail=f"an earlier plan has a step with the id {step.id}",
                code="duplicate-step",
            )
            for step in plan.steps
            if step.id in self._used_step_ids
        )
        return Refusal(plan, violations) if violations else None

    def _refuse(self, refusal: Refusal) -> None:
        self._record(
            [PlanRefused(at_ms=self._now_ms, plan=refusal.plan, violations=refusal.violations)]
        )

    def _run_executors(self) -> None:
        """Collect the decisions of the executors, record them, then send the instructions."""
        decisions: list[Event] = []
        before = -1
        while len(decisions) > before:  # an end in one plan can free capacity for another one
            before = len(decisions)
            for executor in self._executors():
                while (decision := executor.decide(self._now_ms)) is not None:
                    self._apply(decision)
                    decisions.append(decision)
        # One append for all decisions of the moment: a write to disk is the slow part.
        self._append(decisions)
        for decision in decisions:
            instruction = instruction_for(decision)
            if instruction is not None:
                self._world.perform(instruction)

    def _wait(self, until_ms: int | None) -> None:
        """Wait for the next event of the world, at most to the next alarm, and record it."""
        alarms = [executor.alarm_ms() for executor in self._executors()]
        alarms += [decider.due_ms() for decider in self._event_deciders]
        times = [time_ms for time_ms in (until_ms, *alarms) if time_ms is not None]
        assert times, "nothing to wait for"
        # An alarm may lie in the past after a late event; time never goes back.
        limit_ms = max(self._now_ms, min(times))
        event = self._world.next_event(limit_ms)
        if event is None:
            self._now_ms = limit_ms
        while event is not None:
            self._now_ms = max(self._now_ms, event.at_ms)
            self._record([event])
            # Event-driven deciders run only after all events of the same millisecond are known.
            event = self._world.next_event(self._now_ms) if self._event_deciders else None

    def _record(self, events: Iterable[Event]) -> None:
        """Append events to the journal, then apply them."""
        batch = tuple(events)
        self._append(batch)
        for event in batch:
            self._apply(event)

    def _append(self, events: Sequence[Event]) -> None:
        """Append events. After a failure the believed state may differ from the journal."""
        if self._journal_failed:
            raise Conflict(
                "the journal could not be written: open it again with a new loop",
                code="journal-failed",
            )
        if events:
            # Set before the write: after an exception it is unknown how much is on disk.
            self._journal_failed = True
            self._journal.append(events)
            self._journal_failed = False

    def _apply(self, event: Event) -> None:
        """Apply a recorded event to the ledger, the executors and the event-driven deciders."""
        if isinstance(event, PlanAccepted):
            self._used_step_ids.update(step.id for step in event.plan.steps)
        if isinstance(event, ActionLost):
            self._outcome_unknown = True
        if isinstance(event, ActionFinished | ActionFailed | ActionLost):
            running = self._ledger.draft.in_flight.get(event.step)
            if running is not None and isinstance(running.step.action, PowerOn):
                # VMs wait for this host, or for another one if the power-on failed.

                # Not at once: hosts that come up one by one would cause a pass each.
                soonest_ms = self._last_pass_ms + self._config.pass_delay_ms_min
                self._next_pass_ms = min(self._next_pass_ms, max(event.at_ms, soonest_ms))
        self._call_pass(event.at_ms, urgency(event, self._ledger.draft))
        touched = self._ledger.apply(event)
        for executor in self._executors():
            if not executor.is_affected_by(event):
                continue
            executor.handle(event, touched)
            if executor.ended:
                self._executors_cache = None
                self._side_executors.pop(executor.plan.id, None)
                self._executor = None if executor is self._executor else self._executor
        main = self._executor
        is_main = (
            isinstance(event, PlanCancelled)
            and main is not None
            and (event.makes_room and event.plan == main.plan.id)
        )
        if is_main and main is not None:
            self._side_executors[main.plan.id] = main
            self._executor, self._executors_cache = None, None
        for decider in self._event_deciders:
            decider.on_event(event, touched)
