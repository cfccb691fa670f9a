"""Traffic: migrations share what links and switches carry."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.problem.problem import ActionKind
from equipoise.plan.exact.formula.values import options_of
from equipoise.plan.exact.solver.circuit import NO, Span, Truth
from equipoise.plan.exact.timeline.course import Leg
from equipoise.plan.exact.timeline.routes import Lane, Route, Routes
from equipoise.plan.exact.timeline.timeline import Timeline


class Traffic:
    """Sees to it that no lane carries more than it can."""

    def __init__(self, timeline: Timeline, routes: Routes) -> None:
        self._timeline = timeline
        self._circuit = timeline.circuit
        self._routes = routes
        self._on: dict[Lane, dict[Leg, dict[int, list[Truth]]]] = {}

    def require(self) -> None:
        """Say everything that must hold."""
        for leg in self._timeline.legs():
            if leg.kind is ActionKind.MIGRATE:
                for route, truth in self._ways(leg):
                    self._note(leg, route, truth)
        for lane, legs in self._on.items():
            self._require_lane(lane, legs)

    def _ways(self, leg: Leg) -> Iterator[tuple[Route, Truth]]:
        """The ways that a migration may take; where there is none it must not go."""
        for source, here in options_of(leg.source).items():
            for target, there in options_of(leg.target).items():
                if source == target:
                    continue
                truth = self._circuit.all((leg.there, here, there))
                route = self._routes.between(source, target)
                if route is None:
                    self._circuit.require(-truth)
                elif truth != NO:
                    yield route, truth

    def _note(self, leg: Leg, route: Route, truth: Truth) -> None:
        for lane in route.lanes:
            self._on.setdefault(lane, {}).setdefault(leg, {}).setdefault(route.mbps, []).append(
                truth
            )

    def _require_lane(self, lane: Lane, legs: dict[Leg, dict[int, list[Truth]]]) -> None:
        capacity = self._routes.capacity[lane]
        if sum(max(by_need) for by_need in legs.values()) <= capacity:
            return
        spans: list[Span] = []
        for leg, by_need in legs.items():
            shape = self._timeline.shape(leg)
            for need, truths in by_need.items():
                spans.append((shape, self._circuit.any(truths), need))
        self._circuit.require_in_turn(spans, capacity)
