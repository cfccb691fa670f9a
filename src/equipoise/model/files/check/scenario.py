"""Scenarios: a cluster with its fleets, what its VMs ask for, and what befalls it all."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.files.check.crowd import Crowds
from equipoise.model.files.check.fleets import check_fleets
from equipoise.model.files.check.happenings import check_happenings
from equipoise.model.files.check.loads import check_loads
from equipoise.model.files.check.room import check_room
from equipoise.model.files.check.roster import Elements, Roster
from equipoise.model.files.check.unrest import check_unrest
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gaps
from equipoise.model.files.words import Path, quoted
from equipoise.model.inventory import Inventory
from equipoise.model.rule import Argument, Satisfy
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import VmState


def check_scenario(scenario: Scenario, roster: Roster, found: Findings, gaps: Gaps) -> None:
    """Find what makes no sense in a story besides its cluster and its plan."""
    _check_hosts(scenario, found, gaps)
    _check_deciders(scenario, found, gaps)
    check_fleets(scenario.fleet, roster, found, gaps)
    check_loads(scenario, roster, found, gaps)
    check_room(scenario, roster, found, gaps)
    check_happenings(scenario, roster, found, gaps.get(("happenings",)))
    check_unrest(scenario, roster, found, gaps)


def ruled_cluster(scenario: Scenario) -> Inventory:
    """The cluster with those members of fleets that its ``satisfy`` rules and its layout speak of.

    Only these are made: somebody who judges them asks for no others, and there may be many.
    """
    cluster, crowds = scenario.cluster, Crowds.of(scenario, {})
    rules = [rule for rule in cluster.rules if isinstance(rule, Satisfy)]
    said = dict.fromkeys(
        name for rule in rules for given in rule.arguments.values() for name in _names(given)
    )
    if cluster.layout is not None:
        said |= dict.fromkeys(name for team in cluster.layout.groups for name in team.processors)
    hosts = [host for host in map(crowds.hosts.get, said) if host is not None]
    vms = [vm.but(state=VmState.READY) for vm in map(crowds.vms.get, said) if vm is not None]
    return cluster.but(hosts=(*cluster.hosts, *hosts), vms=(*cluster.vms, *vms))


def _names(argument: Argument) -> Iterator[str]:
    if isinstance(argument, str):
        yield argument
    elif not isinstance(argument, int):
        for part in argument:
            yield from _names(part)


def _check_hosts(scenario: Scenario, found: Findings, gaps: Gaps) -> None:
    is_whole = ("cluster", "hosts") not in gaps and ("fleet", "hosts") not in gaps
    has_fleet = any(fleet.count for fleet in scenario.fleet.hosts)
    if is_whole and not scenario.cluster.hosts and not has_fleet:
        cure = "list at least one, or write fleet: {hosts: ...}"
        found.add(("cluster", "hosts"), "there is no host", cure)


def _check_deciders(scenario: Scenario, found: Findings, gaps: Gaps) -> None:
    first: dict[str, int] = {}
    for place, name in Elements(scenario.deciders, gaps.get(("deciders",))):
        path: Path = ("deciders", place)
        if name in first:
            what = f"{quoted(name)} is named twice, first by"
            found.add(path, what, "once is enough", first=("deciders", first[name]))
        first.setdefault(name, place)
