"""Check: a file must be consistent as a whole. Every name exists, no two statements contradict.

Enter by ``find_problems``; the parser calls ``check_value``. Never judges the placement: an
overloaded host is the state of a cluster, not an error in a file.
"""

from __future__ import annotations

from contextlib import suppress

from equipoise.errors import InputProblem
from equipoise.files.check.inventory import (
    check_balance_policy,
    check_hosts,
    check_pools,
    check_power_policy,
    check_rule_members,
    check_tenants,
    check_vms,
)
from equipoise.files.check.planning import (
    check_network,
    check_plan,
    check_problem,
    check_step_subjects,
)
from equipoise.files.check.references import NO_FLEETS, FleetIndexes, InventoryIndex
from equipoise.files.check.scenario import check_scenario
from equipoise.files.check.upgrade import check_campaign, check_resource_graph
from equipoise.files.document import Gaps, gaps_below
from equipoise.model.diagnostics import Diagnostics, TooManyDiagnostics
from equipoise.model.inventory import Amendment, Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import PlanningProblem
from equipoise.model.problem.problem import CaseFile
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.request import UpgradeRequest

FileValue = (
    Inventory
    | Plan
    | Scenario
    | CaseFile
    | Amendment
    | PlanningProblem
    | UpgradeCampaign
    | UpgradeRequest
)


def find_problems(value: FileValue) -> list[InputProblem]:
    """Return all problems of a value that did not come from a file."""
    diagnostics = Diagnostics()
    with suppress(TooManyDiagnostics):
        check_value(value, diagnostics, {})
    return diagnostics.problems()


def check_value(value: FileValue, diagnostics: Diagnostics, gaps: Gaps) -> None:
    """Add all problems of a value to ``diagnostics``, which may raise ``TooManyDiagnostics``.

    ``gaps`` lists the elements that could not be read and are not part of the value.
    """
    match value:
        case Inventory():
            _check_has_hosts(value, diagnostics, gaps)
            _check_inventory(InventoryIndex(value, gaps), diagnostics)
        case Plan():
            check_plan(value, diagnostics, gaps.get(("steps",)))
        case Scenario():
            index = _check_cluster(value, diagnostics, gaps, FleetIndexes.of(value, gaps))
            check_scenario(value, index, diagnostics, gaps)
        case Amendment() | UpgradeRequest():
            pass  # they are checked together with the cluster that they change
        case CaseFile():
            index = _check_cluster(value, diagnostics, gaps)
            check_network(value.network, index, diagnostics, gaps)
        case PlanningProblem():
            check_problem(value, _check_cluster(value, diagnostics, gaps), diagnostics, gaps)
        case UpgradeCampaign():
            check_campaign(value, _check_cluster(value, diagnostics, gaps), diagnostics, gaps)


def _check_has_hosts(inventory: Inventory, diagnostics: Diagnostics, gaps: Gaps) -> None:
    if not inventory.hosts and ("hosts",) not in gaps:
        diagnostics.add(("hosts",), "there is no host", "list at least one", code="empty-value")


def _check_inventory(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    for elements in index.named:
        elements.check_ids(diagnostics)
    # What others refer to comes first: after too many problems the check stops.
    check_hosts(index, diagnostics)
    check_vms(index, diagnostics)
    check_pools(index, diagnostics)
    check_rule_members(index, diagnostics)
    check_tenants(index, diagnostics)
    check_balance_policy(index, diagnostics)
    check_power_policy(index, diagnostics)
    check_resource_graph(index, diagnostics)


def _check_cluster(
    document: Scenario | CaseFile | PlanningProblem | UpgradeCampaign,
    diagnostics: Diagnostics,
    gaps: Gaps,
    fleet_indexes: FleetIndexes = NO_FLEETS,
) -> InventoryIndex:
    """Check the cluster of a file, and the plan for it if there is one; return its index."""
    inner, below = gaps_below(gaps, "cluster"), diagnostics.below("cluster")
    index = InventoryIndex(document.cluster, inner, fleet_indexes)
    if not isinstance(document, Scenario):  # a fleet may replace the hosts of a scenario
        _check_has_hosts(document.cluster, below, inner)
    _check_inventory(index, below)
    plan = document.plan if isinstance(document, Scenario | CaseFile) else None
    if plan is not None:
        gap = gaps.get(("plan", "steps"))
        check_plan(plan, diagnostics.below("plan"), gap)
        check_step_subjects(plan, index, diagnostics.below("plan"), gap)
    return index
