"""From a batch of chores to the files of one run of Ansible. Never writes them.

Each chore has an entry of its own in the inventory, so that two chores for one host can have their
own variables. Each playbook is a group of plays, and at its end a play of ours asks every host that
is still there to say so: without that word a chore is not done, whatever the statistics say.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from equipoise.hosts.ansible.words import Chore, Manners, Way

HOSTS: Final = "equipoise_hosts"
"""The variable that says which hosts a playbook is for."""
LAST_WORD: Final = "equipoise: the end of"
"""How the name of our task begins, followed by the name of the entry."""

_WELCOME: Final = (
    "ANSIBLE_COLLECTIONS_PATH",
    "ANSIBLE_VAULT_IDENTITY_LIST",
    "ANSIBLE_VAULT_PASSWORD_FILE",
)
_UNSAFE_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]")
_TAKEN: Final = ("all", "ungrouped", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A chore with the name that the inventory has for it."""

    name: str
    place: int
    """Its place in the batch."""
    chore: Chore


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Entries that run one playbook at the same time, no two of them on one host."""

    playbook: Path
    entries: tuple[Entry, ...]


def groups_of(chores: Mapping[int, Chore]) -> list[Group]:
    """Put chores, given by their places, together with others of the same playbook, in order.

    The second chore of a host waits for the first: two installers at a time would trip each other.
    """
    seen: dict[str, int] = {}
    names: set[str] = set(_TAKEN)
    made: dict[tuple[int, Path], list[Entry]] = {}
    for place, chore in chores.items():
        turn = seen[chore.host] = seen.get(chore.host, 0) + 1
        entry = Entry(name=_name(chore.host, names), place=place, chore=chore)
        names.add(entry.name)
        made.setdefault((turn, chore.playbook), []).append(entry)
    in_turn = sorted(made.items(), key=lambda item: item[0][0])  # stable: else as they come
    return [Group(playbook=key[1], entries=tuple(entries)) for key, entries in in_turn]


def files_of(groups: Sequence[Group], ways: Mapping[str, Way], manners: Manners) -> dict[str, str]:
    """The files of a run by their place in its folder; all are for the owner's eyes only."""
    return {
        "inventory/hosts.yaml": _inventory(groups, ways, manners),
        "project/batch.yaml": _playbook(groups),
        "env/settings": json.dumps({"pexpect_timeout": 1, "pexpect_use_poll": True}),
        "ansible.cfg": "",
    }


def settings_of(
    groups: Sequence[Group], manners: Manners, outside: Mapping[str, str]
) -> dict[str, str]:
    """The settings of a run, as variables of its environment."""
    roles = [str(group.playbook.parent / "roles") for group in groups]
    roles += filter(None, outside.get("ANSIBLE_ROLES_PATH", "").split(":"))
    hosts = sum(len(group.entries) for group in groups)
    return {
        "ANSIBLE_FORKS": str(max(1, min(hosts, manners.forks_max))),
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_NOCOLOR": "True",
        "ANSIBLE_SSH_RETRIES": "0",
        "ANSIBLE_TIMEOUT": str(manners.connect_timeout_s),
        "ANSIBLE_ROLES_PATH": ":".join(dict.fromkeys(roles)),
    }


def kept_of(outside: Mapping[str, str]) -> dict[str, str]:
    """What a run sees of the environment outside.

    Settings of others for Ansible would change what an outcome means.
    """
    return {
        name: value
        for name, value in outside.items()
        if not name.startswith("ANSIBLE_") or name in _WELCOME
    }


def _name(host: str, taken: Iterable[str]) -> str:
    plain = _UNSAFE_IN_NAMES.sub("_", host).lstrip("-.") or "host"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}.{number}"
    return name


def _inventory(groups: Sequence[Group], ways: Mapping[str, Way], manners: Manners) -> str:
    hosts = {
        entry.name: _variables(entry.chore, ways[entry.chore.host], manners)
        for group in groups
        for entry in group.entries
    }
    return _flow({"all": {"hosts": hosts}}) + "\n"


def _variables(chore: Chore, way: Way, manners: Manners) -> dict[str, Any]:
    known: dict[str, Any] = {
        "ansible_connection": "ssh",
        "ansible_host": way.address,
        "ansible_port": way.port,
        "ansible_user": way.user,
        "ansible_ssh_private_key_file": None if way.key_file is None else str(way.key_file),
        "ansible_python_interpreter": way.python or "auto_silent",
        "ansible_become": way.is_root_needed,
        "ansible_ssh_args": _ssh(way, manners),
        "equipoise_host": chore.host,
        "equipoise_action": chore.action,
    }
    settled = {name: value for name, value in known.items() if value is not None}
    return {**chore.variables, **way.variables, **way.secrets, **settled}


def _ssh(way: Way, manners: Manners) -> str:
    # A connection that is kept for later would hide that its host has died meanwhile.
    options = [
        "ControlMaster=no",
        "ControlPath=none",
        "ControlPersist=no",
        f"ConnectTimeout={manners.connect_timeout_s}",
        "ConnectionAttempts=1",
        f"ServerAliveInterval={manners.connect_timeout_s}",
        "ServerAliveCountMax=3",
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
    ]
    if manners.known_hosts is not None:
        options += [f'UserKnownHostsFile="{manners.known_hosts}"', "GlobalKnownHostsFile=none"]
    if way.key_file is not None:
        options.append("IdentitiesOnly=yes")
    return shlex.join(part for option in options for part in ("-o", option))


def _playbook(groups: Sequence[Group]) -> str:
    plays: list[dict[str, Any]] = []
    for group in groups:
        names = [entry.name for entry in group.entries]
        plays.append({"import_playbook": str(group.playbook), "vars": {HOSTS: names}})
        plays.append(
            {
                "name": f"{LAST_WORD} {group.playbook.name}",
                "hosts": names,
                "gather_facts": False,
                "tasks": [
                    {
                        "name": f"{LAST_WORD} {group.playbook.name}",
                        "ansible.builtin.debug": {"msg": "it has come to its end"},
                    }
                ],
            }
        )
    return json.dumps(plays, indent=1) + "\n"


def _flow(value: Any) -> str:
    """Write YAML in which every text is taken as it is: nothing in it is a template."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return f"!unsafe {json.dumps(value)}"
    return json.dumps(value)
