"""Reads traces of MPI programs (profiles of the type ``smpi``): one file of actions per rank.

A line has the rank, the name of the action and its values: ``0 send 1 0 1e6``. The actions that
the simulation offers are init, compute, send, recv and finalize; others are refused by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from equipoise.sim.jobs.traces.run import (
    ComputeStep,
    ReceiveStep,
    SendStep,
    Step,
    stuck_ranks,
)

_NO_STEP: Final = frozenset({"init", "finalize"})
_FIELDS: Final = {"compute": 1, "send": 3, "recv": 3}
"""The values of an action: the operations; or the other rank, the tag and the bytes."""


def read_trace(path: Path) -> tuple[tuple[Step, ...], ...]:
    """Return the steps of each rank; ``ValueError`` names the file and line that is wrong."""
    names = [line.strip() for line in _lines(path) if line.strip()]
    if not names:
        raise ValueError(f"the trace {path.name} names no file")
    count = len(names)
    ranks = tuple(
        tuple(_read_rank(path.parent / name, rank, count)) for rank, name in enumerate(names)
    )
    stuck = stuck_ranks(ranks)
    if stuck:
        raise ValueError(f"rank {stuck[0]} of the trace {path.name} waits for ever")
    return ranks


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "is no text"
        raise ValueError(f"the trace {path.name} cannot be read: {what}") from None


def _read_rank(path: Path, rank: int, count: int) -> list[Step]:
    steps: list[Step] = []
    for number, line in enumerate(_lines(path), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            step = _step(words, rank, count)
        except (ValueError, IndexError) as error:
            what = "has too few values" if isinstance(error, IndexError) else str(error)
            raise ValueError(f"{path.name} line {number}: {what}") from None
        if step is not None:
            steps.append(step)
    return steps


def _step(words: list[str], rank: int, count: int) -> Step | None:
    if int(words[0]) != rank:
        raise ValueError(f"is of rank {words[0]} in the file of rank {rank}")
    name, values = words[1].lower(), words[2:]
    if name in _NO_STEP:
        # A value of init makes sizes count in numbers of 8 bytes.
        if values:
            raise ValueError(f"{name} with a value is not offered")
        return None
    if name not in _FIELDS:
        raise ValueError(f"the action {name!r} is not offered")
    if len(values) > _FIELDS[name]:
        raise ValueError(f"{name} with a type of data is not offered")
    if name == "compute":
        return ComputeStep(_amount(values[0]))
    other, tag = int(values[0]), int(values[1])
    if not 0 <= other < count or other == rank:
        raise ValueError(f"names rank {other}")
    return SendStep(other, tag, _amount(values[2])) if name == "send" else ReceiveStep(other, tag)


def _amount(text: str) -> float:
    amount = float(text)
    if not 0 <= amount < float("inf"):
        raise ValueError(f"has the amount {text}")
    return amount
