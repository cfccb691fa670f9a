"""The gate of jobs: no job starts that violates a constraint of its own or of a running job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.errors import InputProblem, InvalidInput, WorldError
from equipoise.sim.jobs.host_set import hosts_of, lowest_bits
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.rules.judge import JobJudge, Placement
from equipoise.sim.jobs.rules.search import EVALUATIONS_MAX, HostRequest, HostSearch, LaterStart
from equipoise.sim.jobs.work import Job

_HINTS_MAX = 3


class StartRefused(WorldError):
    """A policy starts a job where a constraint forbids it."""

    def __init__(self, job: Job, constraint: str, why: str) -> None:
        super().__init__(f"job {job.name} may not start: {why}", code="rule-violated")
        self.job = job
        self.constraint = constraint
        """The constraint, and the job that it belongs to."""


class JobGate:
    """The running jobs of a platform, and which further starts are allowed."""

    def __init__(self, platform: Platform, evaluations_max: int = EVALUATIONS_MAX) -> None:
        self.judge = JobJudge(platform)
        self.search = HostSearch(self.judge, evaluations_max)
        self.running: dict[Job, tuple[int, ...]] = {}
        self.all_hosts = (1 << len(platform.hosts)) - 1
        self._hints: dict[Job, list[int]] = {}
        """Per waiting job the sets that were found before; the first one is for no other job."""
        self._failed: dict[Job, tuple[int, int]] = {}
        self._version = 0

    def check_jobs(self, jobs: Iterable[Job], source: str) -> None:
        """Raise ``InvalidInput`` with every wrong constraint of the jobs."""
        found = [
            InputProblem(
                key=f"job {job.name}, {problem.key}", what=problem.what, cure=problem.cure,
                code=problem.code,
            )
            for job in jobs
            if job.constraints
            for problem in self.judge.problems(job)
        ]  # fmt: skip
        if found:
            raise InvalidInput(source, found)

    def rejection(self, job: Job) -> str:
        """Return the code of why a job can never start; empty if an empty platform can run it."""
        if not job.constraints:
            self._hints[job] = [lowest_bits(self.all_hosts, job.hosts_requested)]
            return ""
        before = self.search.exhausted
        found = self.search.find(HostRequest(job, self.all_hosts, {}))
        if found:
            self._hints[job] = [found]
            return ""
        return "search-exhausted" if self.search.exhausted > before else "constraint-unsatisfiable"

    def choose(
        self,
        job: Job,
        free: int,
        *,
        others: Placement | None = None,
        later: Sequence[LaterStart] = (),
    ) -> int:
        """Return the first set of free hosts that the job may start on, a bit each; 0 for none.

        ``others`` are the jobs that run then, by default those that run now. ``later`` are starts
        that must stay possible.
        """
        beside = self.running if others is None else others
        now = others is None and not later
        if now and self._failed.get(job) == (self._version, free):
            return 0
        hints = self._hints.get(job, [])
        found = self.search.find(HostRequest(job, free, beside, tuple(later), tuple(hints)))
        if found and found not in hints:
            self._hints[job] = [*hints[:1], *hints[1:][-_HINTS_MAX + 2 :], found]
        if not found and now:
            self._failed[job] = self._version, free
        return found

    def check_start(self, job: Job, executors: Sequence[int]) -> None:
        """Raise ``StartRefused`` if a constraint forbids the start."""
        refusal = self.judge.refusal(job, executors, self.running)
        if refusal is not None:
            owner = "" if refusal.job is job else f" of running job {refusal.job.name}"
            constraint = f"{refusal.constraint}{owner}"
            raise StartRefused(job, constraint, f"it violates {constraint}: {refusal.why}")

    def started(self, job: Job, executors: Sequence[int]) -> None:
        """A job that passed the gate runs."""
        self.running[job] = tuple(executors)
        self._version += 1
        self._hints.pop(job, None)
        self._failed.pop(job, None)

    def ended(self, job: Job) -> None:
        """A job has ended."""
        if self.running.pop(job, None) is not None:
            self._version += 1
            self.judge.forget(job)


def later_start(job: Job, hosts: int, others: Placement) -> LaterStart:
    """Return a promised start on a set of hosts, a bit each."""
    return LaterStart(job, hosts_of(hosts), others)
