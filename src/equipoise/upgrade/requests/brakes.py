"""Brakes of a change set: canary, checkpoints, batch size, and the number of failed attempts.

Brakes count *places*. A place is a host with all its resources of the set, or one resource without
a host: that is what an operator counts.
"""

from __future__ import annotations

from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.graph.iteration_view import IterationView
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus, SetProgress


def waits_for_approval(state: UpgradeState, status: ChangeSetStatus) -> bool:
    """Return whether a set has reached a checkpoint that is not approved."""
    if status.progress is not SetProgress.SCHEDULED:
        return False  # an approval would have no effect
    marks = checkpoint_marks(state, status)
    if not marks:
        return False
    _, done = _progress(state, status)
    return sum(done >= mark for mark in marks) > status.checkpoints_approved


def checkpoint_marks(state: UpgradeState, status: ChangeSetStatus) -> tuple[int, ...]:
    """Return after how many places a set waits for an approval, canary included."""
    if status.set.canary is None and not status.set.checkpoints_pct:
        return ()
    total, _ = _progress(state, status)
    # Rounded up: 10 % of ten hosts is one host, and of fifteen hosts two.
    marks = {-(-total * percent // 100) for percent in status.set.checkpoints_pct}
    if status.set.canary is not None:
        marks.add(status.set.canary)
    # Nothing is left to hold back at the last place. Equal marks need one approval.
    return tuple(sorted(mark for mark in marks if mark < total))


def has_too_many_failures(status: ChangeSetStatus) -> bool:
    """Return whether a set is stopped because too many of its attempts failed."""
    failures_max = status.set.failures_max
    return failures_max is not None and status.failures - status.failures_excused >= failures_max


class BatchBrakes:
    """The brakes during one batch selection: how many more places each set may change."""

    def __init__(self, view: IterationView) -> None:
        self._view = view
        self._allowed: dict[SetId, tuple[int, Reason] | None] = {}
        self._taken: dict[SetId, set[str]] = {}

    def missed(self, vertex: VertexId) -> Reason | None:
        """Return the brake that keeps a group out of the batch, or None. An undo has none."""
        if self._view.is_undoing(vertex):
            return None
        for set_, places in self._places(vertex).items():
            limit = self._limit(set_)
            taken = self._taken.get(set_, set())
            # What changes together cannot be divided, so one group always passes.
            if limit is not None and taken and len(taken | places) > limit[0]:
                return limit[1]
        return None

    def take(self, vertex: VertexId) -> None:
        """Note that a group is in the batch."""
        for set_, places in self._places(vertex).items():
            self._taken.setdefault(set_, set()).update(places)

    def _places(self, vertex: VertexId) -> dict[SetId, set[str]]:
        """Return the places of a group by set, for sets with a brake."""
        places: dict[SetId, set[str]] = {}
        for member, level in self._view.level(vertex).items():
            resource = self._view.state.resources.states[member].resource  # type: ignore[index]
            for work in level.works:
                if self._limit(work.set) is not None:
                    places.setdefault(work.set, set()).add(resource.host or resource.id)
        return places

    def _limit(self, set_: SetId) -> tuple[int, Reason] | None:
        """Return how many places of a set may be in the batch, and why not more."""
        if set_ not in self._allowed:
            self._allowed[set_] = _batch_limit(
                self._view.state, self._view.state.requests.set_status[set_]
            )
        return self._allowed[set_]


def _batch_limit(state: UpgradeState, status: ChangeSetStatus) -> tuple[int, Reason] | None:
    limits: list[tuple[int, Reason]] = []
    most = status.set.batch_max
    if most is not None:
        text = f"set {status.id} changes at most {most} at a time"
        limits.append((most, Reason("batch-limit", text)))
    marks = checkpoint_marks(state, status)[status.checkpoints_approved :]
    if marks:
        total, done = _progress(state, status)
        text = f"set {status.id} needs an approval after {marks[0]} of {total}"
        limits.append((max(0, marks[0] - done), Reason("batch-limit", text)))
    return min(limits, key=lambda limit: limit[0], default=None)


def _progress(state: UpgradeState, status: ChangeSetStatus) -> tuple[int, int]:
    """Return how many places a set changes, and on how many nothing of it is left to do."""
    places: dict[str, bool] = {}
    for id_ in status.resources:
        resource_state = state.resources.states.get(id_)
        # A resource that matched from the start is no progress.
        if resource_state is not None and status.id in resource_state.sets:
            place = resource_state.resource.host or id_
            done = not resource_state.has_work_for(status.id)
            places[place] = places.get(place, True) and done
    return len(places), sum(places.values())
