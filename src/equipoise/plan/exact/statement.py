"""A task said to the solver: courses, room, claims and goals, as far as the reach goes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from equipoise.model.problem import Measure
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, VmId
from equipoise.plan.exact.formula.outlook import Outlook, Spoken
from equipoise.plan.exact.formula.translate import Translator
from equipoise.plan.exact.formula.values import Unsupported
from equipoise.plan.exact.goals import measured
from equipoise.plan.exact.solver.circuit import NO, YES, Circuit, Truth, total
from equipoise.plan.exact.solver.number import Number
from equipoise.plan.exact.subjects import subjects
from equipoise.plan.exact.task import RuleClaim, Task, measures_of
from equipoise.plan.exact.timeline.course import Leg
from equipoise.plan.exact.timeline.reach import Reach
from equipoise.plan.exact.timeline.room import Room
from equipoise.plan.exact.timeline.states import Final as End
from equipoise.plan.exact.timeline.states import Initial, Moment, moments_of
from equipoise.plan.exact.timeline.timeline import Timeline
from equipoise.plan.exact.timeline.traffic import Traffic
from equipoise.spec.demand import Demand

ABOUT_STARTS: Final = frozenset({"hosted", "underway"})
"""The functions whose values change when an action starts, and not only when it ends."""

ABOUT_GROWTH: Final = frozenset({"cons", "actions", "underway"})
"""The functions whose values change when a VM only grows."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A soft claim and the truth that it is kept."""

    claim: RuleClaim
    truth: Truth


@dataclass(frozen=True, slots=True)
class Changes:
    """To whom something may happen: to grow is something to those only who look at amounts."""

    vms: frozenset[VmId]
    hosts: frozenset[HostId]
    moving_vms: frozenset[VmId]
    moving_hosts: frozenset[HostId]

    @classmethod
    def of(cls, timeline: Timeline) -> Changes:
        """The VMs and hosts to which something may happen in a timeline."""
        courses = timeline.courses.values()
        moving = [
            course
            for course in courses
            if any(leg.kind is not ActionKind.ALLOCATE for leg in course.legs)
        ]
        return cls(
            frozenset(timeline.courses),
            timeline.hosts_of(courses),
            frozenset(course.vm for course in moving),
            timeline.hosts_of(moving),
        )

    def seen_by(self, demand: Demand) -> tuple[frozenset[VmId], frozenset[HostId]]:
        """Those whose changes can make a difference to a demand."""
        if looks_at_amounts(demand):
            return self.vms, self.hosts
        return self.moving_vms, self.moving_hosts


def looks_at_amounts(demand: Demand) -> bool:
    """Whether it makes a difference to a demand when a VM only grows."""
    return not ABOUT_GROWTH.isdisjoint(demand.specification.calls(demand.name))


