"""The log of each host of an upgrade by Ansible."""

from __future__ import annotations

from pathlib import Path

from equipoise.adapters.ansible.host_log import HostLogs
from equipoise.adapters.ansible.job import (
    HostConnection,
    JobOutcome,
    JobResult,
    PlaybookJob,
    RunnerEvent,
    RunnerEventKind,
)

JOB = PlaybookJob(host="rack/1", action="apply nova", playbook=Path("do.yaml"))
LINK = HostConnection(host="rack/1", address="a", port=22, secrets={"token": "open sesame"})


def test_a_log_has_each_step_its_result_and_no_secret(tmp_path: Path) -> None:
    logs = HostLogs(tmp_path / "logs", {"rack/1": LINK})
    for event in (
        RunnerEvent(kind=RunnerEventKind.STARTED, host="x", task="install"),
        RunnerEvent(kind=RunnerEventKind.OK, host="x", task="install", is_changed=True),
        RunnerEvent(kind=RunnerEventKind.SKIPPED, host="x", task="restart"),
        RunnerEvent(
            kind=RunnerEventKind.FAILED,
            host="x",
            task="check",
            result={"msg": "wrong token open sesame"},
        ),
    ):
        logs.step(JOB, event)
    logs.results([JobResult(job=JOB, outcome=JobOutcome.FAILED, reason="it broke")])
    lines = (tmp_path / "logs" / "rack_1.log").read_text().splitlines()
    assert [line.partition(" ")[2] for line in lines] == [
        'apply nova (do.yaml) "install" starts',
        'apply nova (do.yaml) "install" changed',
        'apply nova (do.yaml) "restart" skipped',
        'apply nova (do.yaml) "check" failed: wrong token ***',
        "apply nova (do.yaml) failed: it broke",
    ]
    assert all(line[10] == "T" and line[19] == "Z" for line in lines)
