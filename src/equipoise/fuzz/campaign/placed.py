"""Where the machines of a trial are, what they are besides, and when something goes wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from equipoise.fuzz.trial import Trial
from equipoise.fuzz.trial.size import bare
from equipoise.model.host import Host
from equipoise.model.problem.network import Network
from equipoise.model.vm import Vm
from equipoise.report.placement import Course, Flag, course_of, lines
from equipoise.report.placement.words import seconds

_WIDE_MAX: Final = 110
"""Lines that are longer are hard to read."""
_SHOWN: Final = frozenset({"state", "host"})


def placed(trial: Trial) -> Iterator[str]:
    """Who is where while the plan is carried out, in lines; none if nothing happens."""
    if not trial.steps:
        return
    course = course_of(trial.initial, trial.steps, trial.network)
    flag = flag_of(trial, course)
    drawn = lines(course, None if flag is None else flag.period)
    if max(map(len, drawn)) <= _WIDE_MAX:
        yield from drawn


def flag_of(trial: Trial, course: Course) -> Flag | None:
    """When a plan goes wrong first: where machines object to it, or where it is broken."""
    if trial.objections:
        first = min(trial.objections, key=lambda one: one.at_ms)
        return Flag(course.period_at(first.at_ms), "cannot be carried out")
    fault = trial.fault
    if fault is None:
        return None
    if fault.told_ms == 0 and trial.is_broken_at_first:
        return Flag(course.period_at(None), "broken from the start")
    return Flag(course.period_at(fault.told_ms), f"broken at {seconds(fault.told_ms)} s")


def wires(network: Network) -> Iterator[tuple[str, str, str]]:
    """The parts of a network: what each is called, what it is between, and what it carries."""
    for link in network.links:
        other = link.to if link.host is None else link.host
        yield link.id, f"{other}-{link.switch}", str(link.capacity_mbps)
    for switch in network.switches:
        limit = switch.capacity_mbps
        yield switch.id, "", "any" if limit is None else str(limit)


def particulars(machine: Host | Vm) -> str:
    """In what a machine differs from a bare one, but for where it is and what it does."""
    usual = bare(machine)
    found = {
        name: getattr(machine, name)
        for name in machine.__struct_fields__
        if name not in _SHOWN and getattr(machine, name) != getattr(usual, name)
    }
    return ", ".join(_particular(name, value) for name, value in found.items())


def _particular(name: str, value: Any) -> str:
    if value is True:
        return name
    if isinstance(value, Mapping):
        inner = " ".join(f"{key}={_plain(one)}" for key, one in value.items())
        return f"{name} {inner}"
    return f"{name} {_plain(value)}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
