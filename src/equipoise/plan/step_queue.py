"""The queue of steps that wait to start, and a dry run of it.

The ordering of a plan and its execution use the same queue, so the dry run is the run. A step that
may not start is parked and checked again when something changes that it waits for. At a host whose
concurrency limit is reached the steps form a line; each action that ends releases one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.action import Migrate
from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.plan import ConcurrencyLimits, Step, Violation
from equipoise.model.quantity import HostId, RuleId, StepId
from equipoise.model.state.draft import Draft, TouchedEntities
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.interleavings import InterleavingCheck
from equipoise.plan.preconditions import FailedPrecondition, failed_preconditions
from equipoise.spec.rules import requirements_of


class StepQueue:
    """Steps with their prerequisites; of the steps that may start, the first in the plan starts."""

    def __init__(
        self,
        steps: Iterable[Step],
        waits: Mapping[StepId, tuple[StepId, ...]],
        ledger: CapacityLedger,
        repairs: Collection[RuleId] = (),
    ) -> None:
        """Take the steps of a plan and the rules that it repairs."""
        self._repairs = repairs
        self._steps = {step.id: step for step in steps}
        self._rank = {step: rank for rank, step in enumerate(self._steps)}
        self._missing = {step: set(waits[step]) for step in self._steps}
        self._followers: dict[StepId, list[StepId]] = {}
        for step, before in self._missing.items():
            for other in before:
                self._followers.setdefault(other, []).append(step)
        self._candidates: list[tuple[int, StepId]] = []
        self._queued: set[StepId] = set()
        self._host_queues: dict[HostId, list[tuple[int, StepId]]] = {}
        self._called: dict[StepId, HostId] = {}
        """Steps that were released from the line of a host, each with that host."""
        self._parked: dict[str, set[StepId]] = {}
        self._interleavings = self._new_interleaving_check(ledger.draft)
        self._enqueue(tuple(self._steps))

    def __len__(self) -> int:
        return len(self._steps)

    def __contains__(self, step: StepId) -> bool:
        return step in self._steps

    def steps(self) -> tuple[Step, ...]:
        """Return all waiting steps, in the order of the plan."""
        return tuple(self._steps.values())

    def first(self) -> Step | None:
        """Return the first waiting step."""
        return next(iter(self._steps.values()), None)

    def next_startable(self, ledger: CapacityLedger, limits: ConcurrencyLimits) -> Step | None:
        """Return the first step that may start now; the caller starts it and calls ``take``."""
        self._reset_if_changed(ledger)
        step = self._first_startable(ledger, limits)
        if step is None and self._parked and not ledger.draft.in_flight:
            # No action is left whose end could wake a parked step: check all of them once more.
            self._parked = {}
            self._enqueue(tuple(self._steps))
            step = self._first_startable(ledger, limits)
        return step

    def _first_startable(self, ledger: CapacityLedger, limits: ConcurrencyLimits) -> Step | None:
        while self._candidates and len(ledger.draft.in_flight) < limits.actions_total:
            _, name = heappop(self._candidates)
            if name not in self._queued:  # taken or dropped since it was put into the queue
                continue
            self._queued.discard(name)
            step = self._steps[name]
            # A released step that cannot start passes its slot to the next one in line.
            line = self._called.pop(name, None)
            full = _full_host(ledger, step, limits)
            if full is not None:
                heappush(self._host_queues.setdefault(full, []), (self._rank[name], name))
            elif self._blockers(ledger, step):
                self._park(step, ledger)
            else:
                return step
            if line is not None and line != full:
                self._release_next(line)  # the step does not use the slot it was released for
        return None

    def take(self, step: StepId) -> None:
        """Remove a step from the queue: it starts, or it will never start."""
        del self._steps[step]
        self._queued.discard(step)

    def wake(self, touched: TouchedEntities) -> None:
        """Check the steps again that wait for one of the touched VMs or hosts."""
        self._interleavings.mark_touched(touched)
        for key in (*touched.vms, *touched.hosts):
            names = self._parked.pop(key, None)
            if names:
                self._enqueue(names)
        for host in touched.hosts:
            self._release_next(host)

    def succeeded(self, step: StepId) -> None:
        """Record that a step succeeded, so that its followers may start."""
        for follower in self._followers.pop(step, ()):
            self._missing[follower].discard(step)
            self._enqueue((follower,))

    def put_back(self, step: Step) -> None:
        """Queue a step again, for another attempt."""
        self._steps[step.id] = step
        self._enqueue((step.id,))

    def drop_followers(self, step: StepId) -> tuple[StepId, ...]:
        """Remove and return the steps that wait for a step that did not succeed.

        The caller drops the followers of the removed steps in turn.
        """
        followers = self._followers.pop(step, ())
        dropped = tuple(follower for follower in followers if follower in self._steps)
        for follower in dropped:
            self.take(follower)
        return dropped

    def why_not(self, ledger: CapacityLedger, step: Step) -> tuple[FailedPrecondition, ...]:
        """Return what keeps a step from starting, other than concurrency limits."""
        before = self._missing[step.id]
        if before:
            detail = f"it waits for {', '.join(sorted(before))}"
            return (FailedPrecondition("after", detail, "prerequisite-missing"),)
        return self._blockers(ledger, step)

    def _reset_if_changed(self, ledger: CapacityLedger) -> None:
        """Check every step again after a change of rules, limits, VMs or hosts."""
        draft = ledger.draft
        # Settings are frozen values, so identity tells whether they changed.
        if self._settings is not draft.settings or self._membership != draft.membership_version:
            self._interleavings = self._new_interleaving_check(draft)
            self._parked, self._host_queues, self._called = {}, {}, {}
            self._enqueue(tuple(self._steps))

    def _new_interleaving_check(self, draft: Draft) -> InterleavingCheck:
        self._settings, self._membership = draft.settings, draft.membership_version
        rules = requirements_of(draft.settings, draft, self._repairs)
        return InterleavingCheck(draft, rules.valid)

    def _blockers(self, ledger: CapacityLedger, step: Step) -> tuple[FailedPrecondition, ...]:
        return failed_preconditions(ledger, step.action) or tuple(
            self._interleavings.risks(ledger.draft, step)
        )

    def _enqueue(self, steps: Iterable[StepId]) -> None:
        # ``steps`` may be a set; the order of the plan decides which step starts first.
        for step in sorted(steps, key=self._rank.__getitem__):
            if step in self._steps and step not in self._queued and not self._missing[step]:
                self._queued.add(step)
                heappush(self._candidates, (self._rank[step], step))

    def _release_next(self, host: HostId) -> None:
        """Release the first step that still waits in the line of a host."""
        line = self._host_queues.get(host)
        while line:
            _, step = heappop(line)
            if step in self._steps and step not in self._queued:
                self._called[step] = host
                self._enqueue((step,))
                return

    def _park(self, step: Step, ledger: CapacityLedger) -> None:
        seen, draft = step.footprint, ledger.draft
        keys: list[str] = list(seen.hosts)
        if seen.vm is not None:
            # Capacity may come free on the current host of the VM, which the action may not name.
            vm = draft.vms.get(seen.vm)
            keys += [seen.vm, *([vm.host] if vm is not None and vm.host is not None else [])]
        if seen.switched is not None:
            keys += draft.residents(seen.switched)
        keys += self._interleavings.watched_elements(step.id)
        for key in keys:
            self._parked.setdefault(key, set()).add(step.id)


def _full_host(ledger: CapacityLedger, step: Step, limits: ConcurrencyLimits) -> HostId | None:
    """Return the first host of a step at which the concurrency limit is reached."""
    migrates, draft = isinstance(step.action, Migrate), ledger.draft
    for host in step.footprint.hosts:
        running = draft.count_actions_on_host(host)
        if running >= limits.actions_per_host:
            return host
        if (
            migrates
            and running >= limits.migrations_per_host
            and draft.count_migrations_on_host(host) >= limits.migrations_per_host
        ):
            return host
    return None


class DryRunResult(NamedTuple):
    """The steps with the times of their dry run, and why others could never start."""

    timed: tuple[Step, ...]
    blocked: tuple[Violation, ...]


def dry_run(
    snapshot: Snapshot,
    steps: Iterable[Step],
    waits: Mapping[StepId, tuple[StepId, ...]],
    base: CapacityLedger | None = None,
    repairs: Collection[RuleId] = (),
) -> DryRunResult:
    """Start each step as early as prerequisites, capacity, rules and limits allow.

    ``base`` is a ledger of the snapshot, if the caller has one. ``repairs`` are the rules that the
    steps repair.
    """
    ledger = CapacityLedger(snapshot) if base is None else CapacityLedger.like(base, snapshot)
    queue = StepQueue(steps, waits, ledger, repairs)
    timed: list[Step] = []
    running: list[tuple[int, int, StepId]] = []
    now_ms = 0
    while True:
        while (step := queue.next_startable(ledger, snapshot.settings.limits)) is not None:
            queue.take(step.id)
            step = step.but(start_ms=now_ms, end_ms=now_ms + step.duration_ms)
            timed.append(step)
            at_ms = snapshot.at_ms + now_ms
            queue.wake(ledger.apply(ActionStarted(at_ms=at_ms, step=step, attempt=1)))
            # Of equal ends, the action that started first ends first.
            heappush(running, (step.end_ms, len(timed), step.id))
        if not running:
            break
        now_ms = running[0][0]
        while running and running[0][0] == now_ms:  # all ends of an instant come before its starts
            _, _, done = heappop(running)
            at_ms = snapshot.at_ms + now_ms
            queue.wake(ledger.apply(ActionFinished(at_ms=at_ms, step=done, attempt=1)))
            queue.succeeded(done)
    return DryRunResult(tuple(timed), _blocked_steps(queue, ledger, now_ms))


def _blocked_steps(queue: StepQueue, ledger: CapacityLedger, at_ms: int) -> tuple[Violation, ...]:
    return tuple(
        blocker.violation(step.id, at_ms)
        for step in queue.steps()
        for blocker in queue.why_not(ledger, step)
    )
