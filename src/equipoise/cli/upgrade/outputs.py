"""The optional outputs of a campaign: graph, page, and the comparison with rolling upgrades."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.cli.file_io import check_writable, print_page_written, write_file
from equipoise.cli.output import console, make_table, progress_console, with_progress_bar
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import BatchDecided
from equipoise.report.upgrade.compare import COLUMNS, MethodComparison, compare_with_rolling
from equipoise.report.upgrade.history import campaign_history
from equipoise.report.upgrade.page import upgrade_page
from equipoise.report.upgrade_graph import GraphView, write_graph_view
from equipoise.report.upgrade_graph.diagram import VertexDecision
from equipoise.report.upgrade_graph.view import check_graph_file
from equipoise.sim.upgrade.rolling import count_rolling_units
from equipoise.upgrade.coordinator import Coordinator
from equipoise.upgrade.graph.iteration_view import build_view


def show_comparison(lines: Sequence[MethodComparison]) -> None:
    """Print the comparison as a table."""
    table = make_table(*COLUMNS, right=COLUMNS[1:])
    for row in lines:
        table.add_row(*row.cells)
    console().print(table)
    runs = max(row.runs for row in lines)
    console().print(f"Rolling upgrades: mean of {runs} orders of hosts and other resources.")


def write_graph(events: Iterable[Event], path: Path, iteration: int, *, groups_only: bool) -> None:
    """Write the graphs of an iteration with its decisions.

    The upgrade has run already, so a missing iteration is a note and not an error.
    """
    view = graph_view(events, iteration)
    if view is None:
        progress_console().print("the campaign has no iteration, so no graph was written")
        return
    if view.iteration != iteration:
        note = f"there is no iteration {iteration}; the graph shows the last one, {view.iteration}"
        progress_console().print(note)
    write_file(path, write_graph_view(view, path.suffix, groups_only=groups_only).encode())


def graph_view(events: Iterable[Event], iteration: int) -> GraphView | None:
    """Replay a campaign up to the decision of an iteration, or of the last one."""
    known = list(events)
    decisions = [event for event in known if isinstance(event, BatchDecided)]
    decision = next((event for event in decisions if event.iteration == iteration), None)
    if decision is None:
        if not decisions:
            return None
        decision = decisions[-1]
    coordinator = Coordinator()
    for event in known:
        if event is decision:
            break
        coordinator.handle(event)
    return _graph_view_of(coordinator, decision)


def _graph_view_of(coordinator: Coordinator, decided: BatchDecided) -> GraphView:
    view = build_view(coordinator.state)
    verdicts = {vertex: VertexDecision(chosen=True) for vertex in decided.batch}
    for group in decided.eliminated:
        note = f"rule {group.rule}" if group.rule else "no capacity"
        why = f"{note}: {group.reason}"
        verdicts |= {
            vertex: VertexDecision(chosen=False, note=note, reason=why) for vertex in group.vertices
        }
    name = coordinator.state.campaign.name
    return GraphView(
        title=f"{name}: iteration {decided.iteration}",
        iteration=decided.iteration,
        resources=view.graph,
        control=view.control,
        verdicts=verdicts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOutputs:
    """Optional outputs of a campaign."""

    graph: Path | None = None
    iteration: int = 1
    groups_only: bool = False
    report: Path | None = None
    compare: bool = False

    def check(self, campaign: UpgradeCampaign) -> None:
        """Reject outputs that cannot be made, before a long run and not after it."""
        if self.graph is not None:
            check_graph_file(self.graph)
        for path in (self.graph, self.report):
            if path is not None:
                check_writable(path)
        if self.compare:
            count_rolling_units(campaign)  # raises if the campaign has no rolling counterpart

    def make(self, campaign: UpgradeCampaign, events: Sequence[Event]) -> list[MethodComparison]:
        """Write the files and return the comparison, which is empty without ``--compare``."""
        lines = compare_with_rolling(campaign, events, with_progress_bar) if self.compare else []
        if self.graph is not None:
            write_graph(events, self.graph, self.iteration, groups_only=self.groups_only)
        if self.report is not None:
            write_file(self.report, upgrade_page(campaign_history(events), lines).encode())
            print_page_written(self.report)
        return lines
