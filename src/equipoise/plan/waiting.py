"""Steps that wait for their turn, and which of them may start now.

Both the ordering of a plan and its execution ask this, so what was planned is what is run. A step
that may not start is parked under its VM and its hosts and looked at again when one of them is
touched, so a thousand waiting steps cost nothing while nothing happens to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

from equipoise.model.inventory import Settings
from equipoise.model.plan import Limits, Step
from equipoise.model.quantity import StepId
from equipoise.plan.caution import Caution
from equipoise.plan.ledger import Ledger, Touched
from equipoise.plan.objections import Objection, objections


class Waiting:
    """A queue of steps with their prerequisites: first come, first served, where possible."""

    def __init__(self, steps: Iterable[Step], waits: Mapping[StepId, tuple[StepId, ...]]) -> None:
        self._steps = {step.id: step for step in steps}
        self._rank = {step: rank for rank, step in enumerate(self._steps)}
        self._missing = {step: set(waits[step]) for step in self._steps}
        self._followers: dict[StepId, list[StepId]] = {}
        for step, before in self._missing.items():
            for other in before:
                self._followers.setdefault(other, []).append(step)
        self._candidates: list[tuple[int, StepId]] = []
        self._queued: set[StepId] = set()
        self._parked: dict[str, set[StepId]] = {}
        self._settings: Settings | None = None
        self._caution = Caution(())
        self._enqueue(step for step, before in self._missing.items() if not before)

    def __len__(self) -> int:
        return len(self._steps)

    def __contains__(self, step: StepId) -> bool:
        return step in self._steps

    def steps(self) -> tuple[Step, ...]:
        """All that still wait."""
        return tuple(self._steps.values())

    def next_startable(self, ledger: Ledger, limits: Limits) -> Step | None:
        """Find the first step that may start in the present state; whoever starts it takes it."""
        while self._candidates and len(ledger.draft.in_flight) < limits.actions_total:
            _, name = heappop(self._candidates)
            if name not in self._queued:  # taken or dropped since it was put into the queue
                continue
            self._queued.discard(name)
            step = self._steps[name]
            if _too_much(ledger, step, limits) or self._speaks_against(ledger, step):
                self._park(step, ledger)
            else:
                return step
        return None

    def take(self, step: StepId) -> None:
        """Take a step out of the queue: it starts, or it will never start."""
        del self._steps[step]
        self._queued.discard(step)

    def wake(self, touched: Touched) -> None:
        """Look again at the steps that have to do with what was touched."""
        for key in (*touched.vms, *touched.hosts):
            names = self._parked.pop(key, None)
            if names:
                self._enqueue(name for name in names if name in self._steps)

    def succeeded(self, step: StepId) -> None:
        """Note that a step succeeded, so that those that waited only for it may come."""
        for follower in self._followers.pop(step, ()):
            before = self._missing[follower]
            before.discard(step)
            if not before and follower in self._steps:
                self._enqueue((follower,))

    def put_back(self, step: Step) -> None:
        """Let a step wait again, for another attempt."""
        self._steps[step.id] = step
        self._enqueue((step.id,))

    def drop_followers(self, step: StepId) -> tuple[StepId, ...]:
        """Take out all steps that can no longer come because a step did not succeed."""
        dropped: dict[StepId, None] = {}
        stack = [step]
        while stack:
            for follower in self._followers.pop(stack.pop(), ()):
                if follower in self._steps:
                    self.take(follower)
                    dropped[follower] = None
                    stack.append(follower)
        return tuple(dropped)

    def why_not(self, ledger: Ledger, step: Step) -> tuple[Objection, ...]:
        """Say what keeps a step from starting, other than limits."""
        before = self._missing[step.id]
        if before:
            return (Objection("after", f"it waits for {', '.join(sorted(before))}"),)
        return self._speaks_against(ledger, step)

    def _speaks_against(self, ledger: Ledger, step: Step) -> tuple[Objection, ...]:
        if self._settings is not ledger.draft.settings:
            self._settings = ledger.draft.settings
            self._caution = Caution(self._settings.rules)
        return objections(ledger, step.action) or tuple(self._caution.risks(ledger.draft, step))

    def _enqueue(self, steps: Iterable[StepId]) -> None:
        for step in steps:
            if step not in self._queued and not self._missing[step]:
                self._queued.add(step)
                heappush(self._candidates, (self._rank[step], step))

    def _park(self, step: Step, ledger: Ledger) -> None:
        seen = step.footprint
        keys: list[str] = list(seen.hosts)
        if seen.vm is not None:
            # Room may come free where it is now, and a rule may wait for another VM to move.
            vm = ledger.draft.vms.get(seen.vm)
            keys += [seen.vm, *([vm.host] if vm is not None and vm.host is not None else [])]
        keys += self._caution.companions(ledger.draft, step)
        keys += (vm for host in seen.hosts for vm in ledger.draft.residents(host))
        for key in keys:
            self._parked.setdefault(key, set()).add(step.id)


def _too_much(ledger: Ledger, step: Step, limits: Limits) -> bool:
    return any(
        len(ledger.draft.running_at(host)) >= limits.actions_per_host
        for host in step.footprint.hosts
    )
