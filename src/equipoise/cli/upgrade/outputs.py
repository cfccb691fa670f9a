"""Prints a campaign; writes its graph, its page, and the comparison with rolling upgrades."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.cli.file_io import check_writable, print_page_written, write_file
from equipoise.cli.output import (
    console,
    format_time_ms,
    make_table,
    printable,
    progress_console,
    with_progress_bar,
)
from equipoise.documents.upgrade import lowest_headroom
from equipoise.model.event import Event
from equipoise.model.quantity import TenantId, format_count
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import BatchDecided, CampaignStatus
from equipoise.report.upgrade.compare import COLUMNS, MethodComparison, compare_with_rolling
from equipoise.report.upgrade.history import campaign_history
from equipoise.report.upgrade.page import upgrade_page
from equipoise.report.upgrade_graph import GraphView, write_graph_view
from equipoise.report.upgrade_graph.diagram import VertexDecision
from equipoise.report.upgrade_graph.view import check_graph_file
from equipoise.sim.upgrade.rolling import count_rolling_units
from equipoise.upgrade.coordinator import Coordinator
from equipoise.upgrade.graph.iteration_view import build_view
from equipoise.upgrade.select_batch import VM_MOVES_REASON
from equipoise.upgrade.summary import CampaignSummary, IterationSummary, SpareHostNeed

NAMES_SHOWN = 8
VM_MOVES_CODE: Final = VM_MOVES_REASON.code
GROUPS_MAX = 20
_CONTINUED_BY = {"waits-for-approval": "approve", "too-many-failures": "resume"}
"""The command that continues a set after a pause, by the code of the pause."""
DRY_RUN_NOTE = (
    "Prediction: no task fails, no tenant scales and each checkpoint is approved at once. "
    "Nothing was executed."
)


def show_campaign(
    campaign: UpgradeCampaign, made: CampaignSummary, *, dry_run: bool, why: bool
) -> None:
    """Print a campaign, the result first. ``why`` adds rules, groups, and the reason of each VM."""
    out = console()
    out.print(printable(campaign.about or campaign.name))
    if dry_run:
        out.print(DRY_RUN_NOTE)
    for set_, (outcome, reason, _) in made.sets.items():
        out.print(printable(f"set {set_}: {outcome}{f' ({reason})' if reason else ''}"))
    for line in _total_lines(made):
        out.print(printable(line))
    if dry_run:
        for need in made.spare:
            out.print(printable(_spare_hosts_line(need)))
    for line in _legend_lines(made, why=why):
        out.print(printable(line))
    names = ReadableNames({} if why else made.names, why=why)
    for iteration in made.iterations:
        out.print()
        for line in _iteration_lines(iteration, names):
            out.print(printable(line))


@dataclass(frozen=True, slots=True)
class ReadableNames:
    """The names that an operator knows, in place of those of the graphs."""

    shown: Mapping[str, str]
    why: bool
    """Whether rules and graph names are shown."""

    def of(self, vertices: Iterable[str]) -> str:
        """Return some names as a list, each once."""
        return _name_list(dict.fromkeys(self.shown.get(vertex, vertex) for vertex in vertices))

    def reason(self, text: str) -> str:
        """Return a reason with the names that an operator knows, and without cases of rules."""
        if self.why:
            return text
        named = _WORD.sub(lambda word: self.shown.get(word[0], word[0]), text)
        return _CASE.sub("", named)


_WORD: Final = re.compile(r"[A-Za-z0-9_][\w.-]*\w|\w")
_CASE: Final = re.compile(r" \(case \d\w\)")


def _spare_hosts_line(need: SpareHostNeed) -> str:
    """Return the spare hosts that a request needs, and those of the cluster."""
    verdict = "" if need.is_enough else ": it waits until tenants shrink or hosts are added"
    return (
        f"request {need.request}: {format_count(need.needed, 'spare host')} needed, "
        f"{need.available} available{verdict}"
    )


def _legend_lines(made: CampaignSummary, *, why: bool) -> Iterable[str]:
    """Yield complementary changes, resources without work, and groups."""
    for set_, complements in made.complements.items():
        for complement in complements:
            yield f"set {set_}, added by the catalog: {complement}"
    for set_, matching in made.already_matching.items():
        if matching:
            yield f"set {set_}, up to date already: {_name_list(matching)}"
    shown = list(made.groups.items())[:GROUPS_MAX] if why else []
    for group, members in shown:
        yield f"{group} changes as one unit: {_name_list(members)}"
    if why and len(made.groups) > len(shown):
        yield f"and {len(made.groups) - len(shown)} more such groups"


def _iteration_lines(iteration: IterationSummary, names: ReadableNames) -> Iterable[str]:
    until = f" to {format_time_ms(iteration.ended_ms)}" if iteration.ended_ms else ""
    spare = f"{format_count(iteration.z, 'host')} can leave service{' (Z)' if names.why else ''}"
    v = " (V)" if names.why else ""
    movable = "" if iteration.v is None else f", {format_count(iteration.v, 'VM')} can move{v}"
    yield f"iteration {iteration.i}  {format_time_ms(iteration.began_ms)}{until}  {spare}{movable}"
    for vms in iteration.consolidation:
        yield f"  vacate     {_name_list(vms)}"
    alike: dict[tuple[str, ...], list[str]] = {}
    for vertex in iteration.batch:
        alike.setdefault(iteration.works.get(vertex, ("back into service",)), []).append(vertex)
    for works, vertices in alike.items():
        yield f"  change     {names.of(vertices)}: {', '.join(dict.fromkeys(works))}"
    for resource, why in iteration.failed.items():
        yield f"  failed     {names.of([resource])}: {names.reason(why)}"
    for number, vms in enumerate(iteration.vm_batches, 1):
        yield f"  move {number}     {_name_list(vms)}"
    for reason, held in _held_back(iteration).items():
        yield f"  held back  {f'{held} VMs: ' if held else ''}{names.reason(reason)}"
    for group in iteration.eliminated:
        if group.code == VM_MOVES_CODE and not names.why:
            continue  # what moves is listed above
        rule = f" (rule {group.rule})" if names.why and group.rule else ""
        yield f"  waits      {names.of(group.vertices)}: {names.reason(group.reason)}{rule}"
    if iteration.paused:
        yield f"  pauses     {names.reason(iteration.paused)}"


def _held_back(iteration: IterationSummary) -> dict[str, int]:
    """Return why VMs stayed, each reason once, with the most VMs; also if none was left to try."""
    held: dict[str, int] = {}
    for round_ in iteration.rounds:
        if round_.size < round_.wanted or round_.code == "moves-refused":
            held[round_.reason] = max(held.get(round_.reason, 0), round_.wanted - round_.size)
    return held


def _name_list(names: Iterable[str]) -> str:
    all_ = list(names)
    return ", ".join(all_[:NAMES_SHOWN]) + (
        f" and {len(all_) - NAMES_SHOWN} more" if len(all_) > NAMES_SHOWN else ""
    )


def _total_lines(made: CampaignSummary) -> Iterable[str]:
    yield (
        f"{made.status} after {format_count(len(made.iterations), 'iteration')} and "
        f"{format_time_ms(made.duration_ms)}{f': {made.reason}' if made.reason else ''}"
    )
    if made.status is CampaignStatus.PAUSED:
        codes = made.iterations[-1].pause_codes if made.iterations else ()
        orders = [
            f", and --command {_CONTINUED_BY[code]}:SET" for code in codes if code in _CONTINUED_BY
        ]
        yield (
            f"to continue: fix the cause, then run the same command with --journal{''.join(orders)}"
        )
    if made.moves:
        yield (
            f"{format_count(sum(made.moves.values()), 'move')} "
            f"of {format_count(len(made.moves), 'VM')}, "
            f"at most {max(made.moves.values())} each"
        )
    if made.returned_hosts:
        yield f"returned: {_name_list(made.returned_hosts)}"
    lowest = lowest_headroom(made)
    if lowest is not None:
        where = next(iteration.i for iteration in made.iterations if iteration.headroom == lowest)
        yield (
            f"lowest headroom: {format_count(lowest, 'host')} beyond the reserve "
            f"(first in iteration {where})"
        )
    outage_s = sum(made.outage_ms.values()) / 1000
    tenants = f" ({', '.join(made.outage_ms)})" if made.outage_ms else ""
    violations = format_count(len(made.violations), "SLA violation")
    yield f"{violations}, {outage_s:g} s of outage{tenants}"
    least = min(made.service_availability.values(), default=None)
    if least is not None:
        yield f"service availability: {100 * least:.6g} % of the time for each tenant, or more"
    for resource, why in made.isolated.items():
        yield f"isolated: {resource}, {why}"
    for resource, why in made.given_up.items():
        yield f"left as it is: {resource}, {why}"
    for order, why in made.refused_orders:
        yield f"refused: {order}: {why}"
    for violation in made.violations:
        yield f"violation at {format_time_ms(violation.at_ms)}: {violation.what}"


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

    def make(
        self,
        campaign: UpgradeCampaign,
        events: Sequence[Event],
        outage_ms: Mapping[TenantId, int],
    ) -> list[MethodComparison]:
        """Write the files and return the comparison, which is empty without ``--compare``.

        ``outage_ms`` is the outage of the summary, so that the page shows the same.
        """
        lines = compare_with_rolling(campaign, events, with_progress_bar) if self.compare else []
        if self.graph is not None:
            write_graph(events, self.graph, self.iteration, groups_only=self.groups_only)
        if self.report is not None:
            write_file(
                self.report, upgrade_page(campaign_history(events), lines, outage_ms).encode()
            )
            print_page_written(self.report)
        return lines
