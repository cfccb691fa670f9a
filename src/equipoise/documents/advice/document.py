"""Makes the JSON documents of ``recommend``, ``place`` and ``whatif`` from advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import asdict, replace

from equipoise.balance.advice import BalanceAdvice, BalanceCode, MoveAdvice, snapshot_after_moves
from equipoise.balance.explain import Explanation
from equipoise.balance.placement import PlacementAdvice
from equipoise.balance.run_pass import PassResult, WhatIfResult
from equipoise.capacity.entitlement import entitlement_per_vm
from equipoise.capacity.pool_split import (
    HostPool,
    HostPools,
    host_pool_changes,
    split_pools_over_hosts,
)
from equipoise.control.advice_plan import ActionWorth, AdvicePlan, AdvisedHost
from equipoise.documents.advice.power import power_document, power_rows
from equipoise.documents.advice.rows import (
    ActionRow,
    AdviceDocument,
    AdvisedHostRow,
    AlternativeHost,
    BeforeAfter,
    ConsideredHost,
    CpuPoolSettings,
    ExplanationRow,
    FaultRow,
    HostPoolChangeRow,
    HostPoolRow,
    HostStateRow,
    MemoryPoolSettings,
    MoveRow,
    PlaceDocument,
    PlacementRow,
    PoolSettings,
    RecommendationRow,
    RecommendDocument,
    RejectedRow,
    RestartRow,
    SoftRuleRow,
    TotalsRow,
    WhatIfDocument,
)
from equipoise.documents.cluster import pool_rows, vm_rows
from equipoise.documents.json_document import ProblemRow
from equipoise.documents.plan import violation_rows
from equipoise.model.action import Migrate, PowerOff, kind_of
from equipoise.model.plan import Step
from equipoise.plan.existing_faults import existing_faults
from equipoise.power.advice import PowerAdvice


def recommend_document(
    result: PassResult,
    explanations: Sequence[Explanation] = (),
    power: PowerAdvice | None = None,
    *,
    wall_s: float,
    warnings: tuple[ProblemRow, ...] = (),
) -> RecommendDocument:
    """Return the advice of a balance pass and, if it ran, of the power pass."""
    advice = result.advice
    now = split_pools_over_hosts(result.snapshot)
    moved = ((move.vm, move.target) for move in advice.moves)
    # Hypervisors know pools per host, so that each move changes settings on both of its hosts.
    then = split_pools_over_hosts(snapshot_after_moves(result.snapshot, moved))
    return RecommendDocument(
        recommendations=(
            *map(_move_row, advice.moves),
            *_host_switch_rows(advice),
            *(() if power is None else power_rows(power)),
        ),
        faults=tuple(map(FaultRow.of, advice.unresolved)),
        existing_faults=violation_rows(existing_faults(result.snapshot)),
        imbalance=_before_after(advice.before, advice.after, advice.gain),
        summary=advice.summary,
        fewest_moves=advice.fewest,
        rejected=tuple(RejectedRow.of(row, what=row.subject) for row in advice.rejected),
        host_pools=tuple(_host_pool_rows(now)),
        host_pool_changes=tuple(_host_pool_changes(now, then)),
        explanations=tuple(map(ExplanationRow.of, explanations)),
        warnings=warnings,
        power=UNSET if power is None else power_document(power),
        wall_s=round(wall_s, 4),
    )


def with_plan(  # noqa: PLR0913  (each parameter is a key of the document)
    document: RecommendDocument,
    actions: AdvicePlan,
    imbalance: tuple[float, float],
    *,
    summary: str,
    ignored: Sequence[str] = (),
    unknown: Sequence[str] = (),
    commands: Sequence[str] | None = None,
) -> RecommendDocument:
    """Return the document with the list of all actions, and the imbalance after all of them."""
    gain, steps = document.imbalance.gain, actions.plan.steps
    entitled = entitlement_per_vm(actions.snapshot)
    listed = {(kind_of(step.action), step.footprint.vm, step.footprint.switched) for step in steps}
    rows = tuple(row for row in document.recommendations if _row_key(row) in listed)
    return replace(
        document,
        recommendations=rows,
        summary=summary,
        unknown_vms=tuple(unknown),
        vms=vm_rows(actions.snapshot, entitled),
        pools=pool_rows(actions.snapshot, entitled),
        commands=UNSET if commands is None else tuple(commands),
        imbalance=_before_after(*imbalance, gain),
        actions=tuple(map(_action_row, actions.plan.steps, actions.worth)),
        totals=TotalsRow.of(actions.totals),
        hosts=tuple(
            AdvisedHostRow(host=before.host, before=_load_row(before), after=_load_row(after))
            for before, after in actions.host_loads
        ),
        dropped=tuple(RejectedRow.of(row, what=row.subject) for row in actions.dropped),
        ignored_rules=tuple(ignored),
        unmet_soft_rules=tuple(
            SoftRuleRow(rule=rule, detail=detail, ignored=rule in ignored)
            for rule, detail in actions.unmet
        ),
    )


def _row_key(row: RecommendationRow) -> tuple[str, str | None, str | None]:
    """Return what identifies the action of a row: its kind, and its VM or host."""
    return row.action, row.vm, None if row.vm is not None else row.source or row.target


def _before_after(before: float, after: float, gain: float) -> BeforeAfter:
    # Six digits: further ones would show the rounding of float sums.
    return BeforeAfter(before=round(before, 6), after=round(after, 6), gain=round(gain, 6))


def _action_row(step: Step, worth: ActionWorth) -> ActionRow:
    touched, action = step.footprint, step.action
    source, target = touched.switched, None
    if isinstance(action, Migrate):
        source, target = action.source, action.target
    return ActionRow(
        step=step.id,
        action=kind_of(action),
        vm=touched.vm,
        source=source,
        target=target,
        start_s=step.start_ms / 1000,
        end_s=step.end_ms / 1000,
        after=step.after,
        decider=worth.decider,
        code=worth.code,
        priority=worth.priority,
        automatic=worth.automatic,
        benefit_host_s=worth.benefit,
        evenness_host_s=worth.evenness,
        cost_host_s=worth.cost,
        reason=step.reason,
    )


def _load_row(load: AdvisedHost) -> HostStateRow:
    return HostStateRow.of(load, cpu=round(load.cpu, 4), memory=round(load.memory, 4))


def whatif_document(
    result: WhatIfResult,
    explanations: Sequence[Explanation] = (),
    *,
    wall_s: float,
    warnings: tuple[ProblemRow, ...] = (),
) -> WhatIfDocument:
    """Return the advice for a changed cluster."""
    advice = asdict(recommend_document(result.done, explanations, wall_s=wall_s, warnings=warnings))
    # A what-if asks for the balance pass only.
    for key in set(advice) - set(AdviceDocument.__struct_fields__):
        if key != "wall_s":
            del advice[key]
    restarts = result.restarts
    return WhatIfDocument(
        **advice,
        restarts=tuple(map(RestartRow.of, restarts.placed)),
        prerequisite_moves=tuple(map(MoveRow.of, restarts.moves)),
        power_ons=restarts.wakes,
        unplaced=result.unplaced,
        restart_faults=tuple(map(FaultRow.of, restarts.faults)),
    )


def place_document(advice: PlacementAdvice, warnings: tuple[ProblemRow, ...] = ()) -> PlaceDocument:
    """Return the hosts of new VMs, and the actions that must come first."""
    return PlaceDocument(
        placements=tuple(
            PlacementRow.of(
                start,
                action=kind_of(start.action),
                imbalance=round(start.imbalance, 6),
                cpu_mhz=start.demand.cpu_mhz,
                memory_mib=start.demand.memory_mib,
                alternatives=tuple(
                    AlternativeHost.of(option, imbalance=round(option.imbalance, 6))
                    for option in start.alternatives
                ),
            )
            for start in advice.placed
        ),
        prerequisite_moves=tuple(map(MoveRow.of, advice.moves)),
        power_ons=advice.wakes,
        faults=tuple(map(FaultRow.of, advice.faults)),
        warnings=warnings,
        overloads=tuple(map(FaultRow.of, advice.warnings)),
    )


def _move_row(move: MoveAdvice) -> RecommendationRow:
    return RecommendationRow.of(
        move,
        action="migrate",
        after=tuple(dict.fromkeys((*move.after, *move.after_parking))),
        gain=move.gain.get("imbalance", 0.0),
        cost=move.cost.get("cpu_mhz_s", 0.0),
        gains=dict(move.gain),
        costs=dict(move.cost),
        risks=dict(move.risk),
        considered=tuple(ConsideredHost.of(row, host=row.subject) for row in move.considered),
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


def _host_pool_rows(pools: HostPools) -> Iterator[HostPoolRow]:
    for host, host_pools in pools.items():
        for pool, settings in host_pools.items():
            yield HostPoolRow.of(_pool_settings(settings), host=host, pool=pool)


def _host_pool_changes(now: HostPools, then: HostPools) -> Iterator[HostPoolChangeRow]:
    for change in host_pool_changes(now, then):
        yield HostPoolChangeRow.of(
            change,
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
