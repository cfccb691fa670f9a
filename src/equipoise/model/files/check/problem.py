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
from equipoise.model.problem.problem import ActionKind, Problem

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
    for vm in problem.vms:
        roster.vms.check(vm, ("vms", vm), found)
    for host in problem.hosts:
        roster.hosts.check(host, ("hosts", host), found)
    _check_durations(problem, roster, found)
    if problem.network is not None:
        inner = {path[1:]: gap for path, gap in gaps.items() if path[0] == "network"}
        check_network(problem.network, roster.hosts, found.below("network"), inner)
    _check_objective(problem, found, gaps)
    _check_weights(problem, roster, found)


def _check_durations(problem: Problem, roster: Roster, found: Findings) -> None:
    for kind, duration in problem.durations.items():
        known = roster.hosts if kind in HOST_KINDS else roster.vms
        for name in duration.of:
            known.check(name, ("durations", kind.value, "of", name), found)


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
