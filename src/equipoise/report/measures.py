"""The measures of a run: each figure of its summary with a name, a unit and a good direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from equipoise.report.material import Summary, figure, looked_up, pool_called
from equipoise.report.words import NONE, duration, with_unit

HIGHER: Final = 1
LOWER: Final = -1
NEITHER: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure of a run."""

    path: str
    label: str
    unit: str = ""
    better: int = NEITHER
    value: float | None = None
    words: str = NONE
    """The value as people read it; some values are words from the start."""

    def say(self, value: float | None) -> str:
        """Write a value, or a difference of two, as this measure is written."""
        return duration(value) if self.unit == "s" else with_unit(value, self.unit)


class _Known(NamedTuple):
    path: str
    label: str
    unit: str
    better: int = NEITHER


class _Group(NamedTuple):
    """A list in the summary, with the same figures for each pool, tenant or class."""

    path: str
    key: str
    """Where the name of an entry is."""
    called: str
    figures: tuple[_Known, ...]


_NEVER: Final = "imbalance.below_target_at_s"
_MONEY: Final = "money"
"""In place of a unit: the currency of the run."""
_SAID: Final = ("energy.kwh", "energy.currency")
"""What other measures say already."""
_KNOWN: Final = (
    _Known("satisfied_pct.cpu", "CPU demand met", "%", HIGHER),
    _Known("satisfied_pct.memory", "memory demand met", "%", HIGHER),
    _Known("payload_pct.cpu", "CPU used, of all there was", "%", HIGHER),
    _Known("payload_pct.memory", "memory used, of all there was", "%", HIGHER),
    _Known("cpu_ready_pct", "time that VMs waited for a CPU", "%", LOWER),
    _Known("imbalance.initial", "imbalance at the start", ""),
    _Known("imbalance.final", "imbalance at the end", "", LOWER),
    _Known("imbalance.target", "target of the imbalance", ""),
    _Known(_NEVER, "imbalance first below its target", "s", LOWER),
    _Known("migrations", "migrations", "", LOWER),
    _Known("downtime_s", "downtime of VMs", "s", LOWER),
    _Known("sla.violation_s", "SLA violated", "s", LOWER),
    _Known("sla.vm_s", "VM time missing", "s", LOWER),
    _Known("violations", "rules broken", "", LOWER),
    _Known("unsatisfied.cpu_mhz_h", "CPU demand not met", "MHz h", LOWER),
    _Known("unsatisfied.memory_mib_h", "memory demand not met", "MiB h", LOWER),
    _Known("energy_kwh", "energy", "kWh", LOWER),
    _Known("energy.price", "price of the energy", _MONEY, LOWER),
    _Known("energy.co2_kg", "CO2 of the energy", "kg", LOWER),
    _Known("energy.price_per_kwh", "price of a kWh", _MONEY),
    _Known("energy.co2_g_per_kwh", "CO2 of a kWh", "g"),
    _Known("energy.saved_kwh", "energy saved by sleep", "kWh"),
    _Known("energy.saved_pct", "energy saved by sleep, of all", "%"),
    _Known("energy.saved_price", "price saved by sleep", _MONEY),
    _Known("energy.saved_co2_kg", "CO2 saved by sleep", "kg"),
    _Known("energy.host_hours_asleep", "sleep of all hosts", "h"),
    _Known("power_ons", "hosts powered on", ""),
    _Known("power_offs", "hosts powered off", ""),
)
_GROUPS: Final = (
    _Group(
        "happiness", "pool", "{}",
        (
            _Known("mean_pct", "mean happiness", "%", HIGHER),
            _Known("happy_pct", "share of happy VMs", "%", HIGHER),
            _Known("final_mean_pct", "mean happiness at the end", "%", HIGHER),
            _Known("final_happy_pct", "share of happy VMs at the end", "%", HIGHER),
        ),
    ),
    _Group(
        "sla", "tenant", "tenant {}",
        (
            _Known("violation_s", "SLA violated", "s", LOWER),
            _Known("violations", "times that the SLA was violated", "", LOWER),
            _Known("vm_s", "VM time missing", "s", LOWER),
            _Known("vms_missing_most", "most VMs missing at once", "", LOWER),
        ),
    ),
    _Group(
        "share_classes", "shares", "VMs of {} shares",
        (
            _Known("satisfied_cpu_pct", "CPU demand met", "%", HIGHER),
            _Known("satisfied_memory_pct", "memory demand met", "%", HIGHER),
            _Known("payload_cpu_pct", "CPU used, of all there was", "%", HIGHER),
        ),
    ),
)  # fmt: skip
_LAST: Final = ("duration_s", "wall_s", "scenario", "about", "seed", "journal_sha256")
_LABELS: Final = {"duration_s": "simulated time", "wall_s": "time it took to simulate"}
_SUFFIXES: Final = {"s": "s", "pct": "%", "kwh": "kWh", "watts": "W", "mhz": "MHz", "mib": "MiB"}


