"""Check: what a file says must make sense as a whole. Names exist, claims do not contradict.

Enter by ``problems_of``; files come in by ``check``. Never judges who is where: that a host is too
full is the state of a cluster, not a slip of the pen.
"""

from __future__ import annotations

from contextlib import suppress

from equipoise.errors import Problem
from equipoise.model.amendment import Amendment
from equipoise.model.case import CaseFile
from equipoise.model.files.check.campaign import check_campaign
from equipoise.model.files.check.crowd import NOBODY, Crowds
from equipoise.model.files.check.infrastructure import check_infrastructure
from equipoise.model.files.check.machines import check_hosts, check_vms
from equipoise.model.files.check.network import check_network
from equipoise.model.files.check.plans import check_plan, check_subjects
from equipoise.model.files.check.problem import check_problem
from equipoise.model.files.check.roster import Roster
from equipoise.model.files.check.scenario import check_scenario
from equipoise.model.files.check.settings import (
    check_balance,
    check_pools,
    check_power,
    check_rules,
    check_tenants,
)
from equipoise.model.files.findings import Enough, Findings
from equipoise.model.files.tree import Gaps
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import Problem as ClusterProblem
from equipoise.model.story.scenario import Scenario
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.request import Request

Form = Inventory | Plan | Scenario | CaseFile | Amendment | ClusterProblem | Campaign | Request


def problems_of(value: Form) -> list[Problem]:
    """Say everything that contradicts itself in a value that did not come from a file."""
    found = Findings()
    with suppress(Enough):
        check(value, found, {})
    return found.problems()


def check(value: Form, found: Findings, gaps: Gaps) -> None:
    """Find what contradicts itself, until it is ``Enough``.

    ``gaps`` tells what could not be read and is left out.
    """
    match value:
        case Inventory():
            _check_hosts(value, found, gaps)
            _check_inventory(Roster(value, gaps), found)
        case Plan():
            check_plan(value, found, gaps.get(("steps",)))
        case Scenario():
            roster = _check_story(value, found, gaps, Crowds.of(value, gaps))
            check_scenario(value, roster, found, gaps)
        case Amendment() | Request():
            pass  # only together with the cluster it is for
        case CaseFile():
            roster = _check_story(value, found, gaps)
            _check_hosts(value.cluster, found.below("cluster"), _inner(gaps))
            check_network(value.network, roster, found, gaps)
        case ClusterProblem():
            roster = Roster(value.cluster, _inner(gaps))
            _check_hosts(value.cluster, found.below("cluster"), _inner(gaps))
            _check_inventory(roster, found.below("cluster"))
            check_problem(value, roster, found, gaps)
        case Campaign():
            roster = Roster(value.cluster, _inner(gaps))
            _check_hosts(value.cluster, found.below("cluster"), _inner(gaps))
            _check_inventory(roster, found.below("cluster"))
            check_campaign(value, roster, found, gaps)


def _check_hosts(inventory: Inventory, found: Findings, gaps: Gaps) -> None:
    if not inventory.hosts and ("hosts",) not in gaps:
        found.add(("hosts",), "there is no host", "list at least one")


def _check_inventory(roster: Roster, found: Findings) -> None:
    for elements in roster.named:
        elements.check_ids(found)
    check_hosts(roster, found)
    check_vms(roster, found)
    check_pools(roster, found)
    check_rules(roster, found)
    check_tenants(roster, found)
    check_balance(roster, found)
    check_power(roster, found)
    check_infrastructure(roster, found)


def _check_story(
    story: Scenario | CaseFile, found: Findings, gaps: Gaps, crowds: Crowds = NOBODY
) -> Roster:
    """Check a cluster and the plan for it."""
    roster = Roster(story.cluster, _inner(gaps), crowds)
    _check_inventory(roster, found.below("cluster"))
    if story.plan is not None:
        gap = gaps.get(("plan", "steps"))
        check_plan(story.plan, found.below("plan"), gap)
        check_subjects(story.plan, roster, found.below("plan"), gap)
    return roster


def _inner(gaps: Gaps) -> Gaps:
    return {path[1:]: gap for path, gap in gaps.items() if path[0] == "cluster"}
