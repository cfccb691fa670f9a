"""Check: what a file says must make sense as a whole. Names exist, claims do not contradict.

Enter by ``problems_of``; files come in by ``check``. Never judges capacity: that a host is too
full is the state of a cluster, not a slip of the pen.
"""

from __future__ import annotations

from contextlib import suppress

from equipoise.errors import Problem
from equipoise.model.case import CaseFile
from equipoise.model.files.check.infrastructure import check_infrastructure
from equipoise.model.files.check.machines import check_hosts, check_vms
from equipoise.model.files.check.roster import Roster
from equipoise.model.files.check.settings import check_pools, check_rules, check_tenants
from equipoise.model.files.check.story import check_happenings, check_plan, check_subjects
from equipoise.model.files.findings import Enough, Findings
from equipoise.model.files.tree import Gaps
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.scenario import Scenario

Form = Inventory | Plan | Scenario | CaseFile


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
            _check_inventory(value, found, gaps)
        case Plan():
            check_plan(value, found, gaps.get(("steps",)))
        case Scenario():
            roster = _check_story(value, found, gaps)
            check_happenings(value, roster, found, gaps.get(("happenings",)))
        case CaseFile():
            _check_story(value, found, gaps)


def _check_inventory(inventory: Inventory, found: Findings, gaps: Gaps) -> Roster:
    roster = Roster(inventory, gaps)
    if not inventory.hosts and ("hosts",) not in gaps:
        found.add(("hosts",), "there is no host", "list at least one")
    for elements in roster.named:
        elements.check_ids(found)
    check_hosts(roster, found)
    check_vms(roster, found)
    check_pools(roster, found)
    check_rules(roster, found)
    check_tenants(roster, found)
    check_infrastructure(roster, found)
    return roster


def _check_story(story: Scenario | CaseFile, found: Findings, gaps: Gaps) -> Roster:
    """Check a cluster and the plan for it."""
    inner = {path[1:]: gap for path, gap in gaps.items() if path[0] == "cluster"}
    roster = _check_inventory(story.cluster, found.below("cluster"), inner)
    if story.plan is not None:
        gap = gaps.get(("plan", "steps"))
        check_plan(story.plan, found.below("plan"), gap)
        check_subjects(story.plan, roster, found.below("plan"), gap)
    return roster
