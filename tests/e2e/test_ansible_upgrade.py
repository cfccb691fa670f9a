"""The command upgrades three real hosts: a success, a failure that is undone, a dead host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import COMMAND, call
from example_service import PLAYBOOKS, greeted, home_of, install, releases
from sshd import Rack, rack, user

pytest.importorskip("ansible_runner", reason="the extra ansible is not installed")

LIMIT_S = 400
SECRET = "open sesame"


@pytest.fixture(name="hosts")
def fixture_hosts() -> Iterator[Rack]:
    with rack(3, first=31) as made:
        yield made


@pytest.fixture(name="campaign")
def fixture_campaign(tmp_path: Path) -> Path:
    """A copy of the example."""
    shutil.copytree(PLAYBOOKS.parent, tmp_path / "upgrade")
    return tmp_path / "upgrade" / "campaign.yaml"


def access_to(hosts: Rack, folder: Path) -> Path:
    path = folder / "rack.json"
    document = {
        "known_hosts": str(hosts.keys / "known"),
        "connect_timeout_s": 20,
        "timeout_s": 180,
        "defaults": {"user": user(), "key_file": str(hosts.keys / "id")},
        "hosts": {
            host.name: {
                "address": host.address,
                "port": host.port,
                "variables": {
                    "greeter_home": str(home_of(host)),
                    "ansible_remote_tmp": str(host.home / ".ansible"),
                },
                "secrets": {"greeter_token": "GREETER_TOKEN"},
            }
            for host in hosts.hosts
        },
    }
    path.write_text(json.dumps(document))
    return path


def line(campaign: Path, access: Path) -> list[str]:
    names = ("--engine", "ansible", "--access", str(access), "--journal", str(access.parent / "db"))
    return [str(COMMAND), "upgrade", str(campaign), *names, "--json"]


def upgraded(campaign: Path, access: Path, *more: str) -> Any:
    done = subprocess.run(
        [*line(campaign, access), *more],
        env=os.environ | {"GREETER_TOKEN": SECRET},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    return json.loads(done.stdout)


def journal(access: Path) -> list[Any]:
    document = call("journal", str(access.parent / "db"), "--lines").stdout
    assert SECRET not in document
    return [json.loads(line) for line in document.splitlines()]


def test_success_revert_and_isolation_of_three_hosts(hosts: Rack, campaign: Path) -> None:
    well, old, gone = hosts.hosts
    install(well, greeting="hi")
    install(old, greeting="hi", colour="!", **{SECRET: "?"})  # settings that 2.0 does not know
    install(gone)
    gone.stop()
    access = access_to(hosts, campaign.parent)

    document = upgraded(campaign, access, "--logs", str(campaign.parent / "logs"))
    assert document["status"] == "completed"
    logs = {path.name: path.read_text() for path in (campaign.parent / "logs").iterdir()}
    assert set(logs) == {"h1.log", "h2.log", "h3.log"}
    assert "apply greeter (upgrade.yaml) done" in logs["h1.log"]
    assert "revert greeter (undo.yaml) done" in logs["h2.log"]
    assert "unreachable" in logs["h3.log"]
    assert SECRET not in "".join(logs.values())
    assert [(change_set["set"], change_set["outcome"]) for change_set in document["sets"]] == [
        ("greeters", "applied")
    ]
    isolated = {entry["resource"]: entry for entry in document["isolated"]}
    assert set(isolated) == {"greeter3"}
    (given_up,) = document["given_up"]
    assert (given_up["resource"], given_up["code"]) == ("greeter2", "attempts-exhausted")
    assert "Connection refused" in isolated["greeter3"]["reason"]

    assert "greeter 2.0: hi" in greeted(well)
    assert "releases/2.0" in greeted(well)
    assert "greeter 1.0: hi!" in greeted(old)
    assert "releases/1.0" in greeted(old)
    assert (releases(well), releases(old)) == (["1.0", "2.0"], ["1.0"])
    assert os.listdir(home_of(gone) / "releases") == ["1.0"]

    events = journal(access)
    failed = {event["resource"]: event for event in events if event["event"] == "task_failed"}
    assert set(failed) == {"greeter2", "greeter3"}
    assert "greeter 2.0 does not know the setting colour, ***" in failed["greeter2"]["reason"]
    assert [failed[name]["unreachable"] for name in ("greeter2", "greeter3")] == [False, True]
    finished = [
        (event["resource"], event["errand"])
        for event in events
        if event["event"] == "task_finished"
    ]
    assert finished == [("greeter1", "apply"), ("greeter2", "revert"), ("greeter1", "check")]


def test_after_an_interruption_the_command_goes_on_with_its_journal(
    hosts: Rack, campaign: Path
) -> None:
    host = hosts.hosts[0]
    install(host, greeting="hi")
    text = campaign.read_text().replace("[greeter1, greeter2, greeter3]", "[greeter1]")
    campaign.write_text(text.replace("check_script: playbooks/check.yaml", ""))  # to be quick
    access = access_to(hosts, campaign.parent)
    before = host.logins()
    with subprocess.Popen(
        line(campaign, access),
        env=os.environ | {"GREETER_TOKEN": SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        end = time.monotonic() + LIMIT_S
        # The first login is the preflight, the next one that of the playbook.
        while host.logins() < before + 2 and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert journal(access)[-1]["event"] == "batch_started", "the outcome of the batch is unknown"

    assert upgraded(campaign, access)["isolated"] == []
    assert "greeter 2.0: hi" in greeted(host)
    assert [event["event"] for event in journal(access)].count("campaign_ended") == 1


def test_the_preflight_reaches_every_host_before_any_change(hosts: Rack, campaign: Path) -> None:
    first, _, gone = hosts.hosts
    gone.stop()
    campaign.write_text(campaign.read_text().replace("undo_threshold: 1", "undo_threshold: 3"))
    access = access_to(hosts, campaign.parent)
    for more in ((), ("--dry-run",)):
        done = subprocess.run(
            [*line(campaign, access), *more],
            env=os.environ | {"GREETER_TOKEN": SECRET},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        assert done.returncode == 3, done.stderr
        assert "h3 does not answer" in done.stderr
        assert json.loads(done.stdout)["code"] == "world-failed"
    assert first.logins() == 2, "the preflight and nothing else"


AT_A_DATE = (
    "import sys; import equipoise.cli.upgrade.run as run; from equipoise.cli.main import main; "
    "at = int(sys.argv.pop(1)) * 10**9; run.time_ns = lambda: at; main()"
)
"""Runs the command as if its run had started at a date: seconds since 1970."""
EVENING = 1_767_646_800  # 2026-01-05 21:00 UTC
HOUR = 3600


def killed_when(seen: str, command: list[str], access: Path) -> None:
    """Start a run, and kill it as soon as its journal has an event."""
    with subprocess.Popen(
        command,
        env=os.environ | {"GREETER_TOKEN": SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end and process.poll() is None:
            if (access.parent / "db").exists() and seen in str(journal(access)):
                break
            time.sleep(0.5)
        assert process.poll() is None, process.communicate()
        process.kill()
        process.communicate(timeout=LIMIT_S)


def test_a_killed_run_that_continues_next_morning_waits_for_the_next_night(
    hosts: Rack, campaign: Path
) -> None:
    host = hosts.hosts[0]
    install(host, greeting="hi")
    text = campaign.read_text().replace("[greeter1, greeter2, greeter3]", "[greeter1]")
    text = text.replace("- id: greeters", "- id: greeters\n        windows: ['22:00-06:00 UTC']")
    campaign.write_text(text.replace("check_script: playbooks/check.yaml", ""))
    access = access_to(hosts, campaign.parent)

    def at(second: int) -> list[str]:
        return [sys.executable, "-c", AT_A_DATE, str(second), *line(campaign, access)[1:]]

    killed_when("outside-window", at(EVENING), access)
    logins = host.logins()
    killed_when("campaign_continued", at(EVENING + 10 * HOUR), access)
    assert host.logins() == logins, "at 07:00 the window is closed"
    again = [event for event in journal(access) if event["event"] == "campaign_continued"]
    assert again[0]["at_ms"] == 10 * HOUR * 1000
    done = subprocess.run(
        at(EVENING + 26 * HOUR),
        env=os.environ | {"GREETER_TOKEN": SECRET},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert "greeter 2.0: hi" in greeted(host)
