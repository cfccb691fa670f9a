"""Playbooks act on real SSH servers, and what cannot be proven done is never called done."""

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

from equipoise.hosts.ansible.batch import Report, perform
from equipoise.hosts.ansible.brake import Brake
from equipoise.hosts.ansible.heard import Event, Kind
from equipoise.hosts.ansible.sweep import MARK
from equipoise.hosts.ansible.words import Chore, Manners, Outcome, Way
from sshd import Rack, Sshd, rack, user

pytest.importorskip("ansible_runner", reason="the extra ansible is not installed")

LIMIT_S = 120


@pytest.fixture(scope="module", name="hosts")
def fixture_hosts() -> Iterator[Rack]:
    with rack(3) as made:
        yield made


@pytest.fixture(autouse=True)
def fixture_own_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where runs have their folders, so that it can be seen that nothing is left of them."""
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "runs"))


def way_to(host: Sshd, **secrets: str) -> Way:
    return Way(
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


def ways_to(hosts: Rack, **secrets: str) -> dict[str, Way]:
    return {host.name: way_to(host, **secrets) for host in hosts.hosts}


def manners(hosts: Rack, timeout_s: int = LIMIT_S) -> Manners:
    return Manners(known_hosts=hosts.keys / "known", connect_timeout_s=20, timeout_s=timeout_s)


def playbook(folder: Path, name: str, *steps: str, play: str = "") -> Path:
    """A playbook whose steps are shell commands."""
    path = folder / f"{name}.yaml"
    head = f'- hosts: "{{{{ equipoise_hosts }}}}"\n  gather_facts: false\n{play}  tasks:\n'
    path.write_text(
        head + "".join(f"    - name: {step.split()[0]}\n      raw: {step}\n" for step in steps)
    )
    return path


def chores(path: Path, *names: str) -> list[Chore]:
    return [Chore(host=name, action=path.stem, playbook=path) for name in names]


def outcomes(report: Report) -> list[str]:
    return [verdict.outcome.value for verdict in report.verdicts]


def left_running(folder: Path) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{MARK}={folder}/".encode() in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_bytes().decode())
    return found


def test_a_failing_playbook_does_not_keep_the_others_of_its_batch_from_running(
    hosts: Rack, tmp_path: Path
) -> None:
    broken = playbook(tmp_path, "broken", "echo {{ token }} is wrong >&2; false")
    well = playbook(tmp_path, "well", "touch {{ home }}/was-here")
    batch = [*chores(broken, "h1"), *chores(well, "h2", "h3")]
    ways = ways_to(hosts, token="open {{ sesame }}")
    report = perform(batch, ways, manners(hosts))
    assert outcomes(report) == ["failed", "done", "done"], report
    assert "*** is wrong" in report.verdicts[0].reason, "it is told, but not the secret"
    assert [(host.home / "was-here").exists() for host in hosts.hosts] == [False, True, True]
    assert list((tmp_path / "runs").iterdir()) == [], "secrets stood in the folder of the run"


def test_who_stops_for_the_sake_of_another_is_not_done(hosts: Rack, tmp_path: Path) -> None:
    path = playbook(
        tmp_path,
        "strict",
        "test {{ equipoise_host }} != h2",
        "touch {{ home }}/never",
        play="  any_errors_fatal: true\n",
    )
    report = perform(chores(path, "h1", "h2"), ways_to(hosts), manners(hosts))
    assert outcomes(report) == ["failed", "failed"]
    assert "stopped before the end of its playbook" in report.verdicts[0].reason
    assert "failed on h2" in report.verdicts[0].reason
    assert not (hosts.hosts[0].home / "never").exists()


def test_a_host_with_another_key_than_the_known_one_is_not_touched(
    hosts: Rack, tmp_path: Path
) -> None:
    path = playbook(tmp_path, "touch", "touch {{ home }}/touched")
    other = hosts.keys.parent / "other"
    other.write_text((hosts.keys / "known").read_text().replace("AAAA", "AAAB", 1))
    strict = replace(manners(hosts), known_hosts=other)
    report = perform(chores(path, "h1", "h2"), ways_to(hosts), strict)
    assert outcomes(report) == ["unreachable", "done"], report
    assert not (hosts.hosts[0].home / "touched").exists()


def test_a_playbook_that_ansible_cannot_read_is_unknown_with_what_it_said(
    hosts: Rack, tmp_path: Path
) -> None:
    path = playbook(tmp_path, "strange", "echo hello")
    path.write_text(path.read_text().replace("raw:", "no_such_module:"))
    report = perform(chores(path, "h1"), ways_to(hosts), manners(hosts))
    assert outcomes(report) == ["unknown"]
    assert "without a result" in report.verdicts[0].reason
    assert "no_such_module" in report.verdicts[0].reason


def slow(tmp_path: Path) -> Path:
    return playbook(tmp_path, "slow", "echo $$ > {{ home }}/pid; sleep 300; touch {{ home }}/end")


def test_what_has_not_ended_in_time_is_unknown_and_nothing_goes_on(
    hosts: Rack, tmp_path: Path
) -> None:
    report = perform(chores(slow(tmp_path), "h1"), ways_to(hosts), manners(hosts, timeout_s=6))
    assert outcomes(report) == ["unknown"]
    assert "time was up" in report.verdicts[0].reason
    assert not left_running(tmp_path / "runs"), "its workers would go on changing the host"
    assert list((tmp_path / "runs").iterdir()) == []


def when_it_has_begun(deed: Callable[[], object]) -> Callable[[Event], None]:
    def listen(event: Event) -> None:
        if event.kind is Kind.STARTED:
            threading.Timer(1, deed).start()

    return listen


def test_pulling_the_brake_ends_the_run_and_the_outcome_is_unknown(
    hosts: Rack, tmp_path: Path
) -> None:
    brake = Brake()
    batch = chores(slow(tmp_path), "h1", "h2")
    report = perform(batch, ways_to(hosts), manners(hosts), brake, when_it_has_begun(brake.pull))
    assert outcomes(report) == ["unknown", "unknown"]
    assert report.is_interrupted
    assert "interrupted" in report.verdicts[0].reason
    assert not left_running(tmp_path / "runs")
    again = perform(batch, ways_to(hosts), manners(hosts), brake)
    assert [one.reason for one in again.verdicts] == [
        "the batch was interrupted before its turn"
    ] * 2


def test_ctrl_c_ends_the_run_and_the_outcome_is_unknown(hosts: Rack, tmp_path: Path) -> None:
    stop = when_it_has_begun(lambda: os.kill(os.getpid(), signal.SIGINT))
    report = perform(chores(slow(tmp_path), "h1"), ways_to(hosts), manners(hosts), listener=stop)
    assert report.is_interrupted
    assert [verdict.outcome for verdict in report.verdicts] == [Outcome.UNKNOWN]
    assert not left_running(tmp_path / "runs")


_ORPHAN = """
import sys, tempfile
from pathlib import Path
from equipoise.hosts.ansible.batch import perform
from equipoise.hosts.ansible.words import Chore, Manners, Way
tempfile.tempdir, playbook, address, port, user, keys, home = sys.argv[1:]
way = Way(host="h1", address=address, port=int(port), user=user, key_file=Path(keys, "id"),
          variables={"home": home})
chore = Chore(host="h1", action="slow", playbook=Path(playbook))
manners = Manners(known_hosts=Path(keys, "known"))
perform([chore], {"h1": way}, manners, listener=lambda event: print(event.kind, flush=True))
"""


def test_when_who_ordered_a_run_is_killed_the_run_ends_too(hosts: Rack, tmp_path: Path) -> None:
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
    assert list((tmp_path / "runs").iterdir()) == [], "nobody else would remove the secrets"


def test_a_host_that_died_since_it_was_last_seen_is_unreachable_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    path = playbook(tmp_path, "count", "echo . >> {{ home }}/count")
    with rack(2, first=41) as hosts:
        batch = chores(path, "h1", "h2")
        assert outcomes(perform(batch, ways_to(hosts), manners(hosts))) == ["done", "done"]
        hosts.hosts[1].stop()
        again = perform(batch, ways_to(hosts), manners(hosts))
        counted = [len((host.home / "count").read_text().split()) for host in hosts.hosts]
    assert outcomes(again) == ["done", "unreachable"]
    assert counted == [2, 1], "a connection that was kept would have reached it"
