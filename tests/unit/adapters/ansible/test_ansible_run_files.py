"""The files of a run: the order of jobs, and the connections to hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from equipoise.adapters.ansible.job import HostConnection, PlaybookJob, RunOptions
from equipoise.adapters.ansible.process import (
    files_of,
    groups_of,
    inherited_environment,
    settings_of,
)

A, B = Path("/books/a.yaml"), Path("/books/b.yaml")


class Inventory(yaml.SafeLoader):
    """Reads YAML and marks the texts that Ansible takes literally."""


Inventory.add_constructor("!unsafe", lambda _loader, node: ("literal", node.value))


def jobs(*wanted: tuple[str, Path]) -> dict[int, PlaybookJob]:
    return {
        place: PlaybookJob(host=host, action="upgrade", playbook=playbook)
        for place, (host, playbook) in enumerate(wanted)
    }


def inventory(
    batch: dict[int, PlaybookJob], connections: dict[str, HostConnection], run_options: RunOptions
) -> Any:
    text = files_of(groups_of(batch), connections, run_options)["inventory/hosts.yaml"]
    return yaml.load(text, Inventory)["all"]["hosts"]


def test_hosts_with_the_same_playbook_form_a_group() -> None:
    groups = groups_of(jobs(("h1", A), ("h2", B), ("h3", A)))
    assert [(group.playbook, [entry.name for entry in group.entries]) for group in groups] == [
        (A, ["h1", "h3"]),
        (B, ["h2"]),
    ]


def test_the_second_job_of_a_host_waits_for_the_first() -> None:
    groups = groups_of(jobs(("h1", A), ("h1", A), ("h2", B), ("h2", A)))
    assert [(group.playbook, [entry.name for entry in group.entries]) for group in groups] == [
        (A, ["h1"]),
        (B, ["h2"]),
        (A, ["h1.2", "h2.2"]),
    ]


@given(
    st.lists(
        st.from_regex(r"[A-Za-z0-9_.:@/+-]{1,6}", fullmatch=True)
        | st.sampled_from(("all", "localhost", "h", "h.2")),
        min_size=1,
        max_size=8,
    )
)
def test_every_job_has_a_unique_name_that_is_no_pattern(hosts: list[str]) -> None:
    groups = groups_of(jobs(*((host, A) for host in hosts)))
    entries = [entry for group in groups for entry in group.entries]
    names = [entry.name for entry in entries]
    assert len(set(names)) == len(hosts)
    assert sorted(entry.index for entry in entries) == list(range(len(hosts)))
    assert not set(names) & {"all", "ungrouped", "localhost"}
    assert all(name[0] not in "-.~!&" and not set(name) & set(":,[]*?@/+") for name in names)


def test_variables_are_literal_and_the_host_overrides_the_catalog() -> None:
    job = PlaybookJob(
        host="h1", action="upgrade", playbook=A, variables={"x": "catalog", "y": "{{ 1 }}"}
    )
    connection = HostConnection(
        host="h1", address="h1", port=22, variables={"x": "host"}, secrets={"z": "{{ s }}"}
    )
    found = inventory({0: job}, {"h1": connection}, RunOptions())["h1"]
    assert found["x"] == ("literal", "host")
    assert found["y"] == ("literal", "{{ 1 }}")
    assert found["z"] == ("literal", "{{ s }}")


def test_connections_are_never_kept_and_keys_always_checked() -> None:
    connection = HostConnection(
        host="h1", address="10.0.0.1", port=2222, user="admin", key_file=Path("/k/id")
    )
    run_options = RunOptions(known_hosts=Path("/k/known hosts"), connect_timeout_s=7)
    found = inventory(jobs(("h1", A)), {"h1": connection}, run_options)["h1"]
    line = found["ansible_ssh_args"][1]
    for option in (
        "ControlMaster=no",
        "ControlPath=none",
        "ConnectTimeout=7",
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        """'UserKnownHostsFile="/k/known hosts"'""",
    ):
        assert f"-o {option}" in line
    assert found["ansible_port"] == 2222
    assert found["ansible_user"] == ("literal", "admin")


def test_each_playbook_is_followed_by_its_end_marker() -> None:
    groups = groups_of(jobs(("h1", A), ("h2", B)))
    connections = {name: HostConnection(host=name, address=name, port=22) for name in ("h1", "h2")}
    plays = json.loads(files_of(groups, connections, RunOptions())["project/batch.yaml"])
    assert [play.get("import_playbook") for play in plays] == [str(A), None, str(B), None]
    assert [play.get("hosts") for play in plays] == [None, ["h1"], None, ["h2"]]
    assert plays[0]["vars"] == {"equipoise_hosts": ["h1"]}


def test_foreign_ansible_settings_do_not_reach_a_run() -> None:
    outside = {
        "HOME": "/h",
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto",
        "ANSIBLE_HOST_KEY_CHECKING": "False",
        "ANSIBLE_COLLECTIONS_PATH": "/c",
    }
    assert inherited_environment(outside) == {"HOME": "/h", "ANSIBLE_COLLECTIONS_PATH": "/c"}
    settings = settings_of(groups_of(jobs(("h1", A), ("h2", A))), RunOptions(forks_max=1), outside)
    assert settings["ANSIBLE_HOST_KEY_CHECKING"] == "True"
    assert settings["ANSIBLE_FORKS"] == "1"
    assert settings["ANSIBLE_ROLES_PATH"] == "/books/roles"
