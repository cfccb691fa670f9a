"""Playbooks run on real SSH servers; a job without proof of success is never done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from equipoise.adapters.ansible.batch import PlaybookBatchResult, perform
from equipoise.adapters.ansible.job import (
    HostConnection,
    JobOutcome,
    PlaybookJob,
    RunnerEvent,
    RunnerEventKind,
    RunOptions,
)
from equipoise.adapters.ansible.process import RUN_MARK, StopSignal
from sshd import Rack, Sshd, rack, user

pytest.importorskip("ansible_runner", reason="the extra ansible is not installed")

LIMIT_S = 120


@pytest.fixture(scope="module", name="hosts")
def fixture_hosts() -> Iterator[Rack]:
    with rack(3) as made:
        yield made


@pytest.fixture(autouse=True)
def fixture_own_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of all runs, to check that they leave nothing behind."""
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "runs"))


def connection_to(host: Sshd, **secrets: str) -> HostConnection:
    return HostConnection(
        host=host.name,
        address=host.address,
        port=host.port,
        user=user(),
        key_file=host.keys / "id",
        variables={
            "home": str(host.home),
            "ansible_ssh_use_tty": False,
        },  # only root's sshd has one
        secrets=secrets,
    )


def connections_to(hosts: Rack, **secrets: str) -> dict[str, HostConnection]:
    return {host.name: connection_to(host, **secrets) for host in hosts.hosts}


def run_options(hosts: Rack, timeout_s: int = LIMIT_S) -> RunOptions:
    return RunOptions(known_hosts=hosts.keys / "known", connect_timeout_s=20, timeout_s=timeout_s)


def playbook(folder: Path, name: str, *steps: str, play: str = "") -> Path:
    """A playbook whose steps are shell commands."""
    path = folder / f"{name}.yaml"
    head = f'- hosts: "{{{{ equipoise_hosts }}}}"\n  gather_facts: false\n{play}  tasks:\n'
    path.write_text(
        head + "".join(f"    - name: {step.split()[0]}\n      raw: {step}\n" for step in steps)
    )
    return path


def jobs(path: Path, *names: str) -> list[PlaybookJob]:
    return [PlaybookJob(host=name, action=path.stem, playbook=path) for name in names]


def outcomes(report: PlaybookBatchResult) -> list[str]:
    return [verdict.outcome.value for verdict in report.results]


def left_running(folder: Path) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{RUN_MARK}={folder}/".encode() in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_bytes().decode())
    return found


def test_a_failing_playbook_does_not_stop_the_others_of_its_batch(
    hosts: Rack, tmp_path: Path
) -> None:
    broken = playbook(tmp_path, "broken", "echo {{ token }} is wrong >&2; false")
    well = playbook(tmp_path, "well", "touch {{ home }}/was-here")
    batch = [*jobs(broken, "h1"), *jobs(well, "h2", "h3")]
    connections = connections_to(hosts, token="open {{ sesame }}")
    report = perform(batch, connections, run_options(hosts))
    assert outcomes(report) == ["failed", "done", "done"], report
    assert "*** is wrong" in report.results[0].reason, (
        "the reason has the message without the secret"
    )
    assert [(host.home / "was-here").exists() for host in hosts.hosts] == [False, True, True]
    assert list((tmp_path / "runs").iterdir()) == [], "the folder of the run had secrets"


def test_a_host_stopped_by_the_failure_of_another_is_not_done(hosts: Rack, tmp_path: Path) -> None:
    path = playbook(
        tmp_path,
        "strict",
        "test {{ equipoise_host }} != h2",
        "touch {{ home }}/never",
        play="  any_errors_fatal: true\n",
    )
    report = perform(jobs(path, "h1", "h2"), connections_to(hosts), run_options(hosts))
    assert outcomes(report) == ["failed", "failed"]
    assert "h2" in report.results[0].reason
    assert not (hosts.hosts[0].home / "never").exists()


def test_a_host_with_an_unknown_key_is_not_touched(hosts: Rack, tmp_path: Path) -> None:
    path = playbook(tmp_path, "touch", "touch {{ home }}/touched")
    other = hosts.keys.parent / "other"
    other.write_text((hosts.keys / "known").read_text().replace("AAAA", "AAAB", 1))
    strict = replace(run_options(hosts), known_hosts=other)
    report = perform(jobs(path, "h1", "h2"), connections_to(hosts), strict)
    assert outcomes(report) == ["unreachable", "done"], report
    assert not (hosts.hosts[0].home / "touched").exists()


