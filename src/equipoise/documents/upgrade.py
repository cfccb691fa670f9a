"""The JSON documents of ``upgrade``: a campaign, its comparison, and replies to commands."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType, field

from equipoise.documents.json_document import Document
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.upgrade.summary import CampaignSummary, IterationSummary


class SubIterationRow(Document):
    """A sub-iteration: the VMs that could move, and those that did."""

    j: int
    wanted: int
    size: int
    reason: str
    code: str


class EliminatedRow(Document):
    """A resource that waits, with the elimination rule."""

    resource: str
    rule: int
    """The number of the rule; 0 if capacity or a command holds the resource back."""
    reason: str
    code: str


class ResourceReason(Document):
    """A resource that failed, is isolated or was given up."""

    resource: str
    reason: str
    code: str


class IterationRow(Document):
    """An iteration, with the letters of the thesis."""

    i: int
    z: int
    """Hosts that can leave service."""
    v: int | None
    """VMs that can move; ``None`` if the hosts are not divided."""
    batch: tuple[str, ...]
    vm_batches: tuple[tuple[str, ...], ...]
    consolidation: tuple[tuple[str, ...], ...]
    sub_iterations: tuple[SubIterationRow, ...] = field(name="w")
    eliminated: tuple[EliminatedRow, ...]
    failed: tuple[ResourceReason, ...]
    paused: str
    pause_codes: tuple[str, ...]
    tenants: Mapping[str, int]
    """The VMs of each tenant at the end."""
    headroom: int | None
    began_s: float
    ended_s: float


class ChangeSetRow(Document):
    """The end of a change set."""

    set: str
    outcome: str
    reason: str
    code: str
    complementary: tuple[str, ...]
    matching: tuple[str, ...]


class RefusedOrderRow(Document):
    """A command that was refused."""

    order: str
    reason: str
    code: str


class SlaViolationRow(Document):
    """A violation of an SLA."""

    at_s: float
    tenant: str | None
    what: str
    code: str


class SpareHostRow(Document):
    """The spare hosts that a request needs."""

    request: str
    needed: int
    available: int
    enough: bool


class LowestHighest(Document):
    """The lowest and the highest figure of the tenants."""

    lowest: float = field(name="min")
    highest: float = field(name="max")


class MethodRow(Document):
    """The figures of one upgrade method, the mean of its runs."""

    method: str
    runs: int
    duration_s: float
    violations: LowestHighest
    impacted_vms: LowestHighest
    violation_s: float
    delay_penalty: float
    proportional_penalty: float
    application_outage_s: float
    moves: float
    refused: float


class UpgradeDocument(Document):
    """The JSON document of ``equipoise upgrade``."""

    campaign: str
    status: str
    reason: str
    code: str
    dry_run: bool
    paper: bool
    """Whether the campaign follows the thesis literally."""
    iterations: tuple[IterationRow, ...]
    sets: tuple[ChangeSetRow, ...]
    refused_orders: tuple[RefusedOrderRow, ...]
    groups: Mapping[str, tuple[str, ...]]
    isolated: tuple[ResourceReason, ...]
    given_up: tuple[ResourceReason, ...]
    """Resources that are in service without the change of a set."""
    sla_violations: int
    violations: tuple[SlaViolationRow, ...]
    outage_s: float
    outages: Mapping[str, float]
    service_availability: Mapping[str, float]
    """The share of time in which a VM of each tenant answered (equation 2 of the thesis)."""
    host_availability: float | None
    """The share of time in which a host works (equation 1), from ``settings.host_failures``."""
    failover_hosts: int
    """F: how many hosts may fail at a time."""
    moves: int
    moves_per_vm_max: int
    lowest_headroom: int | None
    returned_hosts: tuple[str, ...]
    spare_hosts: tuple[SpareHostRow, ...]
    duration_s: float
    comparison: tuple[MethodRow, ...] | UnsetType = UNSET
    """Present with ``--compare``."""


class OrderRow(Document):
    """The reply to a command or request."""

    order: str
    number: int | None
    at_s: float | None
    """When the run accepted it; ``None`` until then."""
    refused: str
    code: str


class OrdersDocument(Document):
    """The JSON document of ``equipoise upgrade`` for a campaign that another process runs."""

    campaign: str
    orders: tuple[OrderRow, ...]


def upgrade_document(
    campaign: UpgradeCampaign,
    made: CampaignSummary,
    *,
    dry_run: bool,
    comparison: tuple[MethodRow, ...] = (),
) -> UpgradeDocument:
    """Return the result of a campaign."""
    failures = campaign.settings.host_failures
    return UpgradeDocument(
        campaign=campaign.name,
        status=made.status.value,
        reason=made.reason,
        code=made.code,
        dry_run=dry_run,
        paper=campaign.settings.readings.any_literal,
        iterations=tuple(map(_iteration_row, made.iterations)),
        sets=tuple(
            ChangeSetRow.of(
                result,
                set=id_,
                complementary=tuple(made.complements.get(id_, ())),
                matching=tuple(made.already_matching.get(id_, ())),
            )
            for id_, result in made.sets.items()
        ),
        refused_orders=tuple(
            RefusedOrderRow(order=order, reason=reason.text, code=reason.code)
            for order, reason in made.refused_orders
        ),
        groups=made.groups,
        isolated=tuple(
            ResourceReason(resource=id_, reason=reason.text, code=reason.code)
            for id_, reason in made.isolated.items()
        ),
        given_up=tuple(
            ResourceReason(resource=id_, reason=reason.text, code=reason.code)
            for id_, reason in made.given_up.items()
        ),
        sla_violations=len(made.violations),
        violations=tuple(
            SlaViolationRow.of(violation, at_s=violation.at_ms / 1000)
            for violation in made.violations
        ),
        # Summed in whole milliseconds, so that the figure does not depend on the order of tenants.
        outage_s=sum(made.outage_ms.values()) / 1000,
        outages={tenant: ms / 1000 for tenant, ms in made.outage_ms.items()},
        service_availability=dict(made.service_availability.items()),
        host_availability=None if failures is None else failures.host_availability,
        failover_hosts=made.failover_hosts,
        moves=sum(made.moves.values()),
        moves_per_vm_max=max(made.moves.values(), default=0),
        lowest_headroom=lowest_headroom(made),
        returned_hosts=tuple(made.returned_hosts),
        spare_hosts=tuple(SpareHostRow.of(need, enough=need.is_enough) for need in made.spare),
        duration_s=made.duration_ms / 1000,
        comparison=comparison or UNSET,
    )


def lowest_headroom(made: CampaignSummary) -> int | None:
    """Return the fewest hosts beyond the reserve in any iteration that changes a host."""
    headrooms = (iteration.headroom for iteration in made.iterations)
    return min((headroom for headroom in headrooms if headroom is not None), default=None)


def _iteration_row(iteration: IterationSummary) -> IterationRow:
    return IterationRow.of(
        iteration,
        sub_iterations=tuple(
            SubIterationRow.of(round_, j=j) for j, round_ in enumerate(iteration.rounds, 1)
        ),
        eliminated=tuple(
            EliminatedRow.of(group, resource=vertex)
            for group in iteration.eliminated
            for vertex in group.vertices
        ),
        failed=tuple(
            ResourceReason(resource=id_, reason=why, code="task-failed")
            for id_, why in iteration.failed.items()
        ),
        tenants=iteration.sizes,
        began_s=iteration.began_ms / 1000,
        ended_s=iteration.ended_ms / 1000,
    )
