"""Builds a simulation from the files and options that Batsim's command line names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from equipoise.adapters.batsim.host_events import read_availability, read_external_events
from equipoise.adapters.batsim.platform_xml import read_platform
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.simulation import BatsimSimulation
from equipoise.adapters.batsim.workload_json import Workload, read_workload
from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.record.journal import JobJournal
from equipoise.sim.jobs.work import StagingWork, StorageWork, parts_of
from equipoise.store import Journal


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
    journal: Journal | None = None
    """Receives every event of the run."""
    options: ProtocolOptions = field(default_factory=ProtocolOptions)

    def read(self) -> BatsimInputs:
        """Read the files; ``InvalidInput`` names what is wrong."""
        platform = read_platform(self.platform, master=self.master, roles=self.roles)
        if platform.master is None:
            what = f"has no host with the name {self.master!r} or the role master"
            problem = InputProblem(key="", what=what, cure="add it, or name one: --master-host")
            raise InvalidInput(str(self.platform), [problem])
        workloads = {
            f"w{number}": read_workload(path, f"w{number}")
            for number, path in enumerate(self.workloads)
        }
        count = self.hosts_max or len(platform.hosts)
        if self.hosts_of_workload:
            stated = [workload.hosts for workload in workloads.values() if workload.hosts]
            count = min(count, max(stated, default=count))
        if count < len(platform.hosts):
            platform = replace(platform, hosts=platform.hosts[:count])
        for path, workload in zip(self.workloads, workloads.values(), strict=True):
            _check_storages(path, workload, platform)
        for path in self.events:
            read_availability(path, len(platform.hosts))
        events = tuple(tuple(read_external_events(path)) for path in self.events)
        return BatsimInputs(self, platform, workloads, events)

    def build(self) -> BatsimSimulation:
        """Read the files and return the simulation."""
        return self.read().build(self.options)


@dataclass(frozen=True, slots=True)
class BatsimInputs:
    """The content of the files of a run."""

    setup: BatsimSetup
    platform: Platform
    workloads: Mapping[str, Workload]
    events: tuple[tuple[dict[str, Any], ...], ...]

    def build(self, options: ProtocolOptions) -> BatsimSimulation:
        """Return the simulation; it opens the output files. A second one needs new inputs."""
        paths = self.setup.workloads
        names = {f"w{number}": str(path) for number, path in enumerate(paths)}
        simulation = BatsimSimulation(
            self.platform,
            self.workloads,
            replace(options, workload_files=names, external_events=self.events),
            self.setup.export,
            host_states=self.setup.host_states,
        )
        if self.setup.journal is not None:
            simulation.journal = JobJournal(self.setup.journal)
            simulation.journal.begin(", ".join(names.values()), "", self.platform)
        return simulation


def _check_storages(path: Path, workload: Workload, platform: Platform) -> None:
    """Reject jobs that use a storage host if the platform has none."""
    if platform.storages:
        return
    for job in workload.jobs:
        if any(isinstance(part, StorageWork | StagingWork) for part in parts_of(job.work)):
            what = "uses a storage host, and the platform has none"
            cure = "add a host with the role storage"
            problem = InputProblem(key=f"job {job.name}", what=what, cure=cure)
            raise InvalidInput(str(path), [problem])
