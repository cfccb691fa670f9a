"""Prints a campaign: iterations, waiting resources with reasons, and totals."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.cli.output import console, format_time_ms, printable
from equipoise.documents.upgrade import lowest_headroom
from equipoise.model.quantity import format_count
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.upgrade.summary import CampaignSummary, IterationSummary, SpareHostNeed

NAMES_SHOWN = 8
GROUPS_MAX = 20
DRY_RUN_NOTE = (
    "Prediction: no task fails, no tenant scales and each checkpoint is approved at once. "
    "Nothing was executed."
)


def show_campaign(campaign: UpgradeCampaign, made: CampaignSummary, *, dry_run: bool) -> None:
    """Print a campaign."""
    out = console()
    out.print(printable(campaign.about or campaign.name))
    if dry_run:
        out.print(DRY_RUN_NOTE)
    for line in _legend_lines(made):
        out.print(printable(line))
    if dry_run:
        for need in made.spare:
            out.print(printable(_spare_hosts_line(need)))
    for iteration in made.iterations:
        out.print()
        for line in _iteration_lines(iteration):
            out.print(printable(line))
    out.print()
    for set_, (outcome, reason, _) in made.sets.items():
        out.print(printable(f"set {set_}: {outcome}{f' ({reason})' if reason else ''}"))
    for line in _total_lines(made):
        out.print(printable(line))


def _spare_hosts_line(need: SpareHostNeed) -> str:
    """Return the spare hosts that a request needs, and those of the cluster."""
    verdict = "" if need.is_enough else ": it waits until tenants shrink or hosts are added"
    return (
        f"request {need.request}: {format_count(need.needed, 'spare host')} needed, "
        f"{need.available} available{verdict}"
    )


def _legend_lines(made: CampaignSummary) -> Iterable[str]:
    """Yield complementary changes, resources without work, and groups."""
    for set_, complements in made.complements.items():
        for complement in complements:
            yield f"set {set_}, added by the catalog: {complement}"
    for set_, matching in made.already_matching.items():
        if matching:
            yield f"set {set_}, up to date already: {_name_list(matching)}"
    shown = list(made.groups.items())[:GROUPS_MAX]
    for group, members in shown:
        yield f"{group} changes as one unit: {_name_list(members)}"
    if len(made.groups) > len(shown):
        yield f"and {len(made.groups) - len(shown)} more such groups"


def _iteration_lines(iteration: IterationSummary) -> Iterable[str]:
    until = f" to {format_time_ms(iteration.ended_ms)}" if iteration.ended_ms else ""
    spare = f"{format_count(iteration.z, 'host')} can leave service (Z)"
    movable = "" if iteration.v is None else f", {iteration.v} VMs can move (V)"
    yield f"iteration {iteration.i}  {format_time_ms(iteration.began_ms)}{until}  {spare}{movable}"
    for vms in iteration.consolidation:
        yield f"  vacate     {_name_list(vms)}"
    alike: dict[tuple[str, ...], list[str]] = {}
    for vertex in iteration.batch:
        alike.setdefault(iteration.works.get(vertex, ("back into service",)), []).append(vertex)
    for works, vertices in alike.items():
        yield f"  change     {_name_list(vertices)}: {', '.join(dict.fromkeys(works))}"
    for resource, why in iteration.failed.items():
        yield f"  failed     {resource}: {why}"
    for number, vms in enumerate(iteration.vm_batches, 1):
        yield f"  move {number}     {_name_list(vms)}"
    for round_ in iteration.rounds:
        if round_.size < round_.wanted:
            yield f"  held back  {round_.wanted - round_.size} VMs: {round_.reason}"
    for group in iteration.eliminated:
        rule = f"rule {group.rule}" if group.rule else "no capacity or on hold"
        yield f"  waits      {_name_list(group.vertices)}: {group.reason} ({rule})"
    if iteration.paused:
        yield f"  pauses     {iteration.paused}"


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
        approve = ", and --command approve:SET" if "approval" in made.reason else ""
        yield f"to continue: fix the cause, then run the same command with --journal{approve}"
    if made.moves:
        yield (
            f"{format_count(sum(made.moves.values()), 'move')} "
            f"of {format_count(len(made.moves), 'VM')}, "
            f"at most {max(made.moves.values())} each"
        )
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
    for resource, why in made.isolated.items():
        yield f"isolated: {resource}, {why}"
    for order, why in made.refused_orders:
        yield f"refused: {order}: {why}"
    for violation in made.violations:
        yield f"violation at {format_time_ms(violation.at_ms)}: {violation.what}"
