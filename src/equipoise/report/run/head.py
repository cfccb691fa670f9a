"""The head of a run's page: name, facts, the main figures as tiles, and violations."""

from __future__ import annotations

from typing import Final

from equipoise.documents.simulation import SimulationDocument
from equipoise.model.quantity import format_count
from equipoise.report.chart.markup import EMPTY, Markup, html_table, tag, text
from equipoise.report.format import (
    format_duration,
    format_moment,
    format_number,
    format_percent,
    shorten_end,
    shorten_middle,
    with_unit,
)
from equipoise.report.run.data import pool_label

UNNAMED: Final = "unnamed run"
_VIOLATIONS_MAX: Final = 50
_HASH_LETTERS: Final = 16
_ABOUT_MAX: Final = 600
_NAME_MAX: Final = 24


def page_head(document: SimulationDocument) -> Markup:
    """Return the name, the description, the facts, the tiles and the violations."""
    about = shorten_end(document.about, _ABOUT_MAX)
    return tag(
        "header",
        tag("h1", text(document.scenario or UNNAMED)),
        tag("p", text(about), class_="about") if about else EMPTY,
        tag("p", text(run_facts(document)), class_="facts"),
        tag("ul", *_tiles(document), class_="tiles"),
        _violations_table(document),
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
