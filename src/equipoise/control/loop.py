"""The loop: observe, propose, arbitrate, order, verify, execute, and write everything down.

It owns what we believe of the world (the ledger) and the order of things: nothing is asked of the
world before the decision is in the journal. A loop that starts on a journal with events in it goes
on where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from equipoise.control.arbitrate import arbitrate
from equipoise.control.config import ControlConfig
from equipoise.control.drift import drift
from equipoise.control.executor import Executor, instruction
from equipoise.control.ports import Cancel, Decider, Heeding, Journal, Reconsidering, World
from equipoise.control.reopen import reopen, written_off
from equipoise.errors import Conflict
from equipoise.model.action import PowerOn, RoleAction
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ClusterLoaded,
    Event,
    PlanAccepted,
    PlanCancelled,
    PlanRefused,
    ProposalMade,
    ProposalsArbitrated,
    ReignBegan,
    SlotsFilled,
)
from equipoise.model.plan import Intent, Plan, Violation
from equipoise.model.quantity import PlanId, StepId
from equipoise.model.snapshot import Snapshot
from equipoise.plan import Judge, Refusal, VerifiedPlan, order, verify
from equipoise.plan.ledger import Ledger


class Loop:
    """One control loop over one world, with one journal."""

    def __init__(
        self,
        world: World,
        journal: Journal,
        *,
        deciders: Sequence[Decider] = (),
        judges: Sequence[Judge] = (),
        config: ControlConfig | None = None,
    ) -> None:
        self._world = world
        self._journal = journal
        self._deciders = [one for one in deciders if not isinstance(one, Heeding)]
        self._heeding = [one for one in deciders if isinstance(one, Heeding)]
        self._judges = judges
        self._config = config or ControlConfig()
        self._ledger = Ledger(Snapshot())
        self._executor: Executor | None = None
        self._beside: dict[PlanId, Executor] = {}
        """The plans of those who heed events; they do not wait for the plan of the others."""
        self._lanes: tuple[Executor, ...] | None = None
        self._used: set[StepId] = set()
        """The ids of all steps so far: a world knows an attempt by them."""
        self._unsure = False
        """Whether the outcome of an action is unknown, and nobody has looked since."""
        self._lost_journal = False
        self._watchers = [one for one in deciders if isinstance(one, Reconsidering)]
        self._next_pass_ms = self._next_look_ms = self._last_pass_ms = 0
        if len(journal):
            self._recover()
        else:
            self._begin()
        self._now_ms = self._ledger.draft.at_ms
        self._reign()
        self._now_ms = self._ledger.draft.at_ms
        self._next_pass_ms = self._next_look_ms = self._last_pass_ms = self._now_ms

    @property
    def now_ms(self) -> int:
        """The time up to which the world is known."""
        return self._now_ms

    @property
    def idle(self) -> bool:
        """Whether no plan is being carried out, other than of those who heed events."""
        return self._executor is None

    def snapshot(self) -> Snapshot:
        """What we believe of the world."""
        return self._ledger.draft.freeze()

    def run(self, until_ms: int) -> None:
        """Think every few minutes and act on it, until the given time."""
        while True:
            if self.idle and self._now_ms >= self._next_pass_ms:
                self._last_pass_ms = self._now_ms
                self._next_pass_ms = self._now_ms + self._config.pass_interval_ms
                self._think()
            elif not self.idle and self._watched and self._now_ms >= self._next_look_ms:
                self._look_again()
            self._act()
            if self._now_ms >= until_ms:
                return
            self._wait(min(until_ms, self._next_ms(until_ms)))

    def _next_ms(self, until_ms: int) -> int:
        """When it is time to think again, or to look again at the plan under way."""
        if self.idle:
            return self._next_pass_ms
        return self._next_look_ms if self._watched else until_ms

    @property
    def _watched(self) -> bool:
        """Whether somebody looks again at the plan under way, if it is the loop's own."""
        if not self._watchers or self._executor is None:
            return False
        plan = self._executor.plan  # every step of an own plan has its name before its own
        return any(step.id.startswith(f"{plan.id}/") for step in plan.steps[:1])

    def carry_out(self, plan: Plan) -> VerifiedPlan | Refusal:
        """Verify a plan that somebody made for the present state, and execute it to its end."""
        verdict = self.submit(plan)
        if isinstance(verdict, VerifiedPlan):
            self.finish()
        return verdict

    def submit(self, plan: Plan) -> VerifiedPlan | Refusal:
        """Verify a plan for the present state, and begin to execute it with the next ``run``."""
        if self._executor is not None:
            raise Conflict(f"plan {self._executor.plan.id} is still under way: one at a time")
        return self._submit(plan)

    def finish(self) -> None:
        """Go on with the plan under way, if there is one, to its end."""
        self._act()
        while self._executor is not None or (self._beside and not self._heeding):
            self._wait(None)
            self._act()

    def cancel(self, *, abort: bool = False, reason: str = "") -> None:
        """Stop the plan under way: nothing new starts; with ``abort`` what runs is cancelled."""
        if self._executor is not None:
            plan = self._executor.plan.id
            self._record([PlanCancelled(at_ms=self._now_ms, plan=plan, abort=abort, reason=reason)])
            self._react()

    def _begin(self) -> None:
        observed = self._world.observe()
        self._record([ClusterLoaded(at_ms=observed.at_ms, inventory=observed.inventory())])

    def _reign(self) -> None:
        """Take over from whoever gave out roles before."""
        if self._heeding and self._ledger.draft.settings.layout is not None:
            if self._ledger.draft.duties.epoch:
                self._observe()  # nobody has listened for a while
            epoch = self._ledger.draft.duties.epoch + 1
            self._record([ReignBegan(at_ms=self._now_ms, epoch=epoch)])

    def _recover(self) -> None:
        """Go on where the journal ends, and give the world its open instructions again."""
        past = reopen(self._journal)
        self._ledger = Ledger(past.snapshot)
        self._used = past.used
        self._unsure = past.unsure
        refused: list[Plan] = []
        for event in past.events:
            if isinstance(event, PlanAccepted) and event.plan.id in past.open:
                verdict = verify(self.snapshot(), event.plan, self._judges)
                if isinstance(verdict, VerifiedPlan):
                    self._carry(Executor(verdict, self._ledger, self._config))
                else:  # today's judges are stricter than those who let it pass
                    refused.append(event.plan)
            self._take_in(event)
        for executor in self._executors():
            for given in executor.unanswered():
                self._world.perform(given)
        for plan in refused:
            mine = {step.id for step in plan.steps}
            for running in self._ledger.draft.in_flight.values():
                if running.step.id in mine:
                    self._world.perform(Cancel(running.step.id, running.attempt))
            self._record(written_off(plan, past.events, self._ledger.draft))

    def _carry(self, executor: Executor) -> None:
        """Begin to carry out a plan: beside the others if there is nothing but roles in it."""
        if all(isinstance(step.action, RoleAction) for step in executor.plan.steps):
            self._beside[executor.plan.id] = executor
        else:
            self._executor = executor
        self._lanes = None

    def _executors(self) -> tuple[Executor, ...]:
        """All that are under way, the one of the slow deciders first."""
        if self._lanes is None:
            main = () if self._executor is None else (self._executor,)
            self._lanes = (*main, *self._beside.values())
        return self._lanes

    def _think(self) -> None:
        """One pass: from what is observed to a plan under way, or to the reasons why not."""
        self._observe()
        snapshot = self.snapshot()
        proposals = [decider.propose(snapshot) for decider in self._deciders]
        self._record(ProposalMade(at_ms=self._now_ms, proposal=one) for one in proposals)
        plan_id = PlanId(f"plan-{self._ledger.draft.version}")
        intents, dropped, mends = arbitrate(proposals, plan_id)
        if dropped:
            self._record([ProposalsArbitrated(at_ms=self._now_ms, dropped=dropped)])
        if intents:
            ordered = order(self.snapshot(), intents, plan_id, mends)
            if isinstance(ordered, Refusal):
                self._refuse(ordered)
            else:
                self._submit(ordered)

    def _act(self) -> None:
        """Do all that can be done now, and ask those who heed events until they want no more."""
        self._react()
        while self._hasten():
            self._react()

    def _hasten(self) -> bool:
        """Ask those who heed events, if it is time; and say whether somebody was asked."""
        asked = False
        for decider in self._heeding:
            due_ms = decider.due_ms()
            if due_ms is None or due_ms > self._now_ms:
                continue
            asked = True
            if self._unsure:
                self._observe()
            at_ms = self._now_ms
            proposal = decider.propose(replace(self.snapshot(), at_ms=at_ms))
            if proposal.intents or proposal.fillings:
                self._record([ProposalMade(at_ms=at_ms, proposal=proposal)])
            self._record(
                SlotsFilled(at_ms=at_ms, group=one.group, slots=one.slots, reason=one.reason)
                for one in proposal.fillings
            )
            plan_id = PlanId(f"{proposal.decider}-{self._ledger.draft.version}")
            self._begin_beside(arbitrate([proposal], plan_id).intents, plan_id)
        return asked

    def _begin_beside(self, intents: Sequence[Intent], plan_id: PlanId) -> None:
        """Have what is wanted verified and begun; what cannot start does not hold up the rest."""
        while intents:
            ordered = order(self.snapshot(), intents, plan_id, base=self._ledger)
            if isinstance(ordered, Plan):
                self._submit(ordered)
                return
            self._refuse(ordered)
            plan_id = PlanId(f"{plan_id}.")
            blamed = {one.step for one in ordered.violations}
            left = [one for one in intents if one.id not in blamed]
            intents = left if len(left) < len(intents) else ()

    def _look_again(self) -> None:
        """A plan may take longer than things stay as they are: ask whether to go on with it."""
        self._next_look_ms = self._now_ms + self._config.pass_interval_ms
        assert self._executor is not None
        self._observe()
        for watcher in self._watchers:
            left = self._executor.left()
            why = watcher.reconsider(self.snapshot(), left) if left else ""
            if why:
                plan = self._executor.plan.id
                self._record([PlanCancelled(at_ms=self._now_ms, plan=plan, reason=why)])
                return

    def _observe(self) -> None:
        observed = self._world.observe()
        self._now_ms = max(self._now_ms, observed.at_ms)
        self._record(drift(self.snapshot(), observed))
        self._unsure = False

    def _submit(self, plan: Plan) -> VerifiedPlan | Refusal:
        if self._unsure:
            self._observe()  # which makes the plan stale, as it should
        verdict = self._used_before(plan) or verify(
            self.snapshot(), plan, self._judges, self._ledger
        )
        if isinstance(verdict, Refusal):
            self._refuse(verdict)
            return verdict
        executor = Executor(verdict, self._ledger, self._config)
        accepted = PlanAccepted(at_ms=self._now_ms, plan=plan)
        self._append([accepted])
        self._carry(executor)
        self._next_look_ms = self._now_ms + self._config.pass_interval_ms
        self._take_in(accepted)
        return verdict

    def _used_before(self, plan: Plan) -> Refusal | None:
        again = [step for step in plan.steps if step.id in self._used]
        detail = "an earlier plan had a step of this id"
        found = (
            Violation(constraint="form", at_ms=step.start_ms, step=step.id, detail=detail)
            for step in again
        )
        return Refusal(plan, tuple(found)) if again else None

    def _refuse(self, refusal: Refusal) -> None:
        self._record(
            [PlanRefused(at_ms=self._now_ms, plan=refusal.plan, violations=refusal.violations)]
        )

    def _react(self) -> None:
        """Let the executors decide until they have nothing more to do, then tell the world."""
        decisions: list[Event] = []
        before = -1
        while len(decisions) > before:  # what one of them ends may be what another waits for
            before = len(decisions)
            for executor in self._executors():
                while (decision := executor.decide(self._now_ms)) is not None:
                    self._take_in(decision)
                    decisions.append(decision)
        self._append(decisions)
        for decision in decisions:
            asked = instruction(decision)
            if asked is not None:
                self._world.perform(asked)

    def _wait(self, until_ms: int | None) -> None:
        """Let time pass until something happens, at most to the next alarm."""
        alarms = [executor.alarm_ms() for executor in self._executors()]
        alarms += [decider.due_ms() for decider in self._heeding]
        times = [one for one in (until_ms, *alarms) if one is not None]
        assert times, "nothing to wait for"
        limit_ms = max(self._now_ms, min(times))
        event = self._world.next_event(limit_ms)
        if event is None:
            self._now_ms = limit_ms
        while event is not None:
            self._now_ms = max(self._now_ms, event.at_ms)
            self._record([event])
            # Who decides at once does so when all that happens at one instant is known.
            event = self._world.next_event(self._now_ms) if self._heeding else None

    def _record(self, events: Iterable[Event]) -> None:
        batch = tuple(events)
        self._append(batch)
        for event in batch:
            self._take_in(event)

    def _append(self, events: Sequence[Event]) -> None:
        """Write events down. Once that has failed, what is believed may not be what is written."""
        if self._lost_journal:
            raise Conflict("the journal could not be written: open it again with a new loop")
        if events:
            self._lost_journal = True
            self._journal.append(events)
            self._lost_journal = False

    def _take_in(self, event: Event) -> None:
        if isinstance(event, PlanAccepted):
            self._used.update(step.id for step in event.plan.steps)
        if isinstance(event, ActionLost):
            self._unsure = True
        if isinstance(event, ActionFinished | ActionFailed | ActionLost):
            running = self._ledger.draft.in_flight.get(event.step)
            if running is not None and isinstance(running.step.action, PowerOn):
                # VMs wait for it; or, if it did not wake, for another one.
                soonest_ms = self._last_pass_ms + self._config.hurry_ms
                self._next_pass_ms = min(self._next_pass_ms, max(event.at_ms, soonest_ms))
        touched = self._ledger.apply(event)
        for executor in self._executors():
            if not executor.concerns(event):
                continue
            executor.handle(event, touched)
            if executor.ended:
                self._lanes = None
                self._beside.pop(executor.plan.id, None)
                self._executor = None if executor is self._executor else self._executor
        for decider in self._heeding:
            decider.heed(event, touched)
