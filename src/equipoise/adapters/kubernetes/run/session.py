"""One run: the cluster, its API, the schedulers and their clock, from the start to the figures."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import msgspec

from equipoise.adapters.batsim.summary import summary_values
from equipoise.adapters.kubernetes.api.resources import PODS
from equipoise.adapters.kubernetes.api.server import ApiServer, ServerOptions
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind, Object, ObjectStore
from equipoise.adapters.kubernetes.api.watch import WatchLimits
from equipoise.adapters.kubernetes.clock.build import PROGRAM, find_scheduler
from equipoise.adapters.kubernetes.cluster.simulated_cluster import (
    ClusterOptions,
    SimulatedCluster,
)
from equipoise.adapters.kubernetes.run.clocks import (
    LEAD_NS,
    RunClock,
    StockClock,
    TimeoutClock,
    TimeoutOptions,
    VirtualClock,
)
from equipoise.adapters.kubernetes.run.decisions import (
    DecisionLog,
    RecordedClock,
    RunHead,
    read_decisions,
)
from equipoise.adapters.kubernetes.run.driver import DeliveryOptions, KubernetesRun, RunParts
from equipoise.adapters.kubernetes.run.external import BatsimPodRunner
from equipoise.adapters.kubernetes.run.moment import NS_PER_MS, Moment
from equipoise.adapters.kubernetes.run.scheduler import (
    SchedulerCommand,
    SchedulerFolder,
    StartedScheduler,
    start_scheduler,
)
from equipoise.adapters.kubernetes.workload.pod_workload import PodWorkload
from equipoise.errors import InputProblem, InvalidInput, MissingExtra, WorldError
from equipoise.sim.jobs.record.journal import JobJournal
from equipoise.sim.jobs.runner import JobRecorder
from equipoise.sim.pods.job_records import PodJobRecords
from equipoise.sim.pods.node import PodNode
from equipoise.sim.pods.over_allocation import OverAllocation
from equipoise.sim.pods.pod_time import PodTime
from equipoise.sim.pods.spec import CPU

CLOCKS: Final = ("virtual", "stock", "timeout")
EPOCH_MS: Final = 1_700_000_000_137
"""The time of day at the start.

Timers of kube-scheduler fire at whole seconds; workloads in whole seconds must not tie with them.
"""
_NAMED_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesCase:
    """What runs, and how."""

    workload: PodWorkload
    schedulers: tuple[SchedulerCommand, ...] = ()
    clock: str = "virtual"
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    run: DeliveryOptions = field(default_factory=DeliveryOptions)
    timeout: TimeoutOptions = field(default_factory=TimeoutOptions)
    record: Path | None = None
    """Where decisions are written."""
    replay: Path | None = None
    """Decisions to repeat in place of schedulers."""
    runner: BatsimPodRunner | None = None
    """A simulation that runs the pods; ``workload`` is then its own."""


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that has no node at the end of the run."""

    name: str
    reason: str
    """What the scheduler wrote; empty if it wrote nothing."""


@dataclass(frozen=True, slots=True)
class KubernetesOutcome:
    """A run, complete or stopped."""

    scheduler: str
    clock: str
    notes: tuple[str, ...]
    """Why the result is approximate; empty if it is exact."""
    figures: dict[str, Any]
    """The columns of ``schedule.csv`` by name."""
    pending: tuple[PendingPod, ...]
    pending_count: int
    over_allocations: tuple[OverAllocation, ...]
    cpu_requested_pct: float
    """The share of the CPU of all nodes that pods requested, over the time of the run."""
    cpu_used_pct: float
    fragmentation_pct: float
    """The share of the CPU of all nodes that was free while pods waited for room."""
    bindings: int
    requests: int
    steps: int
    bindings_sha256: str
    """Of every binding with its time and node: equal runs have equal hashes."""
    wall_s: float
    binding_s: float
    """Of it, the time from the first binding to the last."""


class RunStopped(WorldError):
    """The run could not go on. The outputs are complete up to that moment."""

    def __init__(self, text: str, code: str, outcome: KubernetesOutcome) -> None:
        super().__init__(text, code=code)
        self.outcome = outcome


