"""``equipoise upgrade --graph``: the two graphs of an iteration as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from equipoise.cli.write import write_file
from equipoise.errors import InvalidInput, Problem
from equipoise.model.event import Event
from equipoise.model.upgrade.event import BatchDecided
from equipoise.report.graphs import View, written
from equipoise.report.graphs.sketch import Verdict
from equipoise.upgrade.coordinator import Coordinator
from equipoise.upgrade.scene import scene_of


def draw(events: Iterable[Event], path: Path, iteration: int, *, groups_only: bool) -> None:
    """Write the graphs from which an iteration was decided, with what it decided."""
    view = view_of(events, iteration)
    write_file(path, written(view, path.suffix, groups_only=groups_only).encode())


def view_of(events: Iterable[Event], iteration: int) -> View:
    """Go through the events of a campaign up to where an iteration was decided."""
    coordinator = Coordinator()
    last = 0
    for event in events:
        if isinstance(event, BatchDecided):
            last = event.iteration
            if last == iteration:
                return _view(coordinator, event)
        coordinator.handle(event)
    problem = Problem(
        key="",
        what=f"there is no iteration {iteration}",
        cure=f"name one from 1 to {last}" if last else "take a campaign that gets to one",
    )
    raise InvalidInput("--iteration", [problem])


def _view(coordinator: Coordinator, decided: BatchDecided) -> View:
    scene = scene_of(coordinator.state)
    verdicts = {one: Verdict(chosen=True) for one in decided.batch}
    for each in decided.eliminated:
        note = f"rule {each.rule}" if each.rule else "no room"
        why = f"{note}: {each.reason}"
        verdicts |= {one: Verdict(chosen=False, note=note, reason=why) for one in each.vertices}
    name = coordinator.state.campaign.name
    return View(
        title=f"{name}: iteration {decided.iteration}",
        iteration=decided.iteration,
        resources=scene.graph,
        control=scene.control,
        verdicts=verdicts,
    )
