"""``equipoise upgrade --graph``: the two graphs of an iteration as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from equipoise.cli.answer import progress_console
from equipoise.cli.write import write_file
from equipoise.model.event import Event
from equipoise.model.upgrade.event import BatchDecided
from equipoise.report.graphs import View, written
from equipoise.report.graphs.sketch import Verdict
from equipoise.upgrade.coordinator import Coordinator
from equipoise.upgrade.scene import scene_of


def draw(events: Iterable[Event], path: Path, iteration: int, *, groups_only: bool) -> None:
    """Write the graphs from which an iteration was decided, with what it decided.

    The upgrade is over: that there is no such iteration is no reason to keep its answer back.
    """
    view = view_of(events, iteration)
    if view is None:
        progress_console().print("no iteration was decided: there is no graph to draw")
        return
    if view.iteration != iteration:
        note = f"there is no iteration {iteration}: the last one, {view.iteration}, is drawn"
        progress_console().print(note)
    write_file(path, written(view, path.suffix, groups_only=groups_only).encode())


def view_of(events: Iterable[Event], iteration: int) -> View | None:
    """Go through the events of a campaign up to where an iteration, or the last, was decided."""
    known = list(events)
    decided = [one for one in known if isinstance(one, BatchDecided)]
    wanted = next((one for one in decided if one.iteration == iteration), None)
    if wanted is None:
        if not decided:
            return None
        wanted = decided[-1]
    coordinator = Coordinator()
    for event in known:
        if event is wanted:
            break
        coordinator.handle(event)
    return _view(coordinator, wanted)


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