class Bindings:
    """The bindings of a run, by their instants."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self._hash = hashlib.sha256()
        self._at_ms = -1
        self._lines: list[str] = []
        """The bindings of the present instant."""
        self._first_s = 0.0
        self.count = 0
        self.wall_s = 0.0
        """The seconds on the wall from the first one to the last."""

    def observe(self, change: Change) -> None:
        """Add a binding."""
        if change.kind is not ChangeKind.MODIFIED or change.old is None:
            return
        node = change.object["spec"].get("nodeName")
        if node and not change.old["spec"].get("nodeName"):
            metadata = change.object["metadata"]
            if self._moment.now_ms != self._at_ms:
                self._close_instant()
                self._at_ms = self._moment.now_ms
            self._lines.append(f"{self._at_ms} {metadata['namespace']}/{metadata['name']} {node}\n")
            self.count += 1
            self._first_s = self._first_s or perf_counter()
            self.wall_s = perf_counter() - self._first_s

    @property
    def sha256(self) -> str:
        """The hash of all bindings."""
        self._close_instant()
        return self._hash.hexdigest()

    def _close_instant(self) -> None:
        # The requests of a scheduler that binds several pods at once race, so they have no order.
        self._hash.update("".join(sorted(self._lines)).encode())
        self._lines.clear()


def simulate_pods(
    case: KubernetesCase,
    *,
    recorder: JobRecorder | None = None,
    journal: JobJournal | None = None,
    progress: Callable[[int], None] = lambda now_ms: None,
) -> KubernetesOutcome:
    """Run a workload to its end; ``RunStopped`` names what ended it early."""
    if case.clock not in CLOCKS:
        what, cure = f"is {case.clock!r}", f"write one of {', '.join(CLOCKS)}"
        raise _problem("--clock", what, cure, "unknown-name")
    if bool(case.schedulers) == (case.replay is not None):
        what = "and --replay exclude each other" if case.schedulers else "is missing"
        raise _problem("--scheduler", what, "name a scheduler, or a record to replay")
    with ExitStack() as stack:
        session = _Session(case, recorder, journal, stack)
        return asyncio.run(session.run(progress))


class _Session:
    """The parts of one run; ``stack`` releases them."""

    def __init__(
        self,
        case: KubernetesCase,
        recorder: JobRecorder | None,
        journal: JobJournal | None,
        stack: ExitStack,
    ) -> None:
        self.case = case
        self._stack = stack
        self._moment = Moment(-LEAD_NS)
        time = PodTime()
        self._store = ObjectStore(time, epoch_ms=EPOCH_MS)
        self._records = PodJobRecords(
            case.workload.platform, time, recorder=recorder, journal=journal
        )
        self._cluster = SimulatedCluster(
            self._store, case.cluster, time=time, records=self._records
        )
        if case.runner is not None:
            case.runner.attach(self._cluster)
        # Watches that end by the wall clock would come back at another instant in each run.
        limits = WatchLimits(timeouts=False, bookmark_s=0)
        self._server = ApiServer(self._store, ServerOptions(watches=limits))
        self._bindings = Bindings(self._moment)
        self._store.subscribe(self._bindings.observe, PODS)
        self._log = stack.enter_context(DecisionLog(self._moment, case.record))
        self._names: list[str] = []
        self._run: KubernetesRun | None = None
        self._began_s = perf_counter()

    async def run(self, progress: Callable[[int], None]) -> KubernetesOutcome:
        """Run, and sum up what happened, also if the run is stopped."""
        failure: WorldError | None = None
        try:
            if self.case.replay is None:
                await self._run_schedulers(progress)
            else:
                await self._run_record(self.case.replay, progress)
        except WorldError as error:
            failure = error
        finally:
            await self._server.stop()
        self._records.finish()
        outcome = self._outcome()
        if failure is not None:
            raise RunStopped(str(failure), failure.code, outcome) from failure
        return outcome

    async def _run_schedulers(self, progress: Callable[[int], None]) -> None:
        await self._server.start()
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        clock = self._make_clock(folder)
        try:
            with ExitStack() as processes:
                started = self._start(SchedulerFolder(folder, self._server.url), clock, processes)
                run = self._make_run(clock, started, progress)
                self._server.on_request = self._log.receive
                # The pods that ask whether schedulers work are not of the workload.
                self._records.is_open = False
                await run.make_ready(_scheduler_names(self.case.schedulers))
                self._records.is_open = True
                self._begin_log(run)
                await run.follow()
        finally:
            clock.close()

    async def _run_record(self, path: Path, progress: Callable[[int], None]) -> None:
        head, decisions = read_decisions(path)
        if head.workload != _fingerprint(self.case.workload):
            what = "belongs to other nodes or pods"
            problem = InputProblem(
                key="", what=what, cure="give the workload and nodes of the record",
                code="stale-plan",
            )  # fmt: skip
            raise InvalidInput(str(path), [problem])
        self._names = list(head.schedulers)
        self._moment.advance(0)
        clock = RecordedClock(self._moment, self._server.app, decisions)
        run = self._make_run(clock, (), progress)
        clock.delivered = lambda: run.delivered
        await run.add_nodes()
        await run.follow()

    def _make_run(
        self,
        clock: RunClock,
        started: Sequence[StartedScheduler],
        progress: Callable[[int], None],
    ) -> KubernetesRun:
        parts = RunParts(
            self._moment, self._store, self._cluster, self.case.workload, clock, self.case.runner
        )
        options = self.case.run
        if isinstance(clock, TimeoutClock):
            options = replace(
                options,
                # Batsim sends all events of an instant together.
                one_by_one=False,
                # The clock chooses all steps, and the check for a deadlock ends the run.
                idle_step_s=0.0,
                give_up_s=inf,
                crash_timeout_s=self.case.timeout.crash_timeout_s,
            )
        elif isinstance(clock, RecordedClock):
            # A record has no timers that decide nothing: none of its instants may be left out.
            options = replace(options, idle_step_s=0.0, give_up_s=inf)
        self._run = KubernetesRun(parts, options, started, progress)
        if isinstance(clock, TimeoutClock):
            clock.pass_time = self._run.pass_time
        return self._run

    def _begin_log(self, run: KubernetesRun) -> None:
        self._log.begin(
            RunHead(
                workload=_fingerprint(self.case.workload),
                schedulers=tuple(self._names),
                clock=self.case.clock,
            )
        )
        self._log.delivered = lambda: run.delivered
        self._log.wrote = run.wrote

    def _make_clock(self, folder: Path) -> RunClock:
        epoch_ns = EPOCH_MS * NS_PER_MS
        if self.case.clock == "stock":
            return StockClock(self._moment, self._server)
        if self.case.clock == "virtual":
            return VirtualClock(self._moment, self._server, folder, epoch_ns)
        parts = (self._moment, self._server, folder, epoch_ns)
        return TimeoutClock(parts, self.case.timeout, lambda: self._bindings.count)

    def _start(
        self, folder: SchedulerFolder, clock: RunClock, processes: ExitStack
    ) -> list[StartedScheduler]:
        started = []
        for number, command in enumerate(self.case.schedulers):
            scheduler = start_scheduler(
                command, folder, clock.settings, clock.environment(number), _built(clock)
            )
            processes.enter_context(scheduler.process)
            clock.attach(scheduler)
            started.append(scheduler)
            self._names.append(scheduler.name)
        return started

    def _outcome(self) -> KubernetesOutcome:
        run = self._run
        pending = list(run.pods.pending.values()) if run is not None else []
        clock = run.parts.clock if run is not None else None
        served = _scheduler_names(self.case.schedulers)
        return KubernetesOutcome(
            scheduler=", ".join(self._names),
            clock=self.case.clock if clock is None else clock.name,
            notes=self._notes(),
            figures=summary_values(self._records),
            pending=tuple(_pending(pod, served) for pod in pending[:_NAMED_MAX]),
            pending_count=len(pending),
            over_allocations=tuple(self._cluster.over_allocations),
            cpu_requested_pct=self._share(lambda node: node.requested_cpu_milli_ms),
            cpu_used_pct=self._share(lambda node: node.cpu_milli_ms),
            fragmentation_pct=self._part(0 if run is None else run.stranded_cpu_milli_ms),
            bindings=self._bindings.count,
            requests=self._server.requests_total,
            steps=0 if run is None else run.steps,
            bindings_sha256=self._bindings.sha256,
            wall_s=perf_counter() - self._began_s,
            binding_s=self._bindings.wall_s,
        )

    def _notes(self) -> tuple[str, ...]:
        clock = self._run.parts.clock if self._run is not None else None
        notes = () if clock is None else tuple(clock.notes)
        if self.case.clock == VirtualClock.name and self.case.run.idle_step_s:
            notes += ("timers are left out, so pods that had to wait may start in another order",)
        return notes

    def _share(self, amount: Callable[[PodNode], int]) -> float:
        """Return an integral over CPU and time as a share of what there was."""
        nodes = self._cluster.pods.nodes.values()
        for node in nodes:
            node.count_time(self._cluster.now_ms)
        return self._part(sum(map(amount, nodes)))

    def _part(self, cpu_milli_ms: int) -> float:
        """Return an amount of CPU over time as a share of what there was."""
        nodes = self._cluster.pods.nodes.values()
        there = sum(node.allocatable.get(CPU, 0) for node in nodes) * self._cluster.now_ms
        return round(100 * cpu_milli_ms / there, 3) if there else 0.0


def _built(clock: RunClock) -> Path | None:
    """Return the kube-scheduler of the cache, which has our clock."""
    if clock.name == "stock" and shutil.which(PROGRAM) is not None:
        return None
    try:
        return find_scheduler()
    except MissingExtra:  # no Go: any scheduler that is named by its path still runs
        return None


def _pending(pod: Object, served: Sequence[str]) -> PendingPod:
    """Return a pod that waits with the reason of its scheduler, if it has one."""
    metadata, name = pod["metadata"], pod["spec"].get("schedulerName", "")
    messages = [] if not served or name in served else [f"no scheduler has the name {name}"]
    messages += [
        str(condition.get("message", ""))
        for condition in pod.get("status", {}).get("conditions", ())
        if condition.get("type") == "PodScheduled"
    ]
    return PendingPod(f"{metadata['namespace']}/{metadata['name']}", (messages or [""])[0])


def _scheduler_names(schedulers: Sequence[SchedulerCommand]) -> list[str]:
    return list(dict.fromkeys(name for command in schedulers for name in command.names))


def _fingerprint(workload: PodWorkload) -> str:
    content = msgspec.json.encode((workload.nodes, workload.arrivals), order="sorted")
    return hashlib.sha256(content).hexdigest()


def _problem(key: str, what: str, cure: str, code: str = "invalid-value") -> InvalidInput:
    return InvalidInput("kube", [InputProblem(key=key, what=what, cure=cure, code=code)])
