"""The page of a run: its head with the main figures, its sections, and the frame of every page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final

from equipoise import __version__
from equipoise.documents.simulation import SimulationDocument
from equipoise.model.quantity import format_count
from equipoise.report.chart.markup import (
    EMPTY,
    Markup,
    Section,
    concat,
    embed_trusted,
    html_table,
    tag,
    text,
    void_tag,
)
from equipoise.report.format import (
    format_duration,
    format_moment,
    format_number,
    format_percent,
    shorten_end,
    shorten_middle,
    with_unit,
)
from equipoise.report.run.actions import action_attempts, actions_section
from equipoise.report.run.data import RunData, pool_label
from equipoise.report.run.decisions import decisions_section
from equipoise.report.run.hosts import hosts_section
from equipoise.report.run.load import happiness_section, imbalance_section, load_section
from equipoise.report.run.measures import run_measures
from equipoise.report.run.power import power_section

UNNAMED: Final = "unnamed run"
_VIOLATIONS_MAX: Final = 50
_HASH_LETTERS: Final = 16
_ABOUT_MAX: Final = 600
_NAME_MAX: Final = 24


def page_head(document: SimulationDocument) -> Markup:
    """Return the name, the description, the facts, the tiles and the violations."""
    return page_header(
        document.scenario or UNNAMED,
        run_facts(document),
        _tiles(document),
        about=document.about,
        below=_violations_table(document),
    )


def page_header(
    title: str, facts: str, tiles: Iterable[Markup], *, about: str = "", below: Markup = EMPTY
) -> Markup:
    """Return the header of a page: title, description, facts, main figures, and what is below."""
    return tag(
        "header",
        tag("h1", text(title)),
        tag("p", text(shorten_end(about, _ABOUT_MAX)), class_="about") if about else EMPTY,
        tag("p", text(facts), class_="facts"),
        tag("ul", *tiles, class_="tiles"),
        below,
    )


def run_facts(document: SimulationDocument) -> str:
    """Return seed, length, deciders and journal hash in one line: all that repeats the run."""
    parts = []
    if document.seed is not None:
        parts.append(f"seed {document.seed}")
    if document.duration_s is not None:
        wall = document.wall_s
        took = "" if wall is None else f" in {format_duration(wall)}"
        parts.append(f"{format_duration(document.duration_s)} simulated{took}")
    if document.deciders is not None:
        names = ", ".join(document.deciders)
        parts.append(f"deciders: {names}" if names else "no decider")
    if document.journal_sha256:
        parts.append(f"journal {document.journal_sha256[:_HASH_LETTERS]}")
    return "; ".join(parts)


def _tiles(document: SimulationDocument) -> list[Markup]:
    tiles = [
        _demand_tile(document),
        _imbalance_tile(document),
        _happiness_tile(document),
        _number_tile("migrations", document.migrations, "", _downtime(document)),
        _number_tile("energy", document.energy_kwh, "kWh", _switching(document)),
        _sla_tile(document),
        _violations_tile(document),
    ]
    return [one_tile for one_tile in tiles if one_tile]


def _number_tile(name: str, value: float | None, unit: str, note: str = "") -> Markup:
    return EMPTY if value is None else tile(name, with_unit(value, unit), note)


def tile(name: str, value: str, note: str = "", look: str | None = None) -> Markup:
    """Return one figure as a tile: its name, its value and a note."""
    return tag(
        "li",
        tag("span", text(name), class_="what"),
        tag("strong", text(value)),
        tag("span", text(note), class_="more"),
        class_=look,
    )


def _demand_tile(document: SimulationDocument) -> Markup:
    memory = document.satisfied_pct.memory
    note = "" if memory is None else f"memory {format_percent(memory)}"
    return _number_tile("CPU demand met", document.satisfied_pct.cpu, "%", note)


def _imbalance_tile(document: SimulationDocument) -> Markup:
    imbalance = document.imbalance
    parts = []
    if imbalance.initial is not None:
        parts.append(f"at the start {format_number(imbalance.initial)}")
    if isinstance(imbalance.below_target_at_s, int | float):
        parts.append(f"below the target at {format_moment(imbalance.below_target_at_s)}")
    return _number_tile("imbalance", imbalance.final, "", ", ".join(parts))


def _happiness_tile(document: SimulationDocument) -> Markup:
    """Return the mean of the least happy pool."""
    alone = len(document.happiness) == 1
    means = [
        (row.mean_pct, shorten_middle(pool_label(row.pool, alone=alone), _NAME_MAX))
        for row in document.happiness
        if row.mean_pct is not None
    ]
    if not means:
        return EMPTY
    mean, name = min(means)
    note = f"mean of {name}"
    if len(means) > 1:
        note += f", the least happy of {len(means)} pools"
    return _number_tile("happiness", mean, "%", note)


def _downtime(document: SimulationDocument) -> str:
    down = document.downtime_s
    return "" if down is None else f"downtime {format_duration(down)}"


def _switching(document: SimulationDocument) -> str:
    ons, offs = document.power_ons, document.power_offs
    parts = []
    if document.energy.host_hours_asleep and document.energy_kwh:
        parts.append(f"saved by standby {with_unit(document.energy.saved_kwh, 'kWh')}")
    if ons is not None and offs is not None and (ons or offs):
        parts.append(f"hosts powered on {format_number(ons)}, off {format_number(offs)} times")
    return ", ".join(parts)


def _sla_tile(document: SimulationDocument) -> Markup:
    """Return the SLA violations of all tenants together."""
    violated = [row.violation_s for row in document.sla if row.violation_s is not None]
    if not violated:
        return EMPTY
    missing = sum(row.vm_s or 0.0 for row in document.sla)
    note = f"VM time missing {format_duration(missing)}" if missing else "no SLA was violated"
    look = "bad" if any(violated) else None
    return tile("SLA violated", format_duration(sum(violated)), note, look)


def _violations_tile(document: SimulationDocument) -> Markup:
    if document.violations is None:
        return EMPTY
    if not document.violations:
        return tile("constraints violated", "0", "every constraint holds")
    return tile("constraints violated", f"{len(document.violations):,}", "see below", "bad")


def _violations_table(document: SimulationDocument) -> Markup:
    """Return the violated constraints; they are the most important part of the page."""
    violations = document.violations or ()
    if not violations:
        return EMPTY
    rows = [
        [text(violation.constraint), text(violation.step or ""), text(violation.detail)]
        for violation in violations[:_VIOLATIONS_MAX]
    ]
    hidden = len(violations) - len(rows)
    note = f"The other {hidden:,} are in summary.json." if hidden else ""
    table = html_table(("constraint", "step", "violation"), rows)
    title = tag("h2", text(format_count(len(violations), "constraint") + " violated"))
    return tag("div", title, table, tag("p", text(note), class_="note"), class_="broken")


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
