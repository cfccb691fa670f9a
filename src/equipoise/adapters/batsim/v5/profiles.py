"""Profiles of Batsim 5: as workload files have them, as messages have them, and as work.

A file names the amounts ``cpu``, ``com``, ``seq``; a message names them ``computation_vector``,
``communication_matrix``, ``profile_ids``. Messages use full names (``workload!profile``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isqrt
from typing import Any, Final

import msgspec

from equipoise.adapters.batsim.quantities import read_amount, read_seconds, read_whole
from equipoise.sim.jobs.work import (
    DelayWork,
    MergedTaskWork,
    SequenceWork,
    StagingWork,
    StorageWork,
    TaskWork,
    UniformTaskWork,
    Work,
)

Raw = Mapping[str, Any]
Find = Callable[[str], Work]
"""Returns the work of another profile of the workload."""

EACH: Final = "DefinedAmountsUsedForEachValue"
SPREAD: Final = "DefinedAmountsSpreadUniformly"

_WIRE_KEYS: Final[Mapping[str, Mapping[str, str]]] = {
    "DelayProfile": {"delay": "delay"},
    "ParallelTaskProfile": {"cpu": "computation_vector", "com": "communication_matrix"},
    "ParallelTaskHomogeneousProfile": {
        "cpu": "computation_amount",
        "com": "communication_amount",
        "generation_strategy": "generation_strategy",
    },
    "SequentialCompositionProfile": {"repeat": "repetition_count", "seq": "profile_ids"},
    "ForkJoinCompositionProfile": {"profile_ids": "profile_ids"},
    "ParallelTaskMergeCompositionProfile": {"profile_ids": "profile_ids"},
    "ParallelTaskOnStorageHomogeneousProfile": {
        "storage": "storage_name",
        "bytes_to_read": "bytes_to_read",
        "bytes_to_write": "bytes_to_write",
        "generation_strategy": "generation_strategy",
    },
    "ParallelTaskDataStagingBetweenStoragesProfile": {
        "nb_bytes": "bytes_to_transfer",
        "from": "emitter_storage_name",
        "to": "receiver_storage_name",
    },
    "TraceReplayProfile": {"trace_type": "trace_type", "filename": "filename"},
}
"""The key of a message for each key of a file."""
_WIRE_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "ParallelTaskHomogeneousProfile": {
        "computation_amount": 0,
        "communication_amount": 0,
        "generation_strategy": EACH,
    },
    "SequentialCompositionProfile": {"repetition_count": 1},
    "ParallelTaskOnStorageHomogeneousProfile": {
        "storage_name": "pfs",
        "bytes_to_read": 0,
        "bytes_to_write": 0,
        "generation_strategy": EACH,
    },
}
_FROM_VERSION_4: Final[Mapping[str, str]] = {
    "delay": "DelayProfile",
    "parallel": "ParallelTaskProfile",
    "ptask": "ParallelTaskProfile",
    "parallel_homogeneous": "ParallelTaskHomogeneousProfile",
    "parallel_homogeneous_total": "ParallelTaskHomogeneousProfile",
    "composed": "SequentialCompositionProfile",
    "sequential_composition": "SequentialCompositionProfile",
    "parallel_homogeneous_pfs": "ParallelTaskOnStorageHomogeneousProfile",
    "data_staging": "ParallelTaskDataStagingBetweenStoragesProfile",
    "smpi": "TraceReplayProfile",
    "usage_trace": "TraceReplayProfile",
}
_TRACES: Final = {"smpi": "SMPI", "usage_trace": "FractionalComputation"}
_NOT_OFFERED: Final = {
    "ForkJoinCompositionProfile": "use SequentialCompositionProfile, or one job for each part",
    "TraceReplayProfile": "use ParallelTaskProfile, or a sequence of them",
}


def is_version_5(kind: object) -> bool:
    """True if a profile has a type of Batsim 5."""
    return kind in _WIRE_KEYS


def read_delay(name: str, raw: Raw) -> float:
    """Return the seconds of a delay profile of either version; ``ValueError`` if it is wrong."""
    seconds = read_seconds(raw["delay"], f"profile {name!r}: delay")
    if not seconds > 0:
        raise ValueError(f"profile {name!r} has a delay that is not positive")
    return seconds


def read_sequence(name: str, raw: Raw) -> tuple[int, list[str]]:
    """Return how often a sequence of either version repeats, and the names of its parts."""
    repeat, names = read_whole(raw.get("repeat", 1), f"profile {name!r}: repeat"), raw["seq"]
    if repeat < 1 or not isinstance(names, list) or not names:
        raise ValueError(f"profile {name!r} is a sequence without parts")
    return repeat, [str(part) for part in names]


def convert_profile(name: str, raw: Raw, find: Find) -> Work:
    """Return the work of a profile of Batsim 5; ``ValueError`` or ``KeyError`` if it is wrong."""
    kind = raw["type"]
    if kind in _NOT_OFFERED:
        what = f"profile {name!r} has the type {kind!r}, which is not offered"
        raise ValueError(f"{what}; {_NOT_OFFERED[kind]}")
    return _CONVERTERS[kind](name, raw, find)


def _delay(name: str, raw: Raw, find: Find) -> Work:
    return DelayWork(name=name, return_code=_code(raw), seconds=read_delay(name, raw))


def _task(name: str, raw: Raw, find: Find) -> Work:
    flops = tuple(_amount(name, value) for value in raw.get("cpu") or ())
    transfers = tuple(_amount(name, value) for value in raw.get("com") or ())
    if not flops:
        flops = (0.0,) * isqrt(len(transfers))
    if transfers and len(transfers) != len(flops) ** 2:
        raise ValueError(f"profile {name!r} has a matrix of another size than its cpu")
    return TaskWork(name=name, return_code=_code(raw), flops=flops, transfers=transfers)


def _uniform_task(name: str, raw: Raw, find: Find) -> Work:
    return UniformTaskWork(
        name=name,
        return_code=_code(raw),
        flops=_amount(name, raw["cpu"]),
        transfer=_amount(name, raw["com"]),
        total=_is_spread(name, raw),
        per_pair=True,
    )


def _sequence(name: str, raw: Raw, find: Find) -> Work:
    repeat, names = read_sequence(name, raw)
    parts = tuple(find(part) for part in names)
    return SequenceWork(name=name, return_code=_code(raw), parts=parts, repeat=repeat)


def _merge(name: str, raw: Raw, find: Find) -> Work:
    parts = tuple(find(str(part)) for part in raw["profile_ids"])
    if not parts:
        raise ValueError(f"profile {name!r} merges no profile")
    tasks = [part for part in parts if isinstance(part, TaskWork | UniformTaskWork)]
    if len(tasks) != len(parts):
        other = next(part.name for part in parts if part not in tasks)
        raise ValueError(f"profile {name!r} merges {other!r}, which is no parallel task on hosts")
    return MergedTaskWork(name=name, return_code=_code(raw), parts=tuple(tasks))


def _storage(name: str, raw: Raw, find: Find) -> Work:
    return StorageWork(
        name=name,
        return_code=_code(raw),
        read_bytes=_amount(name, raw.get("bytes_to_read", 0)),
        write_bytes=_amount(name, raw.get("bytes_to_write", 0)),
        storage=str(raw.get("storage", raw.get("host", "pfs"))),
        total=_is_spread(name, raw),
    )


def _staging(name: str, raw: Raw, find: Find) -> Work:
    return StagingWork(
        name=name,
        return_code=_code(raw),
        transfer=_amount(name, raw["nb_bytes"]),
        source=str(raw["from"]),
        target=str(raw["to"]),
    )


_CONVERTERS: Final[Mapping[str, Callable[[str, Raw, Find], Work]]] = {
    "DelayProfile": _delay,
    "ParallelTaskProfile": _task,
    "ParallelTaskHomogeneousProfile": _uniform_task,
    "SequentialCompositionProfile": _sequence,
    "ParallelTaskMergeCompositionProfile": _merge,
    "ParallelTaskOnStorageHomogeneousProfile": _storage,
    "ParallelTaskDataStagingBetweenStoragesProfile": _staging,
}


def _code(raw: Raw) -> int:
    return read_whole(raw.get("ret", 0), "ret")


def _amount(name: str, value: Any) -> float:
    return read_amount(value, f"profile {name!r}: an amount")


def _is_spread(name: str, raw: Raw) -> bool:
    strategy = raw.get("generation_strategy", EACH)
    if strategy not in {EACH, SPREAD}:
        raise ValueError(f"profile {name!r} has the strategy {strategy!r}; use {EACH} or {SPREAD}")
    return bool(strategy == SPREAD)


def profile_to_wire(workload: str, name: str, raw: Raw) -> dict[str, Any]:
    """Return the profile of a message; what the message cannot hold goes to ``extra_data``."""
    kind = raw.get("type")
    wire_kind = _FROM_VERSION_4.get(str(kind), kind)
    if not is_version_5(wire_kind):
        raise ValueError(f"profile {name!r} has the type {kind!r}, which version 5 lacks")
    keys = _WIRE_KEYS[str(wire_kind)]
    source = dict(raw)
    if kind in _TRACES:
        source |= {"trace_type": _TRACES[str(kind)], "filename": source.pop("trace")}
    elif kind == "parallel_homogeneous_total":
        source["generation_strategy"] = SPREAD
    body = {**_WIRE_DEFAULTS.get(str(wire_kind), {})}
    body |= {keys[key]: source.pop(key) for key in list(source) if key in keys}
    if "profile_ids" in body:
        body["profile_ids"] = [
            full_name(workload, profile_id) for profile_id in body["profile_ids"]
        ]
    wire = {"id": f"{workload}!{name}", "profile_type": wire_kind, "profile": body}
    extra = _pack(source, version_4=kind != wire_kind)
    return wire if extra is None else {**wire, "extra_data": extra}


def _pack(rest: dict[str, Any], *, version_4: bool) -> str | None:
    if not version_4:
        rest.pop("type", None)
        given = rest.pop("extra_data", None)
        if not rest and (given is None or isinstance(given, str)):
            return given
        rest |= {} if given is None else {"extra_data": given}
    return msgspec.json.encode(rest).decode()


def profile_from_wire(wire: Raw) -> tuple[str, str, dict[str, Any]]:
    """Return workload, name and profile of a message, as a workload file has it."""
    workload, mark, name = str(wire["id"]).partition("!")
    if not mark:
        raise ValueError(f"profile {wire['id']!r} names no workload")
    kind, body = str(wire["profile_type"]), dict(wire["profile"])
    if not is_version_5(kind):
        raise ValueError(f"profile {name!r} has the type {kind!r}, which is unknown")
    if "profile_ids" in body:
        body["profile_ids"] = [
            short_name(workload, profile_id) for profile_id in body["profile_ids"]
        ]
    keys = {wire_key: key for key, wire_key in _WIRE_KEYS[kind].items()}
    raw = {"type": kind} | {keys[key]: value for key, value in body.items() if key in keys}
    return workload, name, _unpack(raw, wire.get("extra_data"))


def _unpack(raw: dict[str, Any], text: str | None) -> dict[str, Any]:
    if not text:
        return raw
    try:
        rest = msgspec.json.decode(text)
    except msgspec.DecodeError:
        rest = None
    if not isinstance(rest, dict):
        return raw | {"extra_data": text}
    kind = rest.get("type")
    if kind not in _FROM_VERSION_4:
        return raw | {"extra_data": text}
    # The profile was one of version 4: its own type and keys come back.
    if kind in _TRACES:
        raw["trace"] = raw.pop("filename")
        del raw["trace_type"]
    if "generation_strategy" not in rest:
        raw.pop("generation_strategy", None)
    return raw | rest


def full_name(workload: str, name: str) -> str:
    """Return the name of a job or profile in messages."""
    return name if "!" in name else f"{workload}!{name}"


def short_name(workload: str, name: str) -> str:
    """Return the name inside a workload; names of other workloads stay as they are."""
    owner, mark, inner = name.partition("!")
    return inner if mark and owner == workload else name
