"""The files of a run: who runs what when, and how hosts are reached."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from equipoise.hosts.ansible.layout import files_of, groups_of, kept_of, settings_of
from equipoise.hosts.ansible.words import Chore, Manners, Way

A, B = Path("/books/a.yaml"), Path("/books/b.yaml")


class Inventory(yaml.SafeLoader):
    """Reads what is written there, and remembers nothing of templates."""


Inventory.add_constructor("!unsafe", lambda _loader, node: ("as it is", node.value))


def chores(*wanted: tuple[str, Path]) -> dict[int, Chore]:
    return {
        place: Chore(host=host, action="upgrade", playbook=playbook)
        for place, (host, playbook) in enumerate(wanted)
    }


def inventory(batch: dict[int, Chore], ways: dict[str, Way], manners: Manners) -> Any:
    text = files_of(groups_of(batch), ways, manners)["inventory/hosts.yaml"]
    return yaml.load(text, Inventory)["all"]["hosts"]


def test_hosts_with_the_same_playbook_are_together() -> None:
    groups = groups_of(chores(("h1", A), ("h2", B), ("h3", A)))
    assert [(group.playbook, [entry.name for entry in group.entries]) for group in groups] == [
        (A, ["h1", "h3"]),
        (B, ["h2"]),
    ]


def test_the_second_chore_of_a_host_waits_for_the_first() -> None:
    groups = groups_of(chores(("h1", A), ("h1", A), ("h2", B), ("h2", A)))
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
def test_every_chore_has_a_name_of_its_own_that_is_no_pattern(hosts: list[str]) -> None:
    groups = groups_of(chores(*((host, A) for host in hosts)))
    entries = [entry for group in groups for entry in group.entries]
    names = [entry.name for entry in entries]
    assert len(set(names)) == len(hosts)
    assert sorted(entry.place for entry in entries) == list(range(len(hosts)))
    assert not set(names) & {"all", "ungrouped", "localhost"}
    assert all(name[0] not in "-.~!&" and not set(name) & set(":,[]*?@/+") for name in names)


def test_nothing_in_a_variable_is_a_template_and_the_host_knows_better_than_the_catalog() -> None:
    chore = Chore(
        host="h1", action="upgrade", playbook=A, variables={"x": "catalog", "y": "{{ 1 }}"}
    )
    way = Way(host="h1", address="h1", port=22, variables={"x": "host"}, secrets={"z": "{{ s }}"})
    found = inventory({0: chore}, {"h1": way}, Manners())["h1"]
    assert found["x"] == ("as it is", "host")
    assert found["y"] == ("as it is", "{{ 1 }}")
    assert found["z"] == ("as it is", "{{ s }}")


def test_connections_are_never_kept_and_keys_always_checked() -> None:
    way = Way(host="h1", address="10.0.0.1", port=2222, user="admin", key_file=Path("/k/id"))
    manners = Manners(known_hosts=Path("/k/known hosts"), connect_timeout_s=7)
    found = inventory(chores(("h1", A)), {"h1": way}, manners)["h1"]
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
    assert found["ansible_user"] == ("as it is", "admin")


def test_each_playbook_is_followed_by_the_last_word_of_its_hosts() -> None:
    groups = groups_of(chores(("h1", A), ("h2", B)))
    ways = {name: Way(host=name, address=name, port=22) for name in ("h1", "h2")}
    plays = json.loads(files_of(groups, ways, Manners())["project/batch.yaml"])
    assert [play.get("import_playbook") for play in plays] == [str(A), None, str(B), None]
    assert [play.get("hosts") for play in plays] == [None, ["h1"], None, ["h2"]]
    assert plays[0]["vars"] == {"equipoise_hosts": ["h1"]}


def test_settings_of_others_for_ansible_do_not_reach_a_run() -> None:
    outside = {
        "HOME": "/h",
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto",
        "ANSIBLE_HOST_KEY_CHECKING": "False",
        "ANSIBLE_COLLECTIONS_PATH": "/c",
    }
    assert kept_of(outside) == {"HOME": "/h", "ANSIBLE_COLLECTIONS_PATH": "/c"}
    settings = settings_of(groups_of(chores(("h1", A), ("h2", A))), Manners(forks_max=1), outside)
    assert settings["ANSIBLE_HOST_KEY_CHECKING"] == "True"
    assert settings["ANSIBLE_FORKS"] == "1"
    assert settings["ANSIBLE_ROLES_PATH"] == "/books/roles"
