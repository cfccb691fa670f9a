"""The page of a run: one HTML file that opens without a network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final

from equipoise import __version__
from equipoise.documents.simulation import SimulationDocument
from equipoise.report.chart.markup import (
    Markup,
    Section,
    concat,
    embed_trusted,
    html_table,
    tag,
    text,
    void_tag,
)
from equipoise.report.run.actions import action_attempts, actions_section
from equipoise.report.run.data import RunData
from equipoise.report.run.decisions import decisions_section
from equipoise.report.run.head import page_head
from equipoise.report.run.hosts import hosts_section
from equipoise.report.run.load import happiness_section, imbalance_section, load_section
from equipoise.report.run.measures import run_measures
from equipoise.report.run.power import power_section

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


def run_page(run: RunData) -> str:
    """Return the page of one run."""
    attempts = action_attempts(run.events, run.span.high_s)
    sections = [
        load_section(run),
        imbalance_section(run, attempts),
        hosts_section(run),
        happiness_section(run),
        power_section(run),
        actions_section(run, attempts),
        decisions_section(run),
        _measures_section(run.document),
    ]
    title = f"{run.document.scenario or 'run'}: Equipoise"
    return html_document(title, page_head(run.document), sections)


def html_document(title: str, top: Markup, sections: Sequence[Section]) -> str:
    """Return a whole page with its style and its script."""
    style, script = _asset("page.css"), _asset("page.js")
    # The policy allows this script by its hash, and no other script that data might inject.
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    links = [
        tag("li", tag("a", text(section.title), href=f"#{section.name}")) for section in sections
    ]
    content = tag(
        "body",
        _PATTERNS,
        top,
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", *(section.markup() for section in sections)),
        tag("footer", tag("p", text(f"Made by Equipoise {__version__}."))),
        embed_trusted("script", script),
    )
    head_part = tag(
        "head",
        void_tag("meta", charset="utf-8"),
        void_tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("title", text(title)),
        embed_trusted("style", style),
    )
    return f"<!doctype html>\n{tag('html', head_part, content, lang='en-GB')}\n"


def _measures_section(document: SimulationDocument) -> Section:
    rows = [[text(measure.label), text(measure.words)] for measure in run_measures(document)]
    table = html_table(("measure", "value"), rows, right=("value",))
    caption = "All figures of summary.json."
    return Section("measures", "All measures", caption, concat([table]))


def _asset(name: str) -> str:
    return files("equipoise.report").joinpath(name).read_text(encoding="utf-8")
