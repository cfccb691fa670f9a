"""The JSON documents of ``recommend``, ``place`` and ``whatif``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET, UnsetType, field
from msgspec.structs import asdict, replace

from equipoise.balance.advice import BalanceAdvice, BalanceCode, MoveAdvice, snapshot_after_moves
from equipoise.balance.explain import Explanation
from equipoise.balance.placement import PlacementAdvice
from equipoise.balance.repair.faults import BalanceFault
from equipoise.balance.repair.rule_repair import Transfer
from equipoise.balance.run_pass import PassResult, WhatIfResult
from equipoise.capacity.pool_split import (
    HostPool,
    HostPools,
    host_pool_changes,
    split_pools_over_hosts,
)
from equipoise.documents.json_document import Document
from equipoise.documents.simulation import CpuMemory
from equipoise.model.action import PowerOff
from equipoise.model.plan import Rejection
from equipoise.power.advice import PowerAdvice, PowerCode, StandbyAdvice, WakeAdvice
from equipoise.power.utilisation import UtilisationScores


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


class BeforeAfter(Document):
    """The imbalance before and after the recommended actions."""

    before: float
    after: float


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


class RecommendDocument(Document):
    """The JSON document of ``equipoise recommend``."""

    recommendations: tuple[RecommendationRow, ...]
    faults: tuple[FaultRow, ...]
    imbalance: BeforeAfter
    summary: str
    fewest_moves: bool
    """Whether the search proved that no repair needs fewer moves."""
    rejected: tuple[RejectedRow, ...]
    host_pools: tuple[HostPoolRow, ...]
    host_pool_changes: tuple[HostPoolChangeRow, ...]
    explanations: tuple[ExplanationRow, ...]
    power: PowerDocument | UnsetType = UNSET
    """Present if the power decider ran."""
    wall_s: float


class RestartRow(Document):
    """A VM that starts again on another host."""

    vm: str
    host: str


class WhatIfDocument(Document):
    """The JSON document of ``equipoise whatif``: the keys of ``recommend``, and restarts."""

    recommendations: tuple[RecommendationRow, ...]
    faults: tuple[FaultRow, ...]
    imbalance: BeforeAfter
    summary: str
    fewest_moves: bool
    rejected: tuple[RejectedRow, ...]
    host_pools: tuple[HostPoolRow, ...]
    host_pool_changes: tuple[HostPoolChangeRow, ...]
    explanations: tuple[ExplanationRow, ...]
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
    host: str
    imbalance: float
    alternatives: tuple[AlternativeHost, ...]


class PlaceDocument(Document):
    """The JSON document of ``equipoise place``."""

    placements: tuple[PlacementRow, ...]
    prerequisite_moves: tuple[MoveRow, ...]
    power_ons: tuple[str, ...]
    faults: tuple[FaultRow, ...]


def recommend_document(
    result: PassResult,
    explanations: Sequence[Explanation] = (),
    power: PowerAdvice | None = None,
    *,
    wall_s: float,
) -> RecommendDocument:
    """Return the advice of a balance pass and, if it ran, of the power pass."""
    advice = result.advice
    now = split_pools_over_hosts(result.snapshot)
    moved = ((move.vm, move.target) for move in advice.moves)
    then = split_pools_over_hosts(snapshot_after_moves(result.snapshot, moved))
    return RecommendDocument(
        recommendations=(
            *map(_move_row, advice.moves),
            *_host_switch_rows(advice),
            *(() if power is None else power_rows(power)),
        ),
        faults=tuple(map(fault_row, advice.faults)),
        imbalance=BeforeAfter(before=round(advice.before, 6), after=round(advice.after, 6)),
        summary=advice.summary,
        fewest_moves=advice.fewest,
        rejected=tuple(map(_rejected_row, advice.rejected)),
        host_pools=tuple(_host_pool_rows(now)),
        host_pool_changes=tuple(_host_pool_changes(now, then)),
        explanations=tuple(
            ExplanationRow(subject=row.subject, code=row.code, sentence=row.sentence)
            for row in explanations
        ),
        power=UNSET if power is None else power_document(power),
        wall_s=round(wall_s, 4),
    )


def whatif_document(
    result: WhatIfResult, explanations: Sequence[Explanation] = (), *, wall_s: float
) -> WhatIfDocument:
    """Return the advice for a changed cluster."""
    advice = asdict(recommend_document(result.done, explanations, wall_s=wall_s))
    del advice["power"]
    restarts = result.restarts
    return WhatIfDocument(
        **advice,
        restarts=tuple(RestartRow(vm=start.vm, host=start.host) for start in restarts.placed),
        prerequisite_moves=tuple(map(_prerequisite_row, restarts.moves)),
        power_ons=restarts.wakes,
        unplaced=result.unplaced,
        restart_faults=tuple(map(fault_row, restarts.faults)),
    )


def place_document(advice: PlacementAdvice) -> PlaceDocument:
    """Return the hosts of new VMs, and the actions that must come first."""
    return PlaceDocument(
        placements=tuple(
            PlacementRow(
                vm=start.vm,
                host=start.host,
                imbalance=round(start.imbalance, 6),
                alternatives=tuple(
                    AlternativeHost(host=option.host, imbalance=round(option.imbalance, 6))
                    for option in start.alternatives
                ),
            )
            for start in advice.placed
        ),
        prerequisite_moves=tuple(map(_prerequisite_row, advice.moves)),
        power_ons=advice.wakes,
        faults=tuple(map(fault_row, advice.faults)),
    )


def fault_row(fault: BalanceFault) -> FaultRow:
    """Return a fault as a row."""
    return FaultRow(
        code=fault.code,
        subject=fault.subject,
        detail=fault.detail,
        rules=fault.rules,
        vms=fault.vms,
        unblock=fault.unblock,
    )


def _rejected_row(rejection: Rejection) -> RejectedRow:
    return RejectedRow(what=rejection.subject, code=rejection.code, detail=rejection.detail)


def _prerequisite_row(move: Transfer) -> MoveRow:
    return MoveRow(vm=move.vm, source=move.source, target=move.target)


def _move_row(move: MoveAdvice) -> RecommendationRow:
    return RecommendationRow(
        action="migrate",
        vm=move.vm,
        source=move.source,
        target=move.target,
        priority=move.priority,
        code=move.code,
        reason=move.reason,
        gain=move.gain.get("imbalance", 0.0),
        cost=move.cost.get("cpu_mhz_s", 0.0),
        gains=dict(move.gain),
        costs=dict(move.cost),
        risks=dict(move.risk),
        considered=tuple(
            ConsideredHost(host=rejection.subject, code=rejection.code, detail=rejection.detail)
            for rejection in move.considered
        ),
        after=move.after,
        automatic=move.automatic,
    )


def _host_switch_rows(advice: BalanceAdvice) -> Iterator[RecommendationRow]:
    for switch in advice.switches:
        yield RecommendationRow(
            action="power_off" if isinstance(switch.action, PowerOff) else "enter_maintenance",
            source=switch.host,
            priority=1,
            code=BalanceCode.EVACUATE,
            reason=f"the operator requests {switch.desired} for {switch.host}",
            after=switch.after,
            automatic=switch.automatic,
        )


# Power


def power_rows(advice: PowerAdvice) -> Iterator[RecommendationRow]:
    """Yield the power actions; the moves that empty a host come before its standby."""
    for wake in advice.wakes:
        yield replace(_power_row("power_on", wake, wake.code, wake.reason), target=wake.host)
    for move in advice.moves:
        reason = f"{move.vm} violates a rule on {move.source}"
        row = _power_row("migrate", advice.wakes[0], PowerCode.WAKE_RULE, reason)
        yield replace(row, vm=move.vm, source=move.source, target=move.target)
    for standby in advice.standbys:
        for evacuation in standby.evacuations:
            yield RecommendationRow(
                action="migrate",
                vm=evacuation.vm,
                source=standby.host,
                target=evacuation.target,
                priority=standby.priority,
                code=PowerCode.SLEEP,
                reason=f"{standby.host} goes into standby",
                automatic=standby.automatic,
            )
        after = tuple(evacuation.vm for evacuation in standby.evacuations)
        row = _power_row("power_off", standby, PowerCode.SLEEP, standby.reason)
        yield replace(row, source=standby.host, after=after)


def _power_row(
    action: str, advice: StandbyAdvice | WakeAdvice, code: str, reason: str
) -> RecommendationRow:
    costs = dict(advice.cost) if isinstance(advice, StandbyAdvice) else {}
    return RecommendationRow(
        action=action,
        priority=advice.priority,
        code=code,
        reason=reason,
        gain=advice.gain.get("watts", advice.gain.get("high_score", 0.0)),
        cost=costs.get("cpu_mhz_s", 0.0),
        gains=dict(advice.gain),
        costs=costs,
        automatic=advice.automatic,
    )


# Pools


def _host_pool_rows(pools: HostPools) -> Iterator[HostPoolRow]:
    for host, host_pools in pools.items():
        for pool, settings in host_pools.items():
            row = _pool_settings(settings)
            yield HostPoolRow(host=host, pool=pool, cpu=row.cpu, memory=row.memory)


def _host_pool_changes(now: HostPools, then: HostPools) -> Iterator[HostPoolChangeRow]:
    for change in host_pool_changes(now, then):
        yield HostPoolChangeRow(
            host=change.host,
            pool=change.pool,
            before=None if change.before is None else _pool_settings(change.before),
            after=None if change.after is None else _pool_settings(change.after),
        )


def _pool_settings(settings: HostPool) -> PoolSettings:
    cpu, memory = settings.cpu, settings.memory
    return PoolSettings(
        cpu=CpuPoolSettings(
            reservation_mhz=cpu.reservation, limit_mhz=cpu.limit, shares=cpu.shares
        ),
        memory=MemoryPoolSettings(
            reservation_mib=memory.reservation, limit_mib=memory.limit, shares=memory.shares
        ),
    )


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
    mends: tuple[str, ...]
    """Rules that the wakes repair."""
    watts_saved: float
    kept: tuple[KeptHost, ...]


def power_document(advice: PowerAdvice) -> PowerDocument:
    """Return scores, standby and wake actions, and the hosts that stay as they are."""
    return PowerDocument(
        summary=advice.summary,
        scores=ScorePair(before=_score_row(advice.before), after=_score_row(advice.after)),
        sleeps=tuple(standby.host for standby in advice.standbys),
        wakes=tuple(wake.host for wake in advice.wakes),
        mends=tuple(advice.repairs),
        watts_saved=sum(standby.gain["watts"] for standby in advice.standbys),
        kept=tuple(
            KeptHost(host=skipped.host, code=skipped.code, sentence=skipped.sentence)
            for skipped in advice.skipped
        ),
    )


def _score_row(scores: UtilisationScores) -> ScoreRow:
    high, low = (CpuMemory(cpu=round(cpu, 6), memory=round(memory, 6)) for cpu, memory in scores)
    return ScoreRow(high=high, low=low)
