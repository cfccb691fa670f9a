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
            index = _check_cluster_and_plan(value, diagnostics, gaps, FleetIndexes.of(value, gaps))
            check_scenario(value, index, diagnostics, gaps)
        case Amendment() | UpgradeRequest():
            pass  # they are checked together with the cluster that they change
        case CaseFile():
            index = _check_cluster_and_plan(value, diagnostics, gaps)
            _check_has_hosts(
                value.cluster, diagnostics.below("cluster"), gaps_below(gaps, "cluster")
            )
            check_network(value.network, index, diagnostics, gaps)
        case PlanningProblem():
            index = InventoryIndex(value.cluster, gaps_below(gaps, "cluster"))
            _check_has_hosts(
                value.cluster, diagnostics.below("cluster"), gaps_below(gaps, "cluster")
            )
            _check_inventory(index, diagnostics.below("cluster"))
            check_problem(value, index, diagnostics, gaps)
        case UpgradeCampaign():
            index = InventoryIndex(value.cluster, gaps_below(gaps, "cluster"))
            _check_has_hosts(
                value.cluster, diagnostics.below("cluster"), gaps_below(gaps, "cluster")
            )
            _check_inventory(index, diagnostics.below("cluster"))
            check_campaign(value, index, diagnostics, gaps)


def _check_has_hosts(inventory: Inventory, diagnostics: Diagnostics, gaps: Gaps) -> None:
    if not inventory.hosts and ("hosts",) not in gaps:
        diagnostics.add(("hosts",), "there is no host", "list at least one", code="empty-value")


def _check_inventory(index: InventoryIndex, diagnostics: Diagnostics) -> None:
    for elements in index.named:
        elements.check_ids(diagnostics)
    check_hosts(index, diagnostics)
    check_vms(index, diagnostics)
    check_pools(index, diagnostics)
    check_rule_members(index, diagnostics)
    check_tenants(index, diagnostics)
    check_balance_policy(index, diagnostics)
    check_power_policy(index, diagnostics)
    check_resource_graph(index, diagnostics)


def _check_cluster_and_plan(
    document: Scenario | CaseFile,
    diagnostics: Diagnostics,
    gaps: Gaps,
    fleet_indexes: FleetIndexes = NO_FLEETS,
) -> InventoryIndex:
    """Check a cluster and the plan for it; return the index of the cluster."""
    index = InventoryIndex(document.cluster, gaps_below(gaps, "cluster"), fleet_indexes)
    _check_inventory(index, diagnostics.below("cluster"))
    if document.plan is not None:
        gap = gaps.get(("plan", "steps"))
        check_plan(document.plan, diagnostics.below("plan"), gap)
        check_step_subjects(document.plan, index, diagnostics.below("plan"), gap)
    return index