def measures(summary: Summary) -> list[Measure]:
    """Every figure of a summary, the known ones first and in a fixed order."""
    found = [_known(summary, one) for one in _KNOWN if _is_there(summary, one.path)]
    found += [one for group in _GROUPS for one in _of_group(summary, group)]
    seen = {*_SAID, *(one.path for one in found)}
    rest = [one for one in _leaves(summary, "") if one.path not in seen]
    rest.sort(key=lambda one: _LAST.index(one.path) if one.path in _LAST else -1)
    return found + rest


def entries(summary: Summary, path: str) -> list[Mapping[str, Any]]:
    """The entries of a list in the summary; what is no list has none."""
    found = summary.get(path)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _is_there(summary: Summary, path: str) -> bool:
    if path == _NEVER:  # which is null if the target was never met
        imbalance = summary.get("imbalance")
        return isinstance(imbalance, Mapping) and "below_target_at_s" in imbalance
    return looked_up(summary, path) is not None


def _known(summary: Summary, known: _Known) -> Measure:
    found = looked_up(summary, known.path)
    value = float(len(found)) if isinstance(found, list) else figure(summary, known.path)
    if known.unit == _MONEY:
        known = known._replace(unit=str(looked_up(summary, "energy.currency") or ""))
    return _measure(known, value, "never" if value is None and known.path == _NEVER else None)


def _of_group(summary: Summary, group: _Group) -> Iterator[Measure]:
    listed = entries(summary, group.path)
    for entry in listed:
        name = str(entry.get(group.key) or "")
        if group.key == "pool":
            name = pool_called(name, alone=len(listed) == 1)
        for one in group.figures:
            value = figure(entry, one.path)
            if value is not None:
                path = f"{group.path}.{name}.{one.path}"
                label = f"{one.label}, {group.called.format(name)}"
                yield _measure(_Known(path, label, one.unit, one.better), value)


def _measure(known: _Known, value: float | None, words: str | None = None) -> Measure:
    silent = Measure(path=known.path, label=known.label, unit=known.unit, better=known.better)
    return Measure(
        path=known.path,
        label=known.label,
        unit=known.unit,
        better=known.better,
        value=value,
        words=words or silent.say(value),
    )


def _leaves(part: Mapping[str, Any], above: str) -> Iterator[Measure]:
    """Whatever else a newer or older version wrote down, under its own name."""
    for key, found in part.items():
        path = f"{above}{key}"
        if entries(part, str(key)) and path in {group.path for group in _GROUPS}:
            continue
        if isinstance(found, Mapping):
            yield from _leaves(found, f"{path}.")
            continue
        unit = _SUFFIXES.get(str(key).rpartition("_")[2], "") if "_" in str(key) else ""
        label = _LABELS.get(path, path.replace("_", " ").replace(".", ", ").removesuffix(" s"))
        yield _leaf(_Known(path, label, unit), found)


def _leaf(known: _Known, found: Any) -> Measure:
    if isinstance(found, list):
        worded = bool(found) and all(isinstance(one, str) for one in found)
        names = ", ".join(found) if worded else None
        return _measure(known, None if worded else float(len(found)), names)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    if is_number and known.path != "seed":  # which is a name rather than a number
        return _measure(known, figure({"it": found}, "it"))
    return _measure(known, None, NONE if found is None else str(found))
