"""A campaign for a person: what happens when, what waits and why, and what is left of the room."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.cli.answer import clock, console, plain
from equipoise.cli.upgrading.document import lowest_headroom
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.words import counted
from equipoise.upgrade.account import Account, IterationAccount
from equipoise.upgrade.spare import Spare

FEW = 8
GROUPS_MAX = 20
EXPECTED = (
    "What is to be expected if nothing fails, no tenant scales and each checkpoint is approved at "
    "once. Nothing was done."
)


def show(campaign: Campaign, made: Account, *, dry_run: bool) -> None:
    """Print a campaign."""
    out = console()
    out.print(plain(campaign.about or campaign.name))
    if dry_run:
        out.print(EXPECTED)
    for line in _legend(made):
        out.print(plain(line))
    if dry_run:
        for each in made.spare:
            out.print(plain(_spare(each)))
    for iteration in made.iterations:
        out.print()
        for line in _told(iteration):
            out.print(plain(line))
    out.print()
    for set_, (outcome, reason) in made.sets.items():
        out.print(plain(f"set {set_}: {outcome}{f' ({reason})' if reason else ''}"))
    for line in _sums(made):
        out.print(plain(line))


def _spare(one: Spare) -> str:
    """What a request needs beyond what is promised, and whether it is there."""
    has = "the cluster has" if one.enough else "only"
    verdict = "" if one.enough else ": it will wait until tenants shrink or hosts are added"
    return (
        f"request {one.request}: {counted(one.needed, 'spare host')} needed, "
        f"{has} {one.available}{verdict}"
    )


def _legend(made: Account) -> Iterable[str]:
    """What the iterations do not tell: what was added, what matches, who is in a group."""
    for set_, complements in made.complements.items():
        for one in complements:
            yield f"set {set_}, added by the catalog: {one}"
    for set_, matching in made.matching.items():
        if matching:
            yield f"set {set_}, nothing to do for: {_few(matching)}"
    shown = list(made.groups.items())[:GROUPS_MAX]
    for group, members in shown:
        yield f"{group} is changed as one: {_few(members)}"
    if len(made.groups) > len(shown):
        yield f"and {len(made.groups) - len(shown)} more such groups"


def _told(one: IterationAccount) -> Iterable[str]:
    until = f" to {clock(one.ended_ms)}" if one.ended_ms else ""
    spare = f"{counted(one.z, 'host')} can be spared (Z)"
    movable = "" if one.v is None else f", {one.v} VMs may move (V)"
    yield f"iteration {one.i}  {clock(one.began_ms)}{until}  {spare}{movable}"
    for vms in one.consolidation:
        yield f"  make room  {_few(vms)}"
    alike: dict[tuple[str, ...], list[str]] = {}
    for vertex in one.batch:
        alike.setdefault(one.works.get(vertex, ("back into service",)), []).append(vertex)
    for works, vertices in alike.items():
        yield f"  change     {_few(vertices)}: {', '.join(dict.fromkeys(works))}"
    for resource, why in one.failed.items():
        yield f"  failed     {resource}: {why}"
    for number, vms in enumerate(one.vm_batches, 1):
        yield f"  move {number}     {_few(vms)}"
    for round_ in one.rounds:
        if round_.size < round_.wanted:
            yield f"  held back  {round_.wanted - round_.size} VMs: {round_.reason}"
    for group in one.eliminated:
        rule = f"rule {group.rule}" if group.rule else "no room or held"
        yield f"  waits      {_few(group.vertices)}: {group.reason} ({rule})"
    if one.paused:
        yield f"  pauses     until something changes: {one.paused}"


def _few(names: Iterable[str]) -> str:
    all_ = list(names)
    return ", ".join(all_[:FEW]) + (f" and {len(all_) - FEW} more" if len(all_) > FEW else "")


def _sums(made: Account) -> Iterable[str]:
    yield (
        f"{made.status} after {counted(len(made.iterations), 'iteration')} and "
        f"{clock(made.duration_ms)}{f': {made.reason}' if made.reason else ''}"
    )
    if made.status is CampaignStatus.PAUSED:
        approve = ", and --command approve:SET" if "approval" in made.reason else ""
        yield f"to go on: the same command with --journal, once that has changed{approve}"
    if made.moves:
        yield (
            f"{counted(sum(made.moves.values()), 'move')} of {counted(len(made.moves), 'VM')}, "
            f"at most {max(made.moves.values())} each"
        )
    lowest = lowest_headroom(made)
    if lowest is not None:
        where = next(one.i for one in made.iterations if one.headroom == lowest)
        yield (
            f"lowest headroom: {counted(lowest, 'host')} beyond what is reserved "
            f"(first in iteration {where})"
        )
    outage_s = sum(made.outage_ms.values()) / 1000
    tenants = f" ({', '.join(made.outage_ms)})" if made.outage_ms else ""
    yield f"{counted(len(made.violations), 'SLA violation')}, {outage_s:g} s of outage{tenants}"
    for resource, why in made.isolated.items():
        yield f"isolated: {resource}, {why}"
    for order, why in made.refused_orders:
        yield f"refused: {order}: {why}"
    for one in made.violations:
        yield f"violation at {clock(one.at_ms)}: {one.what}"
