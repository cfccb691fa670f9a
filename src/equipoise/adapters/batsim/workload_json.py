"""Reads workload files of Batsim in JSON: jobs, and the profiles that say what they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.work import (
    UNLIMITED,
    DelayWork,
    Job,
    SequenceWork,
    StagingWork,
    StorageWork,
    TaskWork,
    UniformTaskWork,
    Work,
    parts_of,
)


@dataclass(frozen=True, slots=True)
class Workload:
    """The jobs of a file in the order of submission; equal times are ordered by the id as text."""

    jobs: list[Job]
    hosts: int | None
    """The size of the machine that the jobs were made for, if the file states it."""
    profiles: WorkProfiles


def read_workload(path: Path, name: str = "w0") -> Workload:
    """Read a workload; every error names the job."""
    try:
        raw = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        what = f"cannot be read: {(error.strerror or '').lower()}"
        raise _problem(path, "", what, "name a file") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _problem(path, "", f"is no JSON: {error}", "write a workload") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("jobs"), list):
        raise _problem(path, "jobs", "has no list of jobs", "write a Batsim workload")
    profiles = WorkProfiles(raw.get("profiles") or {})
    jobs = []
    for index, entry in enumerate(raw["jobs"]):
        try:
            jobs.append(make_job(entry, name, profiles))
        except (KeyError, TypeError, ValueError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise _problem(path, f"jobs[{index}]", what, "correct the job") from None
    jobs.sort(key=lambda job: (job.submit_s, job.name))
    hosts = raw.get("nb_res")
    return Workload(jobs, hosts if isinstance(hosts, int) and hosts > 0 else None, profiles)


def _problem(path: Path, key: str, what: str, cure: str) -> InvalidInput:
    return InvalidInput(str(path), [InputProblem(key=key, what=what, cure=cure)])


def make_job(entry: Mapping[str, Any], workload: str, profiles: WorkProfiles) -> Job:
    """Return the job of an entry; ``KeyError``, ``TypeError`` or ``ValueError`` if it is wrong."""
    walltime_s = float(entry.get("walltime", -1))
    hosts = int(entry["res"])
    if hosts < 1:
        raise ValueError("requests no host")
    work = profiles.find(str(entry["profile"]))
    sizes = {len(part.flops) for part in parts_of(work) if isinstance(part, TaskWork)}
    if sizes - {hosts}:
        raise ValueError(f"requests {hosts} hosts, but its profile has {max(sizes - {hosts})}")
    return Job(
        workload=workload,
        name=str(entry["id"]),
        submit_s=float(entry["subtime"]),
        hosts_requested=hosts,
        work=work,
        walltime_s=walltime_s if walltime_s > 0 else UNLIMITED,
        extra=dict(entry),
    )


class WorkProfiles:
    """The profiles of a workload, converted when a job or a sequence names them."""

    def __init__(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        self.raw = dict(raw)
        """The profiles as the file has them."""
        self._works: dict[str, Work] = {}

    def add(self, name: str, raw: Mapping[str, Any]) -> None:
        """Add a profile that a scheduler registers; ``ValueError`` if the name is taken."""
        if name in self.raw:
            raise ValueError(f"profile {name!r} exists already")
        self.raw[name] = raw

    def find(self, name: str, outer: tuple[str, ...] = ()) -> Work:
        """Return the work of a profile."""
        if name in outer:
            raise ValueError(f"profile {name!r} contains itself")
        if name not in self._works:
            if name not in self.raw:
                raise ValueError(f"no profile has the name {name!r}")
            self._works[name] = self._convert(name, self.raw[name], outer)
        return self._works[name]

    def _convert(self, name: str, raw: Mapping[str, Any], outer: tuple[str, ...]) -> Work:
        code = int(raw.get("ret", 0))
        match raw.get("type"):
            case "delay":
                seconds = float(raw["delay"])
                if not seconds > 0:
                    raise ValueError(f"profile {name!r} has a delay that is not positive")
                return DelayWork(name=name, return_code=code, seconds=seconds)
            case "parallel" | "ptask":
                flops = tuple(map(float, raw.get("cpu") or ()))
                transfers = tuple(map(float, raw.get("com") or ()))
                if transfers and len(transfers) != len(flops) ** 2:
                    raise ValueError(f"profile {name!r} has a matrix of another size than its cpu")
                return TaskWork(name=name, return_code=code, flops=flops, transfers=transfers)
            case ("parallel_homogeneous" | "parallel_homogeneous_total") as kind:
                return UniformTaskWork(
                    name=name,
                    return_code=code,
                    flops=float(raw.get("cpu", 0)),
                    transfer=float(raw.get("com", 0)),
                    total=kind.endswith("total"),
                )
            case "composed" | "sequential_composition":
                inside = (*outer, name)
                parts = tuple(self.find(str(part), inside) for part in raw["seq"])
                repeat = int(raw.get("repeat", 1))
                return SequenceWork(name=name, return_code=code, parts=parts, repeat=repeat)
            case "parallel_homogeneous_pfs":
                return StorageWork(
                    name=name,
                    return_code=code,
                    read_bytes=float(raw.get("bytes_to_read", 0)),
                    write_bytes=float(raw.get("bytes_to_write", 0)),
                    storage=str(raw.get("storage", "pfs")),
                )
            case "data_staging":
                return StagingWork(
                    name=name,
                    return_code=code,
                    transfer=float(raw["nb_bytes"]),
                    source=str(raw["from"]),
                    target=str(raw["to"]),
                )
        raise ValueError(f"profile {name!r} has the type {raw.get('type')!r}, which is not offered")
