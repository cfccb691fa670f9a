"""The head of a page: which run it is, and the figures everybody asks for first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from equipoise.model.words import counted
from equipoise.report.chart.markup import EMPTY, Markup, tag, text
from equipoise.report.material import Summary, figure, looked_up, pool_called
from equipoise.report.measures import entries
from equipoise.report.section import listed
from equipoise.report.words import cut, duration, moment, number, percent, shortened, with_unit

_VIOLATIONS_MAX: Final = 50
_HASH_LETTERS: Final = 16
_ABOUT_MAX: Final = 600
_NAME_MAX: Final = 24


def head(summary: Summary) -> Markup:
    """Name, about, facts and tiles."""
    about = shortened(str(summary.get("about") or ""), _ABOUT_MAX)
    return tag(
        "header",
        tag("h1", text(summary.get("scenario") or "a run without a name")),
        tag("p", text(about), class_="about") if about else EMPTY,
        tag("p", text(facts(summary)), class_="facts"),
        tag("ul", *_tiles(summary), class_="tiles"),
        _violations(summary),
    )


def facts(summary: Summary) -> str:
    """Seed, length and whatever else is needed to repeat the run, in a line."""
    parts = []
    if summary.get("seed") is not None:
        parts.append(f"seed {summary['seed']}")
    if (simulated := figure(summary, "duration_s")) is not None:
        wall = figure(summary, "wall_s")
        took = "" if wall is None else f" in {duration(wall)}"
        parts.append(f"{duration(simulated)} simulated{took}")
    deciders = summary.get("deciders")
    if isinstance(deciders, list):
        named = ", ".join(map(str, deciders))
        parts.append(f"decided by {named}" if named else "with no decider")
    if summary.get("journal_sha256"):
        parts.append(f"journal {str(summary['journal_sha256'])[:_HASH_LETTERS]}")
    return "; ".join(parts)


def _tiles(summary: Summary) -> list[Markup]:
    found = [
        _demand_met(summary),
        _imbalance(summary),
        _happiness(summary),
        _tile("migrations", figure(summary, "migrations"), "", _downtime(summary)),
        _tile("energy", figure(summary, "energy_kwh"), "kWh", _switching(summary)),
        _sla(summary),
        _broken(summary),
    ]
    return [one for one in found if one]


def _tile(name: str, value: float | None, unit: str, note: str = "") -> Markup:
    return EMPTY if value is None else worded(name, with_unit(value, unit), note)


def worded(name: str, value: str, note: str = "", look: str | None = None) -> Markup:
    """One figure in a tile: what it is, how much, and a note."""
    return tag(
        "li",
        tag("span", text(name), class_="what"),
        tag("strong", text(value)),
        tag("span", text(note), class_="more"),
        class_=look,
    )


def _demand_met(summary: Summary) -> Markup:
    memory = figure(summary, "satisfied_pct.memory")
    note = "" if memory is None else f"memory {percent(memory)}"
    return _tile("CPU demand met", figure(summary, "satisfied_pct.cpu"), "%", note)


def _imbalance(summary: Summary) -> Markup:
    final = figure(summary, "imbalance.final")
    first = figure(summary, "imbalance.initial")
    below = figure(summary, "imbalance.below_target_at_s")
    parts = [] if first is None else [f"at the start {number(first)}"]
    parts += [] if below is None else [f"on target at {moment(below)}"]
    return _tile("imbalance", final, "", ", ".join(parts))


def _happiness(summary: Summary) -> Markup:
    pools = entries(summary, "happiness")
    known = [
        (mean, cut(pool_called(str(one.get("pool") or ""), alone=len(pools) == 1), _NAME_MAX))
        for one in pools
        if (mean := figure(one, "mean_pct")) is not None
    ]
    if not known:
        return EMPTY
    mean, name = min(known)
    if len(known) == 1:
        return _tile("happiness", mean, "%", f"mean of {name}")
    return _tile("happiness", mean, "%", f"mean of {name}, the least happy of {len(known)} pools")


def _downtime(summary: Summary) -> str:
    down = figure(summary, "downtime_s")
    return "" if down is None else f"downtime {duration(down)}"


def _switching(summary: Summary) -> str:
    ons, offs = figure(summary, "power_ons"), figure(summary, "power_offs")
    parts = []
    if figure(summary, "energy.host_hours_asleep") and figure(summary, "energy_kwh"):
        parts.append(f"saved by sleep {with_unit(figure(summary, 'energy.saved_kwh'), 'kWh')}")
    if ons is not None and offs is not None and (ons or offs):
        parts.append(f"hosts powered on {number(ons)}, off {number(offs)} times")
    return ", ".join(parts)


def _sla(summary: Summary) -> Markup:
    """The promises to all tenants together; each one is in the table at the end."""
    found = summary.get("sla")
    tenants = [found] if isinstance(found, Mapping) else entries(summary, "sla")
    violated = [one for tenant in tenants if (one := figure(tenant, "violation_s")) is not None]
    if not violated:
        return EMPTY
    missing = sum(figure(tenant, "vm_s") or 0.0 for tenant in tenants)
    note = f"VM time missing {duration(missing)}" if missing else "every promise was kept"
    return worded("SLA violated", duration(sum(violated)), note, "bad" if any(violated) else None)


def _broken(summary: Summary) -> Markup:
    found = summary.get("violations")
    if not isinstance(found, list | tuple):
        return EMPTY
    if not found:
        return worded("rules broken", "0", "every rule held")
    return worded("rules broken", f"{len(found):,}", "see below", "bad")


def _violations(summary: Summary) -> Markup:
    """The rules that were broken, first thing on the page: nothing else matters as much."""
    found = looked_up(summary, "violations")
    known = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    if not known:
        return EMPTY
    rows = [
        [
            text(one.get(key) if one.get(key) is not None else "")
            for key in ("constraint", "step", "detail")
        ]
        for one in known[:_VIOLATIONS_MAX]
    ]
    left = len(known) - len(rows)
    note = f"The other {left:,} are in summary.json." if left else ""
    shown = listed(("rule", "step", "what is wrong"), rows)
    title = tag("h2", text(counted(len(known), "rule") + " broken"))
    return tag("div", title, shown, tag("p", text(note), class_="note"), class_="broken")
