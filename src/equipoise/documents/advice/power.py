"""The power actions of advice as rows, and the document of the power decider."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from equipoise.documents.advice.rows import (
    KeptHost,
    PowerDocument,
    RecommendationRow,
    ScorePair,
    ScoreRow,
)
from equipoise.documents.simulation import CpuMemory
from equipoise.power.advice import PowerAdvice, PowerCode, StandbyAdvice, WakeAdvice
from equipoise.power.utilisation import UtilisationScores


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
        # A standby gains power, a wake-up a better score; the column shows the one that applies.
        gain=advice.gain.get("watts", advice.gain.get("high_score", 0.0)),
        cost=costs.get("cpu_mhz_s", 0.0),
        gains=dict(advice.gain),
        costs=costs,
        automatic=advice.automatic,
    )


def power_document(advice: PowerAdvice) -> PowerDocument:
    """Return scores, standby and wake actions, and the hosts that stay as they are."""
    return PowerDocument(
        summary=advice.summary,
        scores=ScorePair(before=_score_row(advice.before), after=_score_row(advice.after)),
        sleeps=tuple(standby.host for standby in advice.standbys),
        wakes=tuple(wake.host for wake in advice.wakes),
        mends=tuple(advice.repairs),
        watts_saved=sum(standby.gain["watts"] for standby in advice.standbys),
        kept=tuple(map(KeptHost.of, advice.skipped)),
    )


def _score_row(scores: UtilisationScores) -> ScoreRow:
    high, low = (CpuMemory(cpu=round(cpu, 6), memory=round(memory, 6)) for cpu, memory in scores)
    return ScoreRow(high=high, low=low)
