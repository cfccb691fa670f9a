"""The keys of the JSON documents of ``recommend``, ``place`` and ``whatif``."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType, field

from equipoise.documents.cluster import PoolRow, VmRow
from equipoise.documents.json_document import Document, ProblemRow
from equipoise.documents.plan import ViolationRow
from equipoise.documents.simulation import CpuMemory


class ConsideredHost(Document):
    """A host that was considered for a VM and not chosen."""

    host: str
    code: str
    detail: str


class RecommendationRow(Document):
    """One recommended action."""

    action: str
    """``migrate``, ``power_on``, ``power_off`` or ``enter_maintenance``."""
    vm: str | None = None
    source: str | None = field(default=None, name="from")
    target: str | None = field(default=None, name="to")
    priority: int
    """From 1, the most urgent."""
    code: str
    reason: str
    gain: float = 0.0
    cost: float = 0.0
    gains: Mapping[str, float] = {}
    costs: Mapping[str, float] = {}
    risks: Mapping[str, float] = {}
    considered: tuple[ConsideredHost, ...] = ()
    after: tuple[str, ...] = ()
    """VMs whose moves come first."""
    automatic: bool = True
    """Whether the automation level allows it without approval."""


class FaultRow(Document):
    """A fault that no recommended action repairs."""

    code: str
    subject: str
    detail: str
    rules: tuple[str, ...] = ()
    vms: tuple[str, ...] = ()
    unblock: str = ""
    """What would make a repair possible."""
    figures: Mapping[str, float] = {}
    """The amounts behind the sentence, in MHz and MiB."""
    hosts: tuple[str, ...] = ()
    """The standby hosts that would help."""


class BeforeAfter(Document):
    """The imbalance before and after the recommended actions."""

    before: float
    after: float
    gain: float = 0.0
    """The fall in the weights of the start; a scarcity that ends changes the weights."""


class ActionRow(Document):
    """One action of the list, in the order of execution."""

    step: str
    """The id of the step in the plan that ``-o`` writes."""
    action: str
    vm: str | None
    source: str | None = field(name="from")
    target: str | None = field(name="to")
    start_s: float
    end_s: float
    after: tuple[str, ...]
    """The steps that must have succeeded before."""
    decider: str
    code: str
    priority: int
    automatic: bool
    benefit_host_s: float | None
    """Host-seconds; without a figure, a rule or the operator requires the action."""
    evenness_host_s: float | None
    """The part of the benefit that the lower imbalance itself is worth."""
    cost_host_s: float | None
    reason: str


class TotalsRow(Document):
    """The extent of the listed actions."""

    actions: int
    moves: int
    moved_gib: float
    move_s: float
    """The sum of the durations of the moves."""
    ends_s: float
    """The end of the last action, with concurrent actions."""


class HostStateRow(Document):
    """The state of a host, its VMs, and their demand as a part of its capacity."""

    state: str
    vms: int
    cpu: float
    memory: float


class AdvisedHostRow(Document):
    """A host before and after the listed actions."""

    host: str
    before: HostStateRow
    after: HostStateRow


class SoftRuleRow(Document):
    """A soft rule that does not hold after the listed actions."""

    rule: str
    detail: str
    ignored: bool
    """Whether the pass gave it up, because it prevents the repair of a hard rule."""


class RejectedRow(Document):
    """A move that was found and given up."""

    what: str
    code: str
    detail: str


class ExplanationRow(Document):
    """Why nothing, or something, is recommended for a VM or a host."""

    subject: str
    code: str
    sentence: str


class CpuPoolSettings(Document):
    """CPU settings of a pool on one host."""

    reservation_mhz: int
    limit_mhz: int | None
    shares: int


class MemoryPoolSettings(Document):
    """Memory settings of a pool on one host."""

    reservation_mib: int
    limit_mib: int | None
    shares: int


class PoolSettings(Document):
    """Settings of a pool on one host."""

    cpu: CpuPoolSettings
    memory: MemoryPoolSettings


class HostPoolRow(Document):
    """The settings of a pool on a host, as the hypervisor should have them."""

    host: str
    pool: str
    cpu: CpuPoolSettings
    memory: MemoryPoolSettings


class HostPoolChangeRow(Document):
    """The settings of a pool on a host that the recommended moves change."""

    host: str
    pool: str
    before: PoolSettings | None
    after: PoolSettings | None


class MoveRow(Document):
    """A migration that must come first."""

    vm: str
    source: str = field(name="from")
    target: str = field(name="to")


class ScoreRow(Document):
    """The scores of hosts with high and with low utilisation."""

    high: CpuMemory
    low: CpuMemory


class ScorePair(Document):
    """The scores before and after the recommended actions."""

    before: ScoreRow
    after: ScoreRow


class KeptHost(Document):
    """A host whose power state stays, with the reason."""

    host: str
    code: str
    sentence: str


class PowerDocument(Document):
    """The advice of the power decider."""

    summary: str
    scores: ScorePair
    sleeps: tuple[str, ...]
    wakes: tuple[str, ...]
    # The old key stays: readers of the JSON depend on it.
    mends: tuple[str, ...]
    """Rules that the wakes repair."""
    watts_saved: float
    kept: tuple[KeptHost, ...]


class AdviceDocument(Document):
    """The keys that ``recommend`` and ``whatif`` share."""

    recommendations: tuple[RecommendationRow, ...]
    faults: tuple[FaultRow, ...]
    existing_faults: tuple[ViolationRow, ...]
    """What is wrong now, also if the recommended actions repair it."""
    imbalance: BeforeAfter
    summary: str
    fewest_moves: bool
    """Whether the search proved that no repair needs fewer moves."""
    rejected: tuple[RejectedRow, ...]
    host_pools: tuple[HostPoolRow, ...]
    host_pool_changes: tuple[HostPoolChangeRow, ...]
    explanations: tuple[ExplanationRow, ...]
    warnings: tuple[ProblemRow, ...] = ()
    """Values of the inventory that are allowed and probably wrong."""


class RecommendDocument(AdviceDocument):
    """The JSON document of ``equipoise recommend``."""

    power: PowerDocument | UnsetType = UNSET
    """Present if the power decider ran."""
    actions: tuple[ActionRow, ...] = ()
    """All actions of all deciders, in the order of execution."""
    totals: TotalsRow | None = None
    hosts: tuple[AdvisedHostRow, ...] = ()
    dropped: tuple[RejectedRow, ...] = ()
    """Actions that are in conflict with more urgent ones, or that the gate refuses together."""
    ignored_rules: tuple[str, ...] = ()
    """Soft rules about hosts that the pass gave up to repair a hard rule."""
    unmet_soft_rules: tuple[SoftRuleRow, ...] = ()
    unknown_vms: tuple[str, ...] = ()
    """VMs of the history that the cluster does not have."""
    vms: tuple[VmRow, ...] = ()
    """The VMs with their demand and their entitlement now."""
    pools: tuple[PoolRow, ...] = ()
    commands: tuple[str, ...] | UnsetType = UNSET
    """The lines of the script; present with ``--format``."""
    wall_s: float


class RestartRow(Document):
    """A VM that starts again on another host."""

    vm: str
    host: str


class WhatIfDocument(AdviceDocument):
    """The JSON document of ``equipoise whatif``: the keys of ``recommend``, and restarts."""

    restarts: tuple[RestartRow, ...]
    prerequisite_moves: tuple[MoveRow, ...]
    power_ons: tuple[str, ...]
    unplaced: tuple[str, ...]
    restart_faults: tuple[FaultRow, ...]
    wall_s: float


class AlternativeHost(Document):
    """Another host on which a VM could start."""

    host: str
    imbalance: float


class PlacementRow(Document):
    """The host on which a VM should start."""

    vm: str
    action: str
    """``boot``, ``resume`` or ``migrate``."""
    source: str | None = field(name="from")
    """The host of a VM that resumes or migrates."""
    host: str
    imbalance: float
    cpu_mhz: int
    memory_mib: int
    """The demand that the placement counts with."""
    estimated: bool
    """Whether the demand is the maximum, because the file gives none."""
    alternatives: tuple[AlternativeHost, ...]


class PlaceDocument(Document):
    """The JSON document of ``equipoise place``."""

    placements: tuple[PlacementRow, ...]
    prerequisite_moves: tuple[MoveRow, ...]
    power_ons: tuple[str, ...]
    faults: tuple[FaultRow, ...]
    warnings: tuple[ProblemRow, ...] = ()
    overloads: tuple[FaultRow, ...] = ()
    """Starts that overload a host, because no host has capacity without overload."""
