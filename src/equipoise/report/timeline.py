"""Actions over time: one row per VM or host, so that restless ones are seen at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from equipoise.model.action import footprint
from equipoise.model.words import counted
from equipoise.report.actions import Deed, Ending
from equipoise.report.chart import bars
from equipoise.report.chart.bars import Bar, Bars
from equipoise.report.chart.frame import legend, nothing, swatch
from equipoise.report.chart.markup import Markup, joined, tag, text
from equipoise.report.chart.switch import switched
from equipoise.report.material import Material
from equipoise.report.section import Section

_SUBJECTS_MAX: Final = 80
_HOSTS_MAX: Final = 60
_ARRIVING, _LEAVING, _WHOLE = (0.08, 0.48), (0.52, 0.92), (0.15, 0.85)
_ENDINGS: Final = {
    Ending.FINISHED: "finished",
    Ending.FAILED: "failed, without effect",
    Ending.LOST: "never answered, outcome unknown",
    Ending.RUNNING: "still running at the end",
}


def timeline(material: Material, deeds: list[Deed]) -> Section:
    """What was done to whom, and when."""
    title = "Actions over time"
    if not deeds:
        why = "No actions were carried out: nothing was migrated, started or switched."
        return Section("actions", title, "What was done to whom, and when.", nothing(why))
    views = {"by VM": _by_subject(material, deeds), "by host": _by_host(material, deeds)}
    shown = [tag("div", view, class_=f"view v{place}") for place, view in enumerate(views.values())]
    body = switched("actions", list(views), joined(shown))
    return Section("actions", title, _said(deeds), body)


def _said(deeds: list[Deed]) -> str:
    endings = Counter(deed.ending for deed in deeds)
    parts = [f"{endings[one]:,} {words}" for one, words in _ENDINGS.items() if endings[one]]
    subject, most = Counter(deed.subject for deed in deeds).most_common(1)[0]
    busiest = f" The most was done to {subject}: {counted(most, 'action')}." if most > 1 else ""
    return f"{counted(len(deeds), 'action')}: {', '.join(parts)}.{busiest}"


def _by_subject(material: Material, deeds: list[Deed]) -> Markup:
    counts = Counter(deed.subject for deed in deeds)
    shown = [subject for subject, _ in counts.most_common(_SUBJECTS_MAX)]
    # Read from the top, it is the order in which things began.
    first = {deed.subject: place for place, deed in reversed(list(enumerate(deeds)))}
    shown.sort(key=lambda subject: first[subject])
    places = {subject: row for row, subject in enumerate(shown)}
    picture = Bars(
        label="Actions by the VM or host they were done to",
        span=material.span,
        rows=[(subject, counted(counts[subject], "action")) for subject in shown],
        bars=[
            Bar(places[deed.subject], deed.start_s, deed.end_s, _look(deed), deed.words)
            for deed in deeds
            if deed.subject in places
        ],
        marks=material.marks(),
    )
    note = _left_out(len(counts), len(shown), "VM and host", "VMs and hosts")
    return joined([note, bars.draw(picture, _legend(deeds))])


def _by_host(material: Material, deeds: list[Deed]) -> Markup:
    touched = [(deed, host, band) for deed in deeds for host, band in _bands(deed)]
    if not touched:
        return nothing("No action touched a host.")
    counts = Counter(host for _, host, _ in touched)
    shown = sorted(host for host, _ in counts.most_common(_HOSTS_MAX))
    places = {host: row for row, host in enumerate(shown)}
    picture = Bars(
        label="Actions by the hosts they touched: above what arrived, below what left",
        span=material.span,
        rows=[(host, counted(counts[host], "action")) for host in shown],
        bars=[
            Bar(places[host], deed.start_s, deed.end_s, _look(deed), deed.words, band)
            for deed, host, band in touched
            if host in places
        ],
        marks=material.marks(),
    )
    note = _left_out(len(counts), len(shown), "host", "hosts")
    halves = tag("p", text("In the upper half of a row what arrives, in the lower what leaves."),
                 class_="note")  # fmt: skip
    return joined([note, halves, bars.draw(picture, _legend(deeds))])


def _bands(deed: Deed) -> Iterator[tuple[str, tuple[float, float]]]:
    seen = footprint(deed.action)
    if seen.switched is not None:
        yield seen.switched, _WHOLE
    if seen.target is not None:
        yield seen.target, _ARRIVING
    if seen.source is not None and seen.source != seen.target:
        yield seen.source, _LEAVING


def _look(deed: Deed) -> str:
    return f"deed {deed.ending}"


def _left_out(known: int, shown: int, one: str, many: str) -> Markup:
    if known == shown:
        return joined([])
    words = f"The {shown} busiest of {known:,} {many if known > 1 else one} are shown; "
    return tag(
        "p", text(words + f"the other {known - shown:,} are in journal.jsonl."), class_="note"
    )


def _legend(deeds: Sequence[Deed]) -> Markup:
    seen = {deed.ending for deed in deeds}
    return legend(*(swatch(f"deed {one}", words) for one, words in _ENDINGS.items() if one in seen))
