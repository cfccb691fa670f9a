"""The annotations that say how a pod behaves in the simulation; a real cluster ignores them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any, Final

from equipoise.adapters.kubernetes.quantity import (
    parse_amount,
    parse_duration_ms,
    parse_milli,
    parse_quantity,
)
from equipoise.sim.pods.spec import UsagePhase

PREFIX: Final = "equipoise.dev/"
ARRIVAL: Final = PREFIX + "arrival"
"""When an object is created: seconds, or a duration as Go writes it."""
DURATION: Final = PREFIX + "duration"
"""How long the containers of a pod run."""
WORK: Final = PREFIX + "work"
"""Operations that each core of a pod computes; the speed of its node says how long that takes."""
EXIT_CODE: Final = PREFIX + "exit-code"
"""How the containers end, or ``1,1,0`` for consecutive runs."""
USAGE: Final = PREFIX + "usage"
"""Phases of usage: ``60s:500m:1Gi, 30s:2:2Gi`` (duration, CPU, memory)."""
INIT_DURATION: Final = PREFIX + "init-duration"
"""The durations of the init containers: ``5s,2s``; the last one counts for all others."""
STOP: Final = PREFIX + "stop"
"""How long the containers go on after the signal to stop."""
JOB: Final = PREFIX + "job"
"""The job of the workload file that the pod came from."""
SPEED: Final = PREFIX + "speed"
"""Of a node: operations per second of one of its cores."""
GPU_MILLI: Final = PREFIX + "gpu-milli"
"""The extended resource for shares of GPUs: 1000 for each GPU of a node."""

_CODES: Final = re.compile(r"\d{1,3}(?:,\d{1,3})*", re.ASCII)
_CODE_MAX: Final = 255
_MS_PER_S: Final = 1000
_PHASE_PARTS: Final = 3
_MS_MAX: Final = 10**12
"""About 30 years: the clock of a scheduler counts nanoseconds in 64 bits, for 290 years."""


def annotations_of(body: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the annotations of an object."""
    return (body.get("metadata") or {}).get("annotations") or {}


def read_duration_ms(annotations: Mapping[str, str], key: str) -> int | None:
    """Return a duration; ``ValueError`` names the annotation."""
    if key not in annotations:
        return None
    try:
        found = parse_duration_ms(annotations[key])
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
    if found > _MS_MAX:
        raise ValueError(f"{key}: {annotations[key]!r:.40} is too long")
    return found


def read_run_ms(annotations: Mapping[str, str], speed: Fraction | None) -> int | None:
    """Return how long the containers run: their duration, and their work at this speed."""
    run_ms = read_duration_ms(annotations, DURATION)
    if WORK not in annotations:
        return run_ms
    work = _read_number(annotations, WORK)
    if not speed:
        raise ValueError(f"{WORK}: the node states no speed")
    return (run_ms or 0) + min(ceil(work * _MS_PER_S / speed), _MS_MAX)


def read_speed(annotations: Mapping[str, str]) -> Fraction | None:
    """Return the speed of the cores of a node, if it is stated."""
    return _read_number(annotations, SPEED) if SPEED in annotations else None


def _read_number(annotations: Mapping[str, str], key: str) -> Fraction:
    try:
        number = parse_quantity(annotations[key])
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
    if number < 0:
        raise ValueError(f"{key}: {annotations[key]!r:.40} is below 0")
    return number


def read_exit_codes(annotations: Mapping[str, str]) -> tuple[int, ...]:
    """Return the exit codes of consecutive runs."""
    text = annotations.get(EXIT_CODE, "0").replace(" ", "")
    codes = tuple(map(int, text.split(","))) if _CODES.fullmatch(text) else ()
    if not codes or max(codes) > _CODE_MAX:
        raise ValueError(f"{EXIT_CODE}: {text!r:.40} is no list of codes from 0 to {_CODE_MAX}")
    return codes


def read_init_ms(annotations: Mapping[str, str], count: int) -> tuple[int, ...]:
    """Return the durations of this many init containers."""
    if not count or INIT_DURATION not in annotations:
        return (0,) * count
    try:
        given = [parse_duration_ms(part) for part in annotations[INIT_DURATION].split(",")]
    except ValueError as error:
        raise ValueError(f"{INIT_DURATION}: {error}") from None
    return tuple(given[min(index, len(given) - 1)] for index in range(count))


def read_usage(annotations: Mapping[str, str]) -> tuple[UsagePhase, ...]:
    """Return the phases of usage; empty if none are given."""
    if not annotations.get(USAGE, "").strip():
        return ()
    phases = []
    for part in annotations[USAGE].split(","):
        fields = part.strip().split(":")
        try:
            if len(fields) != _PHASE_PARTS:
                raise ValueError(f"{part.strip()!r:.40} is not duration:cpu:memory")
            duration_ms = parse_duration_ms(fields[0])
            phases.append(UsagePhase(duration_ms, parse_milli(fields[1]), parse_amount(fields[2])))
        except ValueError as error:
            raise ValueError(f"{USAGE}: {error}") from None
    return tuple(phases)


def check_annotations(annotations: Mapping[str, str]) -> None:
    """Raise ``ValueError`` for an annotation of ours that cannot be read."""
    for key in (ARRIVAL, DURATION, STOP):
        read_duration_ms(annotations, key)
    for key in (WORK, SPEED):
        if key in annotations:
            _read_number(annotations, key)
    read_exit_codes(annotations)
    read_usage(annotations)
    read_init_ms(annotations, 1)
