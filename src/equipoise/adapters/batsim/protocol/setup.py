"""Builds a simulation from the files and options that Batsim's command line names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from equipoise.adapters.batsim.platform_xml import read_platform
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.simulation import BatsimSimulation
from equipoise.adapters.batsim.workload_json import read_workload
from equipoise.errors import InputProblem, InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class BatsimSetup:
    """The inputs of a run."""

    platform: Path
    workloads: Sequence[Path] = ()
    events: Sequence[Path] = ()
    export: str | None = None
    """The prefix of output files; None to write none."""
    master: str = "master_host"
    roles: Sequence[str] = ()
    """Roles to add: ``host1,host2:role``."""
    hosts_max: int | None = None
    hosts_of_workload: bool = False
    """Use no more hosts than the largest machine that a workload states."""
    host_states: bool = True
    """Write ``machine_states.csv``."""
    options: ProtocolOptions = field(default_factory=ProtocolOptions)

    def build(self) -> BatsimSimulation:
        """Read the files; ``InvalidInput`` names what is wrong."""
        platform = read_platform(self.platform, master=self.master, roles=self.roles)
        workloads = {
            f"w{number}": read_workload(path, f"w{number}")
            for number, path in enumerate(self.workloads)
        }
        count = self.hosts_max or len(platform.hosts)
        if self.hosts_of_workload:
            stated = [each.hosts for each in workloads.values() if each.hosts]
            count = min(count, max(stated, default=count))
        if count < len(platform.hosts):
            platform = replace(platform, hosts=platform.hosts[:count])
        names = {f"w{number}": str(path) for number, path in enumerate(self.workloads)}
        events = tuple(tuple(read_external_events(path)) for path in self.events)
        options = replace(self.options, workload_files=names, external_events=events)
        return BatsimSimulation(
            platform, workloads, options, self.export, host_states=self.host_states
        )


def read_external_events(path: Path) -> list[dict[str, Any]]:
    """Read events, one JSON object per line, and return them in the order of their times."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        what = f"cannot be read: {(error.strerror or '').lower()}"
        problem = InputProblem(key="", what=what, cure="name a file")
        raise InvalidInput(str(path), [problem]) from None
    events = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            event = msgspec.json.decode(line)
            float(event["timestamp"])
            str(event["type"])
        except (msgspec.DecodeError, KeyError, TypeError, ValueError):
            problem = InputProblem(
                key="",
                what="is no event",
                cure="write a JSON object with timestamp and type",
                line=number,
            )
            raise InvalidInput(str(path), [problem]) from None
        events.append(event)
    events.sort(key=lambda event: float(event["timestamp"]))
    return events
