"""An upgrade campaign: cluster, catalog, requests, settings, and simulated failures."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from equipoise.model.inventory import Inventory
from equipoise.model.quantity import (  # fmt: skip
    Count,
    HostKey,
    Milliseconds,
    PositiveCount,
    ResourceKey,
    Seconds,
    TenantKey,
    VmKey,
)
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.failure_rate import HostFailures
from equipoise.model.upgrade.request import InstantText, UpgradeCommand, UpgradeRequest
from equipoise.model.value import Value


class PaperReadings(Value):
    """Interpretations of passages of the thesis that have two readings.

    Each field is one difference between ``--paper``, which reproduces the traces of the thesis, and
    the default.
    """

    reserve_whole_hosts: bool = False
    """Equations 4 to 6 count only empty hosts, with one capacity and one scaling step for all.
    By default free places on used hosts count, each host has its own capacity, and each tenant has
    its own scaling step, limited by its SLA."""
    sides_alone: bool = False
    """In a divided cluster, Z considers only the old side, and takes all of it when no VM is left
    there. By default capacity that tenants may request and that the new side lacks stays free on
    the old side; otherwise a request of a tenant within its SLA could be refused."""
    drop_last_only: bool = False
    """A VM batch that is too large loses its last VM until it fits or is empty. By default VMs of
    tenants that need no new reservation are tried too."""
    peer_paths: bool = False
    """Rule 6 excludes all resources that depend, over any number of steps, on a peer in the batch.
    By default only the peers themselves exclude each other."""

    @property
    def any_literal(self) -> bool:
        """Whether any passage is read literally."""
        return self != PaperReadings()


PAPER_READINGS = PaperReadings(
    reserve_whole_hosts=True, sides_alone=True, drop_last_only=True, peer_paths=True
)
"""All literal readings, as ``--paper`` sets them."""


class VmCompatibility(StrEnum):
    """Whether old and new VMs can run on hosts of the other version."""

    FREE = "free"
    """Every VM runs on every host: the cluster is not divided."""
    DIVIDED = "divided"
    """Old VMs run only on old hosts, new VMs only on new hosts."""


class UpgradeSettings(Value):
    """Settings of a campaign as a whole."""

    readings: PaperReadings = PaperReadings()
    failover_hosts: Count = 1
    """Number of host failures that the cluster must survive at any time; on each side of it."""
    host_failures: HostFailures | None = None
    """The failure rate of the hosts: the cluster then survives as many failures as it implies for
    the longest iteration, and ``failover_hosts`` at least."""
    vms: VmCompatibility = VmCompatibility.FREE
    """Whether a hypervisor change divides the cluster. A replaced storage always divides it."""
    vm_move_s: Seconds = 0
    """Duration of the move of one VM, with the conversion if it needs one."""
    vm_risk_s: Seconds | None = None
    """Duration of the VM moves of an iteration with all recovery, for equation 3; by default twice
    ``vm_move_s`` for every VM of the largest group."""
    calculation_ms: Milliseconds = 0
    """Simulated time that deciding one iteration takes."""
    vm_outage_ms: Milliseconds = 0
    """Outage of a VM during its move."""
    spare_hosts: Count = 0
    """Dedicated hosts that replace units which are out of service (section 5.1.4.2)."""
    extra_hosts: tuple[HostKey, ...] = ()
    """Hosts that the cluster has only for the campaign. At its end their VMs move away, and they
    are returned."""
    return_vms: bool = False
    """Whether VMs return at the end to the hosts on which they started."""
    remote_links: bool = False
    """Whether links can be switched on and off remotely."""
    move_attempts_max: PositiveCount = 3
    """Failed moves after which a VM is reported and its host is left. Each goes to another host."""
    connection_attempts_max: PositiveCount = 4
    """Refused connections after which a resource counts as unreachable."""
    connection_wait_s: Seconds = 5
    """Time after a refused connection; it doubles with each further one."""
    iterations_max: PositiveCount = 100_000
    """Limit against endless campaigns: after so many iterations the campaign stops."""


Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
UnitInterval = Annotated[float, Meta(ge=0, le=1)]


class ScalingStep(Value):
    """A tenant requests more VMs, or fewer."""

    tenant: TenantKey
    vms: int


class InjectedFailure(Value):
    """Failures of the attempts on a resource."""

    resource: ResourceKey
    times: PositiveCount | None = None
    """Number of attempts that fail; without it, all fail."""
    attempts: tuple[PositiveCount, ...] = ()
    """The numbers of the attempts that fail, if not the first ones."""
    reverting: bool = False
    """Whether the revert of the attempt fails as well."""
    unreachable: bool = False
    """Whether the resource stops to answer during the attempt: its state is then unknown."""
    unhealthy: bool = False
    """Whether the work succeeds and the health check afterwards fails."""
    undoing: bool = False
    """Whether the work of an undo fails, and not the work of the change."""
    refused: bool = False
    """Whether the connection is refused before the work starts; it is then tried again later."""


class InjectedMoveFailure(Value):
    """Failures of VM moves. Each field that is given narrows down the moves that fail."""

    vm: VmKey | None = None
    source: HostKey | None = None
    """The host that the VMs leave: its evacuation fails."""
    target: HostKey | None = None
    times: PositiveCount | None = None
    """Number of moves that fail; without it, all fail."""


class ScheduledCampaignEvent(Value):
    """An event at a time, or at a step of an iteration."""

    at_s: Seconds | None = None
    iteration: PositiveCount | None = None
    before_vms: bool = False
    """Whether the event comes before the VM moves of the iteration instead of at its start."""
    scaling: tuple[ScalingStep, ...] = ()
    request: UpgradeRequest | None = None
    command: UpgradeCommand | None = None
    host_fails: HostKey | None = None
    host_recovers: HostKey | None = None


class UpgradeSimulation(Value):
    """Behaviour of the simulated engine, the tenants and the administrator."""

    starts_at: InstantText | None = None
    """The date of time 0 in a simulation, for windows and dates on the wall clock."""
    events: tuple[ScheduledCampaignEvent, ...] = ()
    failures: tuple[InjectedFailure, ...] = ()
    move_failures: tuple[InjectedMoveFailure, ...] = ()
    failure_rate: UnitInterval = 0.0
    """Probability that an attempt fails."""
    revert_failure_rate: UnitInterval = 0.0
    undo_failure_rate: UnitInterval = 0.0
    """Probability that an attempt of an undo fails, beside ``failure_rate``."""
    check_failure_rate: UnitInterval = 0.0
    """Probability that a health check fails."""
    move_failure_rate: UnitInterval = 0.0
    """Probability that the move of a VM fails."""
    refusal_rate: UnitInterval = 0.0
    """Probability that a connection is refused before the work starts."""
    jitter: UnitInterval = 0.0
    """Random variation of durations, as a fraction."""
    scaling_ms_mean: Milliseconds = 0
    """Mean time between random scalings of a tenant; 0 for none."""


class UpgradeCampaign(Value):
    """The input of an upgrade: cluster, catalog, requests, settings and simulation."""

    name: Annotated[str, Meta(min_length=1)]
    about: str = ""
    seed: Seed = 0
    cluster: Inventory
    catalog: Catalog = Catalog()
    requests: Annotated[tuple[UpgradeRequest, ...], Meta(min_length=1)]
    settings: UpgradeSettings = UpgradeSettings()
    simulation: UpgradeSimulation = UpgradeSimulation()
