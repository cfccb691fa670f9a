"""The question and the answers, as they pass between the two processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from equipoise.hosts.wake.port import Accepted, Cause, Power, Refusal, Seen

Answer = Accepted | Seen | Refusal


class Verb(StrEnum):
    """What is asked."""

    WAKE = "wake"
    SLEEP = "sleep"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """All that is needed to ask; what a way has no use for is left empty."""

    by: str
    verb: str
    user: str
    password: str = field(repr=False)
    url: str = ""
    system: str | None = None
    ca_file: str | None = None
    address: str = ""
    port: int = 0


def as_document(answer: Answer) -> dict[str, str]:
    """Put an answer into plain values."""
    match answer:
        case Accepted():
            return {"by": answer.by, "is": "accepted", "note": answer.note}
        case Seen():
            return {"by": answer.by, "is": "seen", "power": answer.power, "note": answer.note}
        case Refusal():
            return {
                "by": answer.by,
                "is": "refused",
                "cause": answer.cause,
                "sentence": answer.sentence,
            }


def from_document(document: Mapping[str, Any]) -> Answer:
    """Read an answer back."""
    by = document["by"]
    match document["is"]:
        case "accepted":
            return Accepted(by=by, note=document["note"])
        case "seen":
            return Seen(by=by, power=Power(document["power"]), note=document["note"])
        case _:
            cause = Cause(document["cause"])
            return Refusal(by=by, cause=cause, sentence=document["sentence"])