def test_an_unreadable_playbook_is_unknown_with_the_message_of_ansible(
    hosts: Rack, tmp_path: Path
) -> None:
    path = playbook(tmp_path, "strange", "echo hello")
    path.write_text(path.read_text().replace("raw:", "no_such_module:"))
    report = perform(jobs(path, "h1"), connections_to(hosts), run_options(hosts))
    assert outcomes(report) == ["unknown"]
    assert "without a result" in report.results[0].reason
    assert "no_such_module" in report.results[0].reason


def slow(tmp_path: Path) -> Path:
    return playbook(tmp_path, "slow", "echo $$ > {{ home }}/pid; sleep 300; touch {{ home }}/end")


def test_a_timeout_is_unknown_and_all_processes_end(hosts: Rack, tmp_path: Path) -> None:
    report = perform(
        jobs(slow(tmp_path), "h1"), connections_to(hosts), run_options(hosts, timeout_s=6)
    )
    assert outcomes(report) == ["unknown"]
    assert "reached its time limit" in report.results[0].reason
    assert not left_running(tmp_path / "runs"), "its workers would go on changing the host"
    assert list((tmp_path / "runs").iterdir()) == []


def when_it_has_begun(deed: Callable[[], object]) -> Callable[[RunnerEvent], None]:
    def listen(event: RunnerEvent) -> None:
        if event.kind is RunnerEventKind.STARTED:
            threading.Timer(1, deed).start()

    return listen


def test_a_stop_signal_ends_the_run_and_the_outcome_is_unknown(hosts: Rack, tmp_path: Path) -> None:
    stop_signal = StopSignal()
    batch = jobs(slow(tmp_path), "h1", "h2")
    report = perform(
        batch,
        connections_to(hosts),
        run_options(hosts),
        stop_signal,
        when_it_has_begun(stop_signal.stop),
    )
    assert outcomes(report) == ["unknown", "unknown"]
    assert report.is_interrupted
    assert "interrupted" in report.results[0].reason
    assert not left_running(tmp_path / "runs")
    again = perform(batch, connections_to(hosts), run_options(hosts), stop_signal)
    assert [result.reason for result in again.results] == [
        "the batch was interrupted before the job started"
    ] * 2


def test_ctrl_c_ends_the_run_and_the_outcome_is_unknown(hosts: Rack, tmp_path: Path) -> None:
    stop = when_it_has_begun(lambda: os.kill(os.getpid(), signal.SIGINT))
    report = perform(
        jobs(slow(tmp_path), "h1"), connections_to(hosts), run_options(hosts), listener=stop
    )
    assert report.is_interrupted
    assert [verdict.outcome for verdict in report.results] == [JobOutcome.UNKNOWN]
    assert not left_running(tmp_path / "runs")


_ORPHAN = """
import sys, tempfile
from pathlib import Path
from equipoise.adapters.ansible.batch import perform
from equipoise.adapters.ansible.job import HostConnection, PlaybookJob, RunOptions
tempfile.tempdir, playbook, address, port, user, keys, home = sys.argv[1:]
connection = HostConnection(host="h1", address=address, port=int(port), user=user,
                            key_file=Path(keys, "id"), variables={"home": home})
job = PlaybookJob(host="h1", action="slow", playbook=Path(playbook))
run_options = RunOptions(known_hosts=Path(keys, "known"))
perform([job], {"h1": connection}, run_options,
        listener=lambda event: print(event.kind, flush=True))
"""


def test_killing_the_parent_ends_the_run(hosts: Rack, tmp_path: Path) -> None:
    host = hosts.hosts[0]
    places = (tmp_path / "runs", slow(tmp_path), host.address, host.port, user(), host.keys)
    line = [sys.executable, "-c", _ORPHAN, *map(str, places), str(host.home)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "runner_on_start"
        assert left_running(tmp_path / "runs")
        process.kill()
    end = time.monotonic() + LIMIT_S
    while any((tmp_path / "runs").iterdir()) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left_running(tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == [], "the worker removes the secrets"


def test_a_host_that_died_between_runs_is_unreachable_and_the_others_continue(
    tmp_path: Path,
) -> None:
    path = playbook(tmp_path, "count", "echo . >> {{ home }}/count")
    with rack(2, first=41) as hosts:
        batch = jobs(path, "h1", "h2")
        assert outcomes(perform(batch, connections_to(hosts), run_options(hosts))) == [
            "done",
            "done",
        ]
        hosts.hosts[1].stop()
        again = perform(batch, connections_to(hosts), run_options(hosts))
        counted = [len((host.home / "count").read_text().split()) for host in hosts.hosts]
    assert outcomes(again) == ["done", "unreachable"]
    assert counted == [2, 1], "a persistent connection would have reached the host"
