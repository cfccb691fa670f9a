"""Problems: what is wished for must be about VMs, hosts and rules that there are.

Never judges whether a wish can come true: that is for the planner to find out, and to explain.
"""

from __future__ import annotations

from typing import Final

from equipoise.model.files.check.network import check_network
from equipoise.model.files.check.roster import Elements, Roster
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gaps
from equipoise.model.files.words import Path, quoted
from equipoise.model.problem.duration import MEMORY
from equipoise.model.problem.problem import ActionKind, Problem, VmAim
from equipoise.model.vm import VmState

HOST_KINDS: Final = frozenset(
    (
        ActionKind.POWER_ON,
        ActionKind.POWER_OFF,
        ActionKind.ENTER_MAINTENANCE,
        ActionKind.LEAVE_MAINTENANCE,
    )
)
"""What is done to hosts; all else is done to VMs."""


def check_problem(problem: Problem, roster: Roster, found: Findings, gaps: Gaps) -> None:
    """Find what makes no sense in a problem besides its cluster."""
    _check_vms(problem, roster, found)
    for host in problem.hosts:
        roster.hosts.check(host, ("hosts", host), found)
    _check_durations(problem, roster, found)
    check_network(problem.network, roster, found, gaps)
    _check_objective(problem, found, gaps)
    _check_weights(problem, roster, found)


def _check_vms(problem: Problem, roster: Roster, found: Findings) -> None:
    for name, aim in problem.vms.items():
        if not roster.vms.check(name, ("vms", name), found):
            continue
        vm = roster.vms.get(name)
        if aim is VmAim.FORGED and vm is not None and vm.state is not VmState.INIT:
            what = f"it is {vm.state}, and only a VM in state init can be forged"
            found.add(("vms", name), what, "ready")


def _check_durations(problem: Problem, roster: Roster, found: Findings) -> None:
    resources = {MEMORY: None}
    resources |= {name: None for _, host in roster.hosts for name in host.capacity}
    resources |= {name: None for _, vm in roster.vms for name in vm.consumption}
    is_whole = roster.hosts.is_whole and roster.vms.is_whole
    for kind, duration in problem.durations.items():
        path: Path = ("durations", kind.value)
        known = roster.hosts if kind in HOST_KINDS else roster.vms
        for name in duration.of:
            known.check(name, (*path, "of", name), found)
        if is_whole and duration.resource not in resources:
            found.add_unknown((*path, "resource"), "resource", duration.resource, resources)
        if duration.per_unit_ms and kind in HOST_KINDS:
            what = "it is about a host, and units are what a VM takes"
            found.add((*path, "per_unit_ms"), what, "leave it out, or name hosts in of")
        elif duration.per_unit_ms and kind is ActionKind.MIGRATE and problem.network is not None:
            what = "there is a network, and its links say how fast memory is copied"
            found.add((*path, "per_unit_ms"), what, "leave it out")


def _check_objective(problem: Problem, found: Findings, gaps: Gaps) -> None:
    if not problem.objective and ("objective",) not in gaps:
        found.add(("objective",), "is empty", "name a measure such as mttr, or leave it out")
    first: dict[str, Path] = {}
    for place, goal in Elements(problem.objective, gaps.get(("objective",))):
        path: Path = ("objective", place)
        if not goal:
            found.add(path, "names no measure", "name one with its weight, or leave it out")
        named = [goal.value] if isinstance(goal, str) else [measure.value for measure in goal]
        for measure in named:
            here = path if isinstance(goal, str) else (*path, measure)
            if measure in first:
                what = f"{quoted(measure)} is named twice, first by"
                found.add(here, what, "once is enough", first=first[measure])
            first.setdefault(measure, here)


def _check_weights(problem: Problem, roster: Roster, found: Findings) -> None:
    for name in problem.weights:
        path: Path = ("weights", name)
        if not roster.rules.check(name, path, found):
            continue
        rule = roster.rules.get(name)
        if rule is not None and rule.hard:
            what = f"the rule {quoted(name)} is hard and never broken, so that a weight is useless"
            found.add(path, what, "leave it out, or write hard: false at the rule")
