"""The page of a campaign: what came of it, what was done when, who missed what, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.words import counted
from equipoise.report.chart.frame import nothing
from equipoise.report.chart.markup import EMPTY, Markup, tag, text
from equipoise.report.head import worded
from equipoise.report.page import document
from equipoise.report.section import Section, listed
from equipoise.report.upgrades.compare import Line, comparison
from equipoise.report.upgrades.course import Course
from equipoise.report.upgrades.iterations import iterations
from equipoise.report.upgrades.penalties import Penalties, penalties_of
from equipoise.report.upgrades.tenants import tenants
from equipoise.report.upgrades.timeline import timeline
from equipoise.report.words import duration, instant, number, shortened

_NOTES_MAX: Final = 500
_ABOUT_MAX: Final = 600


def page_of(course: Course, compared: Sequence[Line] = ()) -> str:
    """Make the page of one campaign, which opens without a network; compared with others."""
    penalties = penalties_of(course)
    sections = [timeline(course), tenants(course, penalties)]
    sections += [comparison(compared)] if compared else []
    sections += [iterations(course), _notes(course)]
    title = f"{course.campaign.name}: upgrade, Equipoise"
    return document(title, _head(course, penalties), sections)


def _head(course: Course, penalties: Penalties) -> Markup:
    campaign = course.campaign
    cluster = campaign.cluster
    size = ", ".join(
        counted(len(those), word)
        for those, word in (
            (cluster.hosts, "host"),
            (cluster.resources, "resource"),
            (cluster.vms, "VM"),
            (cluster.tenants, "tenant"),
        )
    )
    read = "; read to the letter" if campaign.settings.readings.any_literal else ""
    about = shortened(campaign.about, _ABOUT_MAX)
    return tag(
        "header",
        tag("h1", text(campaign.name)),
        tag("p", text(about), class_="about") if about else EMPTY,
        tag("p", text(f"{size}; seed {campaign.seed}{read}"), class_="facts"),
        tag("ul", *_tiles(course, penalties), class_="tiles"),
    )


def _tiles(course: Course, penalties: Penalties) -> list[Markup]:
    fine = course.status is CampaignStatus.COMPLETED
    waits = course.rounds[-1].paused if course.rounds else ""
    worst = max((one.application_s for one in penalties.tenants), default=0.0)
    out = sum(one.violation_s for one in penalties.tenants)
    return [
        worded("status", course.status.value, "" if fine else waits, None if fine else "bad"),
        worded(
            "duration", duration(penalties.duration_s), counted(len(course.rounds), "iteration")
        ),
        worded("VM moves", f"{penalties.moves:,}", ""),
        worded(
            "application outage",
            duration(worst),
            "of the worst tenant whose VMs protect each other",
            "bad" if worst else None,
        ),
        worded("VMs out", duration(out), "all tenants together, while their VMs moved or failed"),
        worded(
            "refused",
            f"{penalties.refused:,}",
            "VMs that were promised" if penalties.refused else "every promise was kept",
            "bad" if penalties.refused else None,
        ),
        worded(
            "penalties",
            f"{number(penalties.proportional_s)} q'",
            f"proportional; {number(penalties.violation_s)} q for the delay; mean of a tenant",
        ),
    ]


def _notes(course: Course) -> Section:
    see = "How sets ended, what failed and what was taken out of the system."
    if not course.notes:
        return Section("notes", "What happened besides", see, nothing("Nothing failed."))
    rows = [[text(instant(at_ms)), text(words)] for at_ms, words in course.notes[:_NOTES_MAX]]
    return Section("notes", "What happened besides", see, listed(("at", "what"), rows))
