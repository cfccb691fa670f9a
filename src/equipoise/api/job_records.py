"""What a run of jobs writes: result files of Batsim, a journal, a history, a folder with a page."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.sim.jobs.history import JobHistory
from equipoise.sim.jobs.record.journal import JobJournal
from equipoise.sim.jobs.work import Job

if TYPE_CHECKING:
    from equipoise.sim.jobs.platform import Platform
    from equipoise.sim.jobs.runner import JobRecorder, JobRun
    from equipoise.store import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """What a run is to write, and where."""

    export: str | Path | None = None
    layout: int = 4
    out: str | Path | None = None
    journal: Journal | None = None
    keep_jobs: bool = True


class JobRecords:
    """The open files of one run; ``files`` closes them."""

    def __init__(self, options: RecordOptions, platform: Platform, files: ExitStack) -> None:
        from equipoise.adapters.batsim.outputs import BatsimOutputs

        out = options.out
        self._options = options
        self._platform = platform
        self._files = files
        # A report shows the power over time, so it needs the samples of energy, too.
        samples = options.keep_jobs or (out is not None and platform.measures_power)
        self._history = JobHistory(keep_jobs=options.keep_jobs) if samples else None
        self._journal = _open_folder(out, options.journal, files)
        self._prefixes = [] if options.export is None else [str(options.export)]
        self._prefixes += [] if out is None else [f"{out}/"]
        self._outputs = [
            files.enter_context(BatsimOutputs(prefix, layout=options.layout))
            for prefix in self._prefixes
        ]

    @property
    def history(self) -> JobHistory | None:
        """The jobs and the hosts over time, if the run keeps them."""
        return self._history if self._options.keep_jobs else None

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names of the hosts, in the order of their numbers."""
        return tuple(host.name for host in self._platform.hosts)

    def close(self) -> None:
        """Close the files before a page is made of them; the journal stays open."""
        for output in self._outputs:
            output.close()

    @property
    def sha256(self) -> str:
        """The hash of the journal of a run with a folder."""
        if self._journal is None or self._options.out is None:
            return ""
        return self._journal.sha256()

    def begin_journal(self, source: str, policy: str) -> JobJournal | None:
        """Write the head of the journal; return what receives the events of the run."""
        if self._journal is None:
            return None
        journal = JobJournal(self._journal)
        journal.begin(source, policy, self._platform)
        self._files.callback(journal.flush)
        return journal

    def recorder(self) -> JobRecorder | None:
        """Return what receives the rows of jobs and hosts."""
        recorders: list[JobRecorder] = [] if self._history is None else [self._history]
        recorders += self._outputs
        if len(recorders) > 1:
            return _Recorders(recorders)
        return recorders[0] if recorders else None

    def attach(self, run: JobRun) -> None:
        """Record the energy of a run that is about to begin."""
        from equipoise.adapters.batsim.outputs import file_stem
        from equipoise.adapters.batsim.protocol.traces import PowerTraces

        if self._history is not None:
            self._history.hosts = run.engine.hosts
        if self._prefixes and self._platform.measures_power:
            stem = file_stem(self._prefixes[0], self._options.layout)
            traces = PowerTraces(stem, run.engine.hosts)
            self._files.callback(traces.close)
            run.power = traces

    def finish(self, values: dict[str, Any], wall_s: float) -> None:
        """Write the summary, and the energy over time beside a report."""
        from equipoise.adapters.batsim.summary import schedule_row

        for output in self._outputs:
            output.write_schedule(schedule_row(values, wall_s))
        if self._options.out is not None and self._history is not None:
            _write_energy(Path(self._options.out) / "energy.csv", self._history)


def _open_folder(
    out: str | Path | None, journal: Journal | None, files: ExitStack
) -> Journal | None:
    """Make the folder of a run, and return the journal of the run if it has one."""
    if out is None:
        return journal
    from equipoise.report.jobs import prepare_folder
    from equipoise.store import open_journal

    prepare_folder(Path(out))
    if journal is not None:
        return journal
    return files.enter_context(open_journal(str(Path(out) / "journal.jsonl")))


def _write_energy(path: Path, history: JobHistory) -> None:
    """Write the samples of the energy of all hosts, in seconds and joules."""
    if not history.energy_times:
        return
    rows = zip(history.energy_times, history.energy_j, strict=True)
    lines = "".join(f"{at_s:.6f},{energy_j:.6f}\n" for at_s, energy_j in rows)
    path.write_text("time,energy\n" + lines, encoding="utf-8")


class _Recorders:
    """Passes rows to several recorders."""

    def __init__(self, recorders: list[JobRecorder]) -> None:
        self._recorders = recorders

    def write_job(self, job: Job) -> None:
        """A job has ended or was rejected."""
        for recorder in self._recorders:
            recorder.write_job(job)

    def write_hosts(self, now_s: float, counts: list[int]) -> None:
        """Hosts have changed their state."""
        for recorder in self._recorders:
            recorder.write_hosts(now_s, counts)
