"""Commands to a campaign on real hosts while a playbook of Ansible runs."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from command import COMMAND, answer
from equipoise.errors import InvalidInput
from equipoise.model.event import Event
from equipoise.model.upgrade.event import TaskFinished, UpgradeCommanded
from equipoise.store import open_journal
from sshd import Rack, rack, user

pytest.importorskip("ansible_runner", reason="the extra ansible is not installed")

LIMIT_S = 300
CAMPAIGN = """
name: pair
settings: {failover_hosts: 0}
catalog:
  descriptions:
    - {component: thing, version: v1}
    - {component: thing, version: v2, upgrade: {script: do.yaml, undo_script: undo.yaml}}
requests:
  - {id: r, sets: [{id: pair, changes: [{does: upgrade, resources: [t1, t2], version: v2}]}]}
cluster:
  hosts:
    - {id: h1, cores: 4, mhz_per_core: 2000, memory_mib: 8192}
    - {id: h2, cores: 4, mhz_per_core: 2000, memory_mib: 8192}
  resources:
    - {id: t1, kind: host_os, component: thing, version: v1, host: h1}
    - {id: t2, kind: host_os, component: thing, version: v1, host: h2}
  dependencies: [{dependent: t1, sponsor: t2, kind: peer_stateless, presence: current_future}]
"""
PLAYBOOK = """
- hosts: "{{{{ equipoise_hosts }}}}"
  gather_facts: false
  tasks:
    - name: {name}
      ansible.builtin.raw: {command}
"""
BACK = "echo {{ equipoise_to }} >> {{ home }}/versions"
SLOW = f"touch {{{{ home }}}}/begun; until [ -e {{{{ home }}}}/go ]; do sleep 0.2; done; {BACK}"


@pytest.fixture(name="hosts")
def fixture_hosts() -> Iterator[Rack]:
    with rack(2, first=51) as made:
        yield made


def written(hosts: Rack, folder: Path) -> tuple[str, ...]:
    """The files of the campaign, and the options of the command for them."""
    (folder / "campaign.yaml").write_text(CAMPAIGN)
    (folder / "do.yaml").write_text(PLAYBOOK.format(name="work", command=json.dumps(SLOW)))
    (folder / "undo.yaml").write_text(PLAYBOOK.format(name="undo", command=json.dumps(BACK)))
    document = {
        "known_hosts": str(hosts.keys / "known"),
        "connect_timeout_s": 20,
        "defaults": {"user": user(), "key_file": str(hosts.keys / "id")},
        "hosts": {
            host.name: {
                "address": host.address,
                "port": host.port,
                "variables": {"home": str(host.home), "ansible_ssh_use_tty": False},
            }
            for host in hosts.hosts
        },
    }
    (folder / "access.json").write_text(json.dumps(document))
    files = ("--access", str(folder / "access.json"), "--journal", str(folder / "db"))
    return (str(folder / "campaign.yaml"), "--engine", "ansible", *files)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < end, "the condition was not reached in time"
        time.sleep(0.1)


def events(folder: Path) -> list[Event]:
    try:
        with open_journal(str(folder / "db"), create=False) as journal:
            return list(journal.events())
    except InvalidInput:  # it is not there yet
        return []


def test_a_command_during_a_playbook_undoes_a_set(hosts: Rack, tmp_path: Path) -> None:
    line = written(hosts, tmp_path)
    first, second = (host.home for host in hosts.hosts)
    with subprocess.Popen(
        [COMMAND, "upgrade", *line, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            until((first / "begun").exists)
            (command,) = answer("upgrade", *line, "--command", "undo:pair")["orders"]
            assert command["refused"] == ""
            assert command["at_s"] is not None, "the command is applied although the engine is busy"
            assert not any(isinstance(event, TaskFinished) for event in events(tmp_path))
            (first / "go").touch()
            out, complaints = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
    assert process.returncode == 0, complaints
    document = json.loads(out)
    assert [(change_set["set"], change_set["outcome"]) for change_set in document["sets"]] == [
        ("pair", "undone")
    ]
    assert (first / "versions").read_text().split() == ["v2", "v1"]
    assert os.listdir(second) == [], "the other host was never touched"
    kinds = [type(event) for event in events(tmp_path)]
    assert kinds.index(UpgradeCommanded) < kinds.index(TaskFinished)
