"""A Batsim scheduler as the target of a campaign: its command is started for each trial."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from equipoise.adapters.batsim.protocol.codec import JsonCodec
from equipoise.adapters.batsim.protocol.setup import BatsimInputs, BatsimSetup
from equipoise.adapters.batsim.transport.connection import AnswerLimits
from equipoise.adapters.batsim.transport.driver import RunFailed
from equipoise.adapters.batsim.transport.launch import SchedulerOptions, run_scheduler
from equipoise.adapters.batsim.workload_json import Workload, WorkProfiles, make_job
from equipoise.fuzz.jobs.trial import JobTrial
from equipoise.sim.jobs.work import Job

BATSIM_TARGET: Final = "batsim:"
"""How the name of such a target begins; the command of the scheduler follows."""
_LIMITS: Final = AnswerLimits(first_s=30.0, each_s=30.0)


class RefusedRequest(Exception):
    """The scheduler sent a request that the protocol or the gate refuses."""


@dataclass(frozen=True, slots=True)
class BatsimCommand:
    """A scheduler that speaks the Batsim protocol."""

    command: str
    promise: str = ""

    def run(self, trial: JobTrial) -> list[Job]:
        """Run a trial; a job that the scheduler never starts has no hosts in the result."""
        workload = _workload(trial)
        setup = BatsimSetup(platform=Path("trial"))
        inputs = BatsimInputs(setup, trial.platform(), {"w0": workload}, ())
        options = SchedulerOptions(command=self.command, limits=_LIMITS)
        try:
            run_scheduler(inputs, JsonCodec(), options)
        except RunFailed as error:
            if error.code == "scheduler-protocol":
                raise RefusedRequest(str(error)) from error
            if error.code != "scheduler-deadlock":
                raise
        order = {job.id: number for number, job in enumerate(trial.jobs)}
        return sorted(workload.jobs, key=lambda job: order[job.name])


def _workload(trial: JobTrial) -> Workload:
    profiles = WorkProfiles(
        {f"delay{job.seconds}": {"type": "delay", "delay": job.seconds} for job in trial.jobs}
    )
    entries: list[dict[str, Any]] = [
        {
            "id": job.id,
            "subtime": job.submit_s,
            "res": job.hosts,
            "profile": f"delay{job.seconds}",
            **({} if job.walltime_s is None else {"walltime": job.walltime_s}),
            **(
                {
                    "constraints": [
                        {
                            "constraint": constraint.constraint,
                            "arguments": dict(constraint.arguments),
                        }
                        for constraint in job.constraints
                    ]
                }
                if job.constraints
                else {}
            ),
        }
        for job in trial.jobs
    ]
    jobs = [make_job(entry, "w0", profiles) for entry in entries]
    return Workload(jobs, len(trial.racks), profiles)
