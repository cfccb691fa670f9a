"""Reads workload files of Batsim in JSON: jobs, and the profiles that say what they do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from equipoise.adapters.batsim.mpi_trace import read_trace
from equipoise.adapters.batsim.quantities import (
    read_amount,
    read_seconds,
    read_whole,
)
from equipoise.adapters.batsim.v5.profiles import (
    convert_profile,
    is_version_5,
    read_delay,
    read_sequence,
)
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files.json_reader import read_json
from equipoise.sim.jobs.traces.run import TraceWork
from equipoise.sim.jobs.work import (
    UNLIMITED,
    DelayWork,
    Job,
    JobConstraint,
    ReceiveWork,
    SendWork,
    SequenceWork,
    StagingWork,
    StorageWork,
    TaskWork,
    UniformTaskWork,
    Work,
    parts_of,
)

_SEND_S: Final = 1e-7
_POLL_S: Final = 0.005
"""How long a job waits after a message, and between two looks for one, by default (Batsim)."""
_NESTING_MAX: Final = 100
"""Sequences inside sequences; a file with more is a mistake or an attack."""
_NO_WALLTIME: Final = -1
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Workload:
    """The jobs of a file in the order of submission; equal times are ordered by the id as text."""

    jobs: list[Job]
    hosts: int | None
    """The size of the machine that the jobs were made for, if the file states it."""
    profiles: WorkProfiles


def read_workload(path: Path, name: str = "w0") -> Workload:
    """Read a workload; every error names the job."""
    raw = _read_object(path)
    if not isinstance(raw, dict) or not isinstance(raw.get("jobs"), list):
        raise _problem(path, "jobs", "has no list of jobs", "write a Batsim workload")
    hosts = raw.get("nb_res")
    if "nb_res" in raw and (type(hosts) is not int or hosts < 1):
        raise _problem(path, "nb_res", f"is {hosts!r:.40}", "write the number of hosts, from 1 on")
    if not isinstance(raw.get("profiles", {}), dict):
        raise _problem(path, "profiles", "is no object", "write an object with a key for each")
    profiles = WorkProfiles(raw.get("profiles", {}), path.parent)
    specification = str(raw.get("specification") or "")
    jobs: list[Job] = []
    names: set[str] = set()
    for index, entry in enumerate(raw["jobs"]):
        try:
            job = make_job(entry, name, profiles, specification)
            if job.submit_s < 0:
                raise ValueError(f"subtime is {job.submit_s:g}, below 0")
            if job.name in names:
                raise ValueError(f"has the id {job.name!r}, as another job")
        except (KeyError, TypeError, ValueError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise _problem(path, f"jobs[{index}]", what, "correct the job") from None
        names.add(job.name)
        jobs.append(job)
    jobs.sort(key=lambda job: (job.submit_s, job.name))
    return Workload(jobs, hosts, profiles)


def _read_object(path: Path) -> Any:
    try:
        content = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {(error.strerror or '').lower()}"
        raise _problem(path, "", what, "name a file") from None
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if content.startswith(_GZIP):
            raise _problem(path, "", "is compressed", "unpack it: gunzip") from None
        with suppress(UnicodeDecodeError):
            # The reader of inventories is slower, and knows the line.
            read_json(content.decode(), str(path))
        raise _problem(path, "", f"is no JSON: {error}", "write a workload") from None


def _problem(path: Path, key: str, what: str, cure: str) -> InvalidInput:
    return InvalidInput(str(path), [InputProblem(key=key, what=what, cure=cure)])


def make_job(
    entry: Mapping[str, Any], workload: str, profiles: WorkProfiles, specification: str = ""
) -> Job:
    """Return the job of an entry; ``KeyError``, ``TypeError`` or ``ValueError`` if it is wrong.

    Its constraints may be declared in the text of a ``specification``.
    """
    if not isinstance(entry, Mapping):
        raise TypeError("is no object")
    name = entry["id"]
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise ValueError(f"has the id {name!r:.40}; it is a text or a whole number")
    walltime_s = read_seconds(entry.get("walltime", _NO_WALLTIME), "walltime")
    if walltime_s <= 0 and walltime_s != _NO_WALLTIME:
        raise ValueError(f"has a walltime of {walltime_s:g}; it is positive, or -1 for none")
    hosts = read_whole(entry["res"], "res")
    if hosts < 1:
        raise ValueError("requests no host")
    work = profiles.find(str(entry["profile"]))
    sizes = {len(part.flops) for part in parts_of(work) if isinstance(part, TaskWork)}
    sizes |= {len(part.ranks) for part in parts_of(work) if isinstance(part, TraceWork)}
    if "smpi_ranks_to_hosts_mapping" in entry:
        raise ValueError("smpi_ranks_to_hosts_mapping is not offered; send a mapping")
    if sizes - {hosts}:
        raise ValueError(f"requests {hosts} hosts, but its profile has {max(sizes - {hosts})}")
    return Job(
        workload=workload,
        name=str(name),
        submit_s=read_seconds(entry["subtime"], "subtime"),
        hosts_requested=hosts,
        work=work,
        walltime_s=walltime_s if walltime_s > 0 else UNLIMITED,
        extra=dict(entry),
        constraints=_constraints(entry["constraints"], specification)
        if "constraints" in entry
        else (),
    )


def _constraints(raw: object, specification: str) -> tuple[JobConstraint, ...]:
    """Return the constraints of a job: each a name, or a name with arguments."""
    if not isinstance(raw, list):
        raise TypeError("constraints is not a list")
    found = []
    for entry in raw:
        given = {"constraint": entry} if isinstance(entry, str) else entry
        if not isinstance(given, dict) or not isinstance(given.get("constraint"), str):
            raise TypeError("a constraint is a name, or an object with the key constraint")
        unknown = given.keys() - {"constraint", "arguments"}
        if unknown:
            raise ValueError(f"a constraint has no key {min(unknown)!r}")
        arguments = given.get("arguments", {})
        if not isinstance(arguments, dict):
            raise TypeError("the arguments of a constraint are an object")
        found.append(JobConstraint(given["constraint"], arguments, specification))
    return tuple(found)


class WorkProfiles:
    """The profiles of a workload, converted when a job or a sequence names them."""

    def __init__(self, raw: Mapping[str, Mapping[str, Any]], folder: Path | None = None) -> None:
        self._folder = folder
        self.raw = dict(raw)
        """The profiles as the file has them."""
        self._works: dict[str, Work] = {}

    def add(self, name: str, raw: Mapping[str, Any]) -> None:
        """Add a profile that a scheduler registers; ``ValueError`` if the name is taken."""
        if name in self.raw:
            raise ValueError(f"profile {name!r} exists already")
        self.raw[name] = raw

    def adopt(self, name: str, other: WorkProfiles, inner: str) -> None:
        """Add a profile of another workload under a new name."""
        self._works[name] = replace(other.find(inner), name=name)
        self.raw[name] = other.raw[inner]

    def find(self, name: str, outer: tuple[str, ...] = ()) -> Work:
        """Return the work of a profile."""
        if name in outer:
            raise ValueError(f"profile {name!r} contains itself")
        if len(outer) > _NESTING_MAX:
            raise ValueError(f"profile {outer[0]!r} has more than {_NESTING_MAX} levels")
        if name not in self._works:
            if name not in self.raw:
                raise ValueError(f"no profile has the name {name!r}")
            raw = self.raw[name]
            if not isinstance(raw, Mapping) or not isinstance(raw.get("type"), str):
                raise TypeError(f"profile {name!r} is no object with a type")
            self._works[name] = self._convert(name, raw, outer)
        return self._works[name]

    def _convert(self, name: str, raw: Mapping[str, Any], outer: tuple[str, ...]) -> Work:
        if is_version_5(raw.get("type")):
            return convert_profile(name, raw, lambda part: self.find(part, (*outer, name)))
        code = read_whole(raw.get("ret", 0), f"profile {name!r}: ret")
        if raw.get("type") == "send":
            seconds = _positive(name, "sleeptime", raw.get("sleeptime", _SEND_S))
            return SendWork(name=name, return_code=code, message=raw["msg"], seconds=seconds)
        if raw.get("type") == "recv":
            return self._receive(name, raw, (*outer, name))
        if raw.get("type") == "smpi":
            if self._folder is None:
                raise ValueError(
                    f"profile {name!r} has a trace, which only a workload file may name"
                )
            ranks = read_trace(self._folder / str(raw["trace"]))
            return TraceWork(name=name, return_code=code, ranks=ranks)
        return self._convert_task(name, raw, outer)

    def _convert_task(self, name: str, raw: Mapping[str, Any], outer: tuple[str, ...]) -> Work:
        label = f"profile {name!r}:"
        code = read_whole(raw.get("ret", 0), f"{label} ret")
        match raw.get("type"):
            case "delay":
                return DelayWork(name=name, return_code=code, seconds=read_delay(name, raw))
            case "parallel" | "ptask":
                flops = tuple(
                    read_amount(amount, f"{label} cpu") for amount in raw.get("cpu") or ()
                )
                transfers = tuple(
                    read_amount(amount, f"{label} com") for amount in raw.get("com") or ()
                )
                if transfers and len(transfers) != len(flops) ** 2:
                    raise ValueError(f"profile {name!r} has a matrix of another size than its cpu")
                return TaskWork(name=name, return_code=code, flops=flops, transfers=transfers)
            case ("parallel_homogeneous" | "parallel_homogeneous_total") as kind:
                return UniformTaskWork(
                    name=name,
                    return_code=code,
                    flops=read_amount(raw.get("cpu", 0), f"{label} cpu"),
                    transfer=read_amount(raw.get("com", 0), f"{label} com"),
                    total=kind.endswith("total"),
                )
            case "composed" | "sequential_composition":
                repeat, names = read_sequence(name, raw)
                parts = tuple(self.find(part, (*outer, name)) for part in names)
                return SequenceWork(name=name, return_code=code, parts=parts, repeat=repeat)
            case "parallel_homogeneous_pfs":
                return StorageWork(
                    name=name,
                    return_code=code,
                    read_bytes=read_amount(raw.get("bytes_to_read", 0), f"{label} bytes_to_read"),
                    write_bytes=read_amount(
                        raw.get("bytes_to_write", 0), f"{label} bytes_to_write"
                    ),
                    storage=str(raw.get("storage", "pfs")),
                )
            case "data_staging":
                return StagingWork(
                    name=name,
                    return_code=code,
                    transfer=read_amount(raw["nb_bytes"], f"{label} nb_bytes"),
                    source=str(raw["from"]),
                    target=str(raw["to"]),
                )
        raise ValueError(f"profile {name!r} has the type {raw.get('type')!r}, which is not offered")

    def _receive(self, name: str, raw: Mapping[str, Any], inside: tuple[str, ...]) -> Work:
        pattern = str(raw.get("regex", ".*"))
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"profile {name!r} has a wrong regex: {error}") from None
        parts = [
            self.find(str(raw[key]), inside) if raw.get(key) else None
            for key in ("success", "failure", "timeout")
        ]
        return ReceiveWork(
            name=name,
            return_code=int(raw.get("ret", 0)),
            pattern=pattern,
            matching=parts[0],
            other=parts[1],
            without_message=parts[2],
            poll_s=_positive(name, "polltime", raw.get("polltime", _POLL_S)),
        )


def _positive(name: str, key: str, value: Any) -> float:
    seconds = float(value)
    if not 0 < seconds < UNLIMITED:
        raise ValueError(f"profile {name!r} has a {key} that is not positive")
    return seconds
