"""Unrest: who it is about, and whether the run can live through it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from equipoise.model.files.check.crowd import Crowd
from equipoise.model.files.check.roster import Elements, Roster
from equipoise.model.files.check.spread import check_time
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gaps
from equipoise.model.files.words import Path, figure, quoted
from equipoise.model.story.scenario import Scenario
from equipoise.model.story.unrest import Scaling, Unrest

HAPPENINGS_MAX: Final = 10**7
"""So many things at random a run can live through."""

_DAY_S: Final = 24 * 3600
_HOUR_S: Final = 3600


def check_unrest(scenario: Scenario, roster: Roster, found: Findings, gaps: Gaps) -> None:
    """Find unrest among those who are not there, and more of it than anybody can follow."""
    unrest = scenario.unrest
    found = found.below("unrest")
    inner = {path[1:]: gap for path, gap in gaps.items() if path[0] == "unrest"}
    _check_times(unrest, found, inner)
    for place, hosts in Elements(unrest.hosts, inner.get(("hosts",))):
        _check_fleet(hosts.fleet, roster.hosts.crowd, "host", ("hosts", place, "fleet"), found)
    for place, vms in Elements(unrest.vms, inner.get(("vms",))):
        _check_fleet(vms.fleet, roster.vms.crowd, "VM", ("vms", place, "fleet"), found)
    for place, scaling in Elements(unrest.scaling, inner.get(("scaling",))):
        _check_scaling(scaling, roster, ("scaling", place), found)
    for path, per_s in _rates(scenario, roster, inner):
        expected = per_s * scenario.duration_s
        if expected > HAPPENINGS_MAX:
            what = f"makes about {int(expected)} happenings over the whole run"
            found.add(path, what, f"a lower rate: at most {HAPPENINGS_MAX} of them")


def _check_times(unrest: Unrest, found: Findings, gaps: Gaps) -> None:
    if unrest.host_crashes is not None:
        check_time(unrest.host_crashes.back_after_s, ("host_crashes", "back_after_s"), found)
    if unrest.monitoring_gaps is not None:
        check_time(unrest.monitoring_gaps.for_s, ("monitoring_gaps", "for_s"), found)
    for place, hosts in Elements(unrest.hosts, gaps.get(("hosts",))):
        if hosts.stay_s is not None:
            check_time(hosts.stay_s, ("hosts", place, "stay_s"), found)
    for place, vms in Elements(unrest.vms, gaps.get(("vms",))):
        check_time(vms.stay_s, ("vms", place, "stay_s"), found)


def _check_fleet(name: str, crowd: Crowd[Any], noun: str, path: Path, found: Findings) -> bool:
    if name in crowd.fleets or name in crowd.lost:
        return True
    found.add_unknown(path, f"{noun} fleet", name, crowd.fleets.keys())
    return False


def _check_scaling(scaling: Scaling, roster: Roster, path: Path, found: Findings) -> None:
    is_known = roster.tenants.check(scaling.tenant, (*path, "tenant"), found)
    crowd = roster.vms.crowd
    if _check_fleet(scaling.fleet, crowd, "VM", (*path, "fleet"), found) and is_known:
        fellows = crowd.fleets.get(scaling.fleet)
        owner = None if fellows is None else fellows.like.tenant
        if owner not in (None, scaling.tenant):
            what = f"the VMs of {quoted(scaling.fleet)} belong to the tenant {quoted(owner)}"
            found.add((*path, "fleet"), what, f"name a fleet of {scaling.tenant}")
    low, high = scaling.in_below_pct, scaling.out_above_pct
    if low >= high:
        what = f"{figure(low)} is not below out_above_pct {figure(high)}"
        found.add((*path, "in_below_pct"), what, f"less than {figure(high)}")


def _rates(scenario: Scenario, roster: Roster, gaps: Gaps) -> Iterator[tuple[Path, float]]:
    """How often something happens, per second."""
    unrest = scenario.unrest
    if unrest.host_crashes is not None:
        hosts = len(scenario.cluster.hosts) + sum(one.count for one in scenario.fleet.hosts)
        per_day = unrest.host_crashes.per_host_day * hosts
        yield ("host_crashes", "per_host_day"), per_day / _DAY_S
    if unrest.vm_crashes is not None:
        vms = len(scenario.cluster.vms) + sum(one.count for one in scenario.fleet.vms)
        yield ("vm_crashes", "per_vm_day"), unrest.vm_crashes.per_vm_day * vms / _DAY_S
    if unrest.monitoring_gaps is not None:
        yield ("monitoring_gaps", "per_day"), unrest.monitoring_gaps.per_day / _DAY_S
    for place, joining in Elements(unrest.hosts, gaps.get(("hosts",))):
        yield ("hosts", place, "per_day"), joining.per_day / _DAY_S
    for place, arriving in Elements(unrest.vms, gaps.get(("vms",))):
        yield ("vms", place, "per_hour"), arriving.per_hour / _HOUR_S
