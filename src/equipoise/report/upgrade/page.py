"""The page of a campaign: result, timeline, tenants, iterations with reasons, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from equipoise.model.quantity import format_count
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.report.chart.frame import empty_note
from equipoise.report.chart.markup import EMPTY, Markup, Section, html_table, tag, text
from equipoise.report.format import format_duration, format_instant, format_number, shorten_end
from equipoise.report.run.head import tile
from equipoise.report.run.page import html_document
from equipoise.report.upgrade.compare import MethodComparison, comparison_section
from equipoise.report.upgrade.history import CampaignHistory
from equipoise.report.upgrade.iterations import iterations_section, timeline_section
from equipoise.report.upgrade.penalties import CampaignPenalties, campaign_penalties
from equipoise.report.upgrade.tenants import tenants_section

_NOTES_MAX: Final = 500
_ABOUT_MAX: Final = 600


def upgrade_page(history: CampaignHistory, compared: Sequence[MethodComparison] = ()) -> str:
    """Return the page of a campaign, with the comparison with rolling upgrades if given."""
    penalties = campaign_penalties(history)
    sections = [timeline_section(history), tenants_section(history, penalties)]
    sections += [comparison_section(compared)] if compared else []
    sections += [iterations_section(history), _notes_section(history)]
    title = f"{history.campaign.name}: upgrade, Equipoise"
    return html_document(title, _head(history, penalties), sections)


def _head(history: CampaignHistory, penalties: CampaignPenalties) -> Markup:
    campaign = history.campaign
    cluster = campaign.cluster
    size = ", ".join(
        format_count(len(items), word)
        for items, word in (
            (cluster.hosts, "host"),
            (cluster.resources, "resource"),
            (cluster.vms, "VM"),
            (cluster.tenants, "tenant"),
        )
    )
    literal = "; literal readings of the thesis" if campaign.settings.readings.any_literal else ""
    about = shorten_end(campaign.about, _ABOUT_MAX)
    return tag(
        "header",
        tag("h1", text(campaign.name)),
        tag("p", text(about), class_="about") if about else EMPTY,
        tag("p", text(f"{size}; seed {campaign.seed}{literal}"), class_="facts"),
        tag("ul", *_tiles(history, penalties), class_="tiles"),
    )


def _tiles(history: CampaignHistory, penalties: CampaignPenalties) -> list[Markup]:
    fine = history.status is CampaignStatus.COMPLETED
    waits = history.iterations[-1].paused if history.iterations else ""
    worst = max((penalty.application_s for penalty in penalties.tenants), default=0.0)
    out = sum(penalty.violation_s for penalty in penalties.tenants)
    return [
        tile("status", history.status.value, "" if fine else waits, None if fine else "bad"),
        tile(
            "duration",
            format_duration(penalties.duration_s),
            format_count(len(history.iterations), "iteration"),
        ),
        tile("VM moves", f"{penalties.moves:,}", ""),
        tile(
            "application outage",
            format_duration(worst),
            "of the worst tenant with anti-affinity groups",
            "bad" if worst else None,
        ),
        tile("VMs out", format_duration(out), "sum of all tenants, while VMs moved or failed"),
        tile(
            "refused",
            f"{penalties.refused:,}",
            "VMs within the SLA" if penalties.refused else "no VM within the SLA was refused",
            "bad" if penalties.refused else None,
        ),
        tile(
            "penalties",
            f"{format_number(penalties.proportional_s)} q'",
            f"proportional; {format_number(penalties.violation_s)} q for the delay; "
            "mean per tenant",
        ),
    ]


def _notes_section(history: CampaignHistory) -> Section:
    caption = "Ends of change sets, failures and isolated resources."
    if not history.notes:
        return Section("notes", "Other events", caption, empty_note("Nothing failed."))
    rows = [
        [text(format_instant(at_ms)), text(words)] for at_ms, words in history.notes[:_NOTES_MAX]
    ]
    return Section("notes", "Other events", caption, html_table(("time", "event"), rows))