class Statement:
    """Everything the solver is told."""

    @classmethod
    def of(cls, task: Task, reach: Reach) -> Statement:
        """Say a task, as far as the reach goes."""
        return cls(task, Timeline(Circuit(), task, reach))

    def __init__(self, task: Task, timeline: Timeline) -> None:
        self.task = task
        self.timeline = timeline
        self.circuit = timeline.circuit
        self.with_room = timeline.reach.with_room
        Room(self.timeline).require(with_room=self.with_room)
        if self.timeline.routes is not None:
            Traffic(self.timeline, self.timeline.routes).require()
        self._translator = Translator(self.circuit)
        self._initial, self._final = Initial(self.timeline), End(self.timeline)
        self._moments: dict[tuple[Leg, bool], list[tuple[Moment, Truth]]] = {}
        self._changes = Changes.of(self.timeline)
        self.left_to_judge: list[RuleClaim] = []
        """Claims that cannot be said to the solver; the judge looks at every plan for them."""
        self.kept: list[Kept] = []
        for claim in task.claims:
            if isinstance(claim, RuleClaim):
                self._state(claim)

    def goals(self) -> Iterator[Number]:
        """What is to be as small as possible, the most important first."""
        if self.kept:
            yield total((one.claim.weight, -one.truth) for one in self.kept)
        for goal in self.task.problem.objective:
            yield measured(self.timeline, measures_of(goal))

    def spare(self) -> Number | None:
        """What counts when all goals are as small as possible; nothing if that is a goal itself.

        It is the sum of all ends: who does what is of no use, or waits for nobody, makes it larger.
        """
        if self.task.counts(Measure.MTTR):
            return None
        return measured(self.timeline, {Measure.MTTR: 1})

    def _state(self, claim: RuleClaim) -> None:
        given: tuple[Truth, ...] = ()
        if claim.weight:
            kept = self.circuit.truth()
            self.kept.append(Kept(claim, kept))
            given = (kept,)
        try:
            self._require(claim.demand, given)
        except Unsupported:
            self.left_to_judge.append(claim)

    def _require(self, demand: Demand, given: tuple[Truth, ...]) -> None:
        about = subjects(demand)
        vms, hosts = self._changes.seen_by(demand)
        outlooks: list[tuple[Outlook, Truth]] | None = None
        for part in self.task.parts.of(demand):
            known = part.reads is not None
            if known and not part.holds and demand.continuous:
                self.circuit.require(NO, given)  # broken from the beginning, and that counts
            elif part.is_touched(vms, hosts):
                if outlooks is None:
                    outlooks = list(self._outlooks(demand, about, known=known))
                spoken = Spoken(demand.specification, part.term, part.names)
                idle = about - vms if about is not None and known and part.holds else None
                for outlook, there in outlooks:
                    self._translator.require(spoken, outlook, (*given, there), idle)
            elif not part.holds:
                self.circuit.require(NO, given)

    def _outlooks(
        self, demand: Demand, about: frozenset[VmId] | None, *, known: bool
    ) -> Iterator[tuple[Outlook, Truth]]:
        """The moments at which a demand is judged, but for the first one if that is known."""
        home = demand.specification
        starts = not ABOUT_STARTS.isdisjoint(home.calls(demand.name))
        ahead = home.looks_ahead(demand.name)
        between = self._between(demand, about, starts) if ahead or demand.continuous else []
        every = [(self._initial, YES), *between, (self._final, YES)] if ahead else ()
        if demand.continuous:
            for state, there in between if known else [(self._initial, YES), *between]:
                yield Outlook(state, self._initial, self._final, every), there
        if not (demand.continuous and known):  # the last of all moments is the final one
            yield Outlook(self._final, self._initial, self._final, every), YES

    def _between(
        self, demand: Demand, about: frozenset[VmId] | None, starts: bool
    ) -> list[tuple[Moment, Truth]]:
        """The moments in between at which what a demand is about may have changed."""
        if about is None:
            legs = self.timeline.legs()
        else:
            courses = self.timeline.courses
            concerned = [courses[vm] for vm in sorted(about & courses.keys())]
            legs = (leg.by_host or leg for course in concerned for leg in course.legs)
        every = looks_at_amounts(demand)
        return _each_once(
            found
            for leg in legs
            if every or leg.kind is not ActionKind.ALLOCATE
            for found in self._moments_of(leg, starts=starts)
        )

    def _moments_of(self, leg: Leg, *, starts: bool) -> list[tuple[Moment, Truth]]:
        if (leg, starts) not in self._moments:
            self._moments[leg, starts] = list(moments_of(self.timeline, leg, starts=starts))
        return self._moments[leg, starts]


def _each_once(moments: Iterable[tuple[Moment, Truth]]) -> list[tuple[Moment, Truth]]:
    """Without moments that are the same as another one: in a given plan, much ends together."""
    found: dict[Hashable, tuple[Moment, Truth]] = {}
    for moment, there in moments:
        alike = moment.known if moment.known is not None and there == YES else id(moment)
        found.setdefault(alike, (moment, there))
    return list(found.values())
