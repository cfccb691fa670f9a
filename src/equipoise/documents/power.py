"""The power part of the document of ``recommend``."""

from __future__ import annotations

from equipoise.documents.json_document import Document
from equipoise.documents.simulation import CpuMemory
from equipoise.power.advice import PowerAdvice
from equipoise.power.utilisation import UtilisationScores


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
