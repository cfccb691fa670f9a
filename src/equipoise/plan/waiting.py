"""Steps that wait for their turn, and which of them may start now.

Both the ordering of a plan and its execution ask this, so what was planned is what is run. A step
that may not start is put aside and looked at again when something happens that it waits for: at a
host whose limit is reached it stands in a line, of which one is called for each place that comes
free; otherwise it is called when its VM, its hosts or the companions of a rule are touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

from equipoise.model.change.draft import Draft, Touched
from equipoise.model.plan import Limits, Step
from equipoise.model.quantity import HostId, StepId
from equipoise.plan.caution import Caution
from equipoise.plan.ledger import Ledger
from equipoise.plan.objection import Objection
from equipoise.plan.objections import objections
from equipoise.spec.rules import demands_of


class Waiting:
    """A queue of steps with their prerequisites: first come, first served, where possible."""

    def __init__(
        self, steps: Iterable[Step], waits: Mapping[StepId, tuple[StepId, ...]], ledger: Ledger
    ) -> None:
        self._steps = {step.id: step for step in steps}
        self._rank = {step: rank for rank, step in enumerate(self._steps)}
        self._missing = {step: set(waits[step]) for step in self._steps}
        self._followers: dict[StepId, list[StepId]] = {}
        for step, before in self._missing.items():
            for other in before:
                self._followers.setdefault(other, []).append(step)
        self._candidates: list[tuple[int, StepId]] = []
        self._queued: set[StepId] = set()
        self._lines: dict[HostId, list[tuple[int, StepId]]] = {}
        self._called: dict[StepId, HostId] = {}
        """Steps that were called from a line, and from which."""
        self._parked: dict[str, set[StepId]] = {}
        self._caution = self._cautious(ledger.draft)
        self._enqueue(tuple(self._steps))

    def __len__(self) -> int:
        return len(self._steps)

    def __contains__(self, step: StepId) -> bool:
        return step in self._steps

    def steps(self) -> tuple[Step, ...]:
        """All that still wait."""
        return tuple(self._steps.values())

    def first(self) -> Step | None:
        """The first that still waits."""
        return next(iter(self._steps.values()), None)

    def next_startable(self, ledger: Ledger, limits: Limits) -> Step | None:
        """Find the first step that may start in the present state; whoever starts it takes it."""
        self._notice(ledger)
        found = self._first_startable(ledger, limits)
        if found is None and self._parked and not ledger.draft.in_flight:
            # Nothing will happen any more that could call somebody: ask all of them once again.
            self._parked = {}
            self._enqueue(tuple(self._steps))
            found = self._first_startable(ledger, limits)
        return found

    def _first_startable(self, ledger: Ledger, limits: Limits) -> Step | None:
        while self._candidates and len(ledger.draft.in_flight) < limits.actions_total:
            _, name = heappop(self._candidates)
            if name not in self._queued:  # taken or dropped since it was put into the queue
                continue
            self._queued.discard(name)
            step = self._steps[name]
            line = self._called.pop(name, None)
            full = _full_host(ledger, step, limits)
            if full is not None:
                heappush(self._lines.setdefault(full, []), (self._rank[name], name))
            elif self._speaks_against(ledger, step):
                self._park(step, ledger)
            else:
                return step
            if line is not None and line != full:
                self._call_from(line)  # it did not take the place it was called for
        return None

    def take(self, step: StepId) -> None:
        """Take a step out of the queue: it starts, or it will never start."""
        del self._steps[step]
        self._queued.discard(step)

    def wake(self, touched: Touched) -> None:
        """Look again at the steps that have to do with what was touched."""
        self._caution.notice(touched)
        for key in (*touched.vms, *touched.hosts):
            names = self._parked.pop(key, None)
            if names:
                self._enqueue(names)
        for host in touched.hosts:
            self._call_from(host)

    def succeeded(self, step: StepId) -> None:
        """Note that a step succeeded, so that those that waited only for it may come."""
        for follower in self._followers.pop(step, ()):
            self._missing[follower].discard(step)
            self._enqueue((follower,))

    def put_back(self, step: Step) -> None:
        """Let a step wait again, for another attempt."""
        self._steps[step.id] = step
        self._enqueue((step.id,))

    def drop_followers(self, step: StepId) -> tuple[StepId, ...]:
        """Take out the steps that wait for one that did not succeed; theirs fall when they do."""
        dropped = [one for one in self._followers.pop(step, ()) if one in self._steps]
        for follower in dropped:
            self.take(follower)
        return tuple(dropped)

    def why_not(self, ledger: Ledger, step: Step) -> tuple[Objection, ...]:
        """Say what keeps a step from starting, other than limits."""
        before = self._missing[step.id]
        if before:
            return (Objection("after", f"it waits for {', '.join(sorted(before))}"),)
        return self._speaks_against(ledger, step)

    def _notice(self, ledger: Ledger) -> None:
        """New rules or limits, VMs or hosts: whatever was put aside is looked at anew."""
        draft = ledger.draft
        if self._settings is not draft.settings or self._comings != draft.comings_and_goings:
            self._caution = self._cautious(draft)
            self._parked, self._lines, self._called = {}, {}, {}
            self._enqueue(tuple(self._steps))

    def _cautious(self, draft: Draft) -> Caution:
        self._settings, self._comings = draft.settings, draft.comings_and_goings
        return Caution(draft, demands_of(draft.settings, draft).clear)

    def _speaks_against(self, ledger: Ledger, step: Step) -> tuple[Objection, ...]:
        return objections(ledger, step.action) or tuple(self._caution.risks(ledger.draft, step))

    def _enqueue(self, steps: Iterable[StepId]) -> None:
        for step in sorted(steps, key=self._rank.__getitem__):
            if step in self._steps and step not in self._queued and not self._missing[step]:
                self._queued.add(step)
                heappush(self._candidates, (self._rank[step], step))

    def _call_from(self, host: HostId) -> None:
        """Call the first that still waits in the line of a host."""
        line = self._lines.get(host)
        while line:
            _, step = heappop(line)
            if step in self._steps and step not in self._queued:
                self._called[step] = host
                self._enqueue((step,))
                return

    def _park(self, step: Step, ledger: Ledger) -> None:
        seen, draft = step.footprint, ledger.draft
        keys: list[str] = list(seen.hosts)
        if seen.vm is not None:
            # Room may come free where it is now, though the action does not name that host.
            vm = draft.vms.get(seen.vm)
            keys += [seen.vm, *([vm.host] if vm is not None and vm.host is not None else [])]
        if seen.switched is not None:
            keys += draft.residents(seen.switched)
        keys += self._caution.companions(step.id)
        for key in keys:
            self._parked.setdefault(key, set()).add(step.id)


def _full_host(ledger: Ledger, step: Step, limits: Limits) -> HostId | None:
    """The first host of a step at which no more may happen at once."""
    for host in step.footprint.hosts:
        if ledger.draft.count_running_at(host) >= limits.actions_per_host:
            return host
    return None
