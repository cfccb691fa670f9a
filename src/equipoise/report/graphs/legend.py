"""The legend of the graphs: what looks and lines mean."""

from __future__ import annotations

from typing import Final

from equipoise.model.resource import DependencyKind, Presence
from equipoise.report.chart.markup import Markup, joined, tag, text
from equipoise.report.graphs.ties import look_of

_BOXES: Final = (
    ("box upgrade", "upgrade"),
    ("box add", "add"),
    ("box remove", "remove"),
    ("box no_change", "no change"),
    ("box upgrade chosen", "in this batch"),
    ("box upgrade off", "out of service"),
    ("box no_change troubled", "isolated or failed"),
)
_LINES: Final = (
    (DependencyKind.COMMUNICATION, Presence.CURRENT_FUTURE, False, "communicates over"),
    (DependencyKind.AGGREGATION, Presence.CURRENT_FUTURE, False, "is made of"),
    (DependencyKind.MIGRATION, Presence.CURRENT_FUTURE, False, "runs on"),
    (DependencyKind.STORAGE, Presence.CURRENT_FUTURE, False, "stored, controlled by"),
    (DependencyKind.VM_SUPPORTING_STORAGE, Presence.CURRENT_FUTURE, False, "keeps its VMs on"),
    (DependencyKind.PEER_STATELESS, Presence.CURRENT_FUTURE, False, "peers"),
    (DependencyKind.COMMUNICATION, Presence.FUTURE, False, "in future"),
    (DependencyKind.COMMUNICATION, Presence.CURRENT, False, "until changed"),
    (DependencyKind.COMMUNICATION, Presence.CURRENT_FUTURE, True, "versions clash"),
)
_STEP, _LETTER, _LINE_HIGH = 34.0, 6.8, 26.0


def drawn_legend(left: float, top: float) -> Markup:
    """Two lines: what boxes mean and what ties mean."""
    parts = []
    x = left
    for look, words in _BOXES:
        box = tag("rect", class_="body", x=x, y=top - 10, rx=3, width=24, height=14)
        parts.append(tag("g", box, class_=look))
        parts.append(tag("text", text(words), class_="key", x=x + 30, y=top + 1))
        x += _STEP + len(words) * _LETTER + 14
    x, y = left, top + _LINE_HIGH
    for kind, presence, clash, words in _LINES:
        line = tag("path", d=f"M{x:.0f} {y - 4:.0f}h22")
        parts.append(tag("g", line, class_=look_of(kind, presence, incompatible=clash)))
        parts.append(tag("text", text(words), class_="key", x=x + 28, y=y))
        x += _STEP + len(words) * _LETTER + 12
    return joined(parts)
