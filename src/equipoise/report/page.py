"""The page of a run: everything about it in one file that opens without a network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final

from equipoise import __version__
from equipoise.report.actions import deeds_of
from equipoise.report.chart.markup import Markup, joined, ours, tag, text, void
from equipoise.report.decisions import decisions
from equipoise.report.happiness import happiness
from equipoise.report.head import head
from equipoise.report.hosts import hosts
from equipoise.report.load import imbalance, load
from equipoise.report.material import Material, Summary
from equipoise.report.measures import measures
from equipoise.report.power import power
from equipoise.report.section import Section, listed
from equipoise.report.timeline import timeline

_PATTERNS: Final = Markup(
    '<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>'
    '<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect class="ground standby" width="6" height="6"/>'
    '<path class="ink standby" d="M0 0V6"/></pattern>'
    '<pattern id="dotted" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<rect class="ground maintenance" width="6" height="6"/>'
    '<circle class="ink maintenance" cx="3" cy="3" r="1.4"/></pattern>'
    '<pattern id="crossed" width="7" height="7" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect class="ground failed" width="7" height="7"/>'
    '<path class="ink failed" d="M0 0V7M0 0H7"/></pattern></defs></svg>'
)


def page_of(material: Material) -> str:
    """Make the page of one run."""
    deeds = deeds_of(material.events, material.span.high_s)
    sections = [
        load(material),
        imbalance(material, deeds),
        hosts(material),
        happiness(material),
        power(material),
        timeline(material, deeds),
        decisions(material),
        _measures(material.summary),
    ]
    title = f"{material.summary.get('scenario') or 'run'}: Equipoise"
    return document(title, head(material.summary), sections)


def document(title: str, top: Markup, sections: Sequence[Section]) -> str:
    """Put a whole page together."""
    style, script = _part("page.css"), _part("page.js")
    # The one script of this house may run, by its hash; whatever else got in may not.
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    links = [tag("li", tag("a", text(one.title), href=f"#{one.name}")) for one in sections]
    content = tag(
        "body",
        _PATTERNS,
        top,
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", *(one.markup() for one in sections)),
        tag("footer", tag("p", text(f"Made by Equipoise {__version__}."))),
        ours("script", script),
    )
    head_part = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("title", text(title)),
        ours("style", style),
    )
    return f"<!doctype html>\n{tag('html', head_part, content, lang='en-GB')}\n"


def _measures(summary: Summary) -> Section:
    rows = [[text(one.label), text(one.words)] for one in measures(summary)]
    table = listed(("measure", "value"), rows, right=("value",))
    see = "Every figure of the run, as it is in summary.json."
    return Section("measures", "All measures", see, joined([table]))


def _part(name: str) -> str:
    return files("equipoise.report").joinpath(name).read_text(encoding="utf-8")
