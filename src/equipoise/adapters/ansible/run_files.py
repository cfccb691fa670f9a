"""The files of one run of Ansible for a batch of jobs: inventory, playbook and settings.

Each job has an entry of its own in the inventory, so that two jobs for one host can have their own
variables. Each playbook is a group of plays, and the play after it is an end marker that every host
reports. A job without its end marker is not done, whatever the statistics say.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from equipoise.adapters.ansible.job import HostConnection, PlaybookJob, RunOptions

HOSTS_VARIABLE: Final = "equipoise_hosts"
"""The variable with the hosts of a playbook."""
END_MARKER: Final = "equipoise: the end of"
"""The beginning of the name of the end marker; the name of the playbook follows."""

_INHERITED_VARIABLES: Final = (
    "ANSIBLE_COLLECTIONS_PATH",
    "ANSIBLE_VAULT_IDENTITY_LIST",
    "ANSIBLE_VAULT_PASSWORD_FILE",
)
_UNSAFE_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]")
_RESERVED_NAMES: Final = ("all", "ungrouped", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryEntry:
    """A job with its name in the inventory."""

    name: str
    index: int
    """The index of the job in the batch."""
    job: PlaybookJob


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookGroup:
    """Entries that run one playbook at the same time, no two of them on one host."""

    playbook: Path
    entries: tuple[InventoryEntry, ...]


def groups_of(jobs: Mapping[int, PlaybookJob]) -> list[PlaybookGroup]:
    """Group jobs, given by their index in the batch, by playbook, in the order of execution.

    The second job of a host comes after the first: two installers at a time would conflict.
    """
    counts: dict[str, int] = {}
    names: set[str] = set(_RESERVED_NAMES)
    groups: dict[tuple[int, Path], list[InventoryEntry]] = {}
    for index, job in jobs.items():
        turn = counts[job.host] = counts.get(job.host, 0) + 1
        entry = InventoryEntry(name=_name(job.host, names), index=index, job=job)
        names.add(entry.name)
        groups.setdefault((turn, job.playbook), []).append(entry)
    ordered = sorted(groups.items(), key=lambda item: item[0][0])  # stable within a turn
    return [PlaybookGroup(playbook=key[1], entries=tuple(entries)) for key, entries in ordered]


def files_of(
    groups: Sequence[PlaybookGroup],
    connections: Mapping[str, HostConnection],
    run_options: RunOptions,
) -> dict[str, str]:
    """Return the files of a run by their path in its folder; only the owner may read them."""
    return {
        "inventory/hosts.yaml": _inventory(groups, connections, run_options),
        "project/batch.yaml": _playbook(groups),
        "env/settings": json.dumps({"pexpect_timeout": 1, "pexpect_use_poll": True}),
        "ansible.cfg": "",
    }


def settings_of(
    groups: Sequence[PlaybookGroup], run_options: RunOptions, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of a run, as environment variables."""
    roles = [str(group.playbook.parent / "roles") for group in groups]
    roles += filter(None, environ.get("ANSIBLE_ROLES_PATH", "").split(":"))
    hosts = sum(len(group.entries) for group in groups)
    return {
        "ANSIBLE_FORKS": str(max(1, min(hosts, run_options.forks_max))),
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_NOCOLOR": "True",
        "ANSIBLE_SSH_RETRIES": "0",
        "ANSIBLE_TIMEOUT": str(run_options.connect_timeout_s),
        "ANSIBLE_ROLES_PATH": ":".join(dict.fromkeys(roles)),
    }


def inherited_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a run without foreign settings of Ansible.

    Such settings could change the meaning of an outcome.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("ANSIBLE_") or name in _INHERITED_VARIABLES
    }


def _name(host: str, taken: Iterable[str]) -> str:
    plain = _UNSAFE_IN_NAMES.sub("_", host).lstrip("-.") or "host"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}.{number}"
    return name


def _inventory(
    groups: Sequence[PlaybookGroup],
    connections: Mapping[str, HostConnection],
    run_options: RunOptions,
) -> str:
    hosts = {
        entry.name: _variables(entry.job, connections[entry.job.host], run_options)
        for group in groups
        for entry in group.entries
    }
    return _to_yaml({"all": {"hosts": hosts}}) + "\n"


def _variables(
    job: PlaybookJob, connection: HostConnection, run_options: RunOptions
) -> dict[str, Any]:
    known: dict[str, Any] = {
        "ansible_connection": "ssh",
        "ansible_host": connection.address,
        "ansible_port": connection.port,
        "ansible_user": connection.user,
        "ansible_ssh_private_key_file": None
        if connection.key_file is None
        else str(connection.key_file),
        "ansible_python_interpreter": connection.python or "auto_silent",
        "ansible_become": connection.is_root_needed,
        "ansible_ssh_args": _ssh(connection, run_options),
        "equipoise_host": job.host,
        "equipoise_action": job.action,
    }
    fixed = {name: value for name, value in known.items() if value is not None}
    # The last one wins: no variable of the access file can override the connection.
    return {**job.variables, **connection.variables, **connection.secrets, **fixed}


def _ssh(connection: HostConnection, run_options: RunOptions) -> str:
    # No persistent connection: it would hide that its host has died in the meantime.
    options = [
        "ControlMaster=no",
        "ControlPath=none",
        "ControlPersist=no",
        f"ConnectTimeout={run_options.connect_timeout_s}",
        "ConnectionAttempts=1",
        f"ServerAliveInterval={run_options.connect_timeout_s}",
        "ServerAliveCountMax=3",
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
    ]
    if run_options.known_hosts is not None:
        options += [f'UserKnownHostsFile="{run_options.known_hosts}"', "GlobalKnownHostsFile=none"]
    if connection.key_file is not None:
        options.append("IdentitiesOnly=yes")
    return shlex.join(part for option in options for part in ("-o", option))


def _playbook(groups: Sequence[PlaybookGroup]) -> str:
    plays: list[dict[str, Any]] = []
    for group in groups:
        names = [entry.name for entry in group.entries]
        plays.append({"import_playbook": str(group.playbook), "vars": {HOSTS_VARIABLE: names}})
        plays.append(
            {
                "name": f"{END_MARKER} {group.playbook.name}",
                "hosts": names,
                "gather_facts": False,
                "tasks": [
                    {
                        "name": f"{END_MARKER} {group.playbook.name}",
                        "ansible.builtin.debug": {"msg": "the playbook has ended"},
                    }
                ],
            }
        )
    return json.dumps(plays, indent=1) + "\n"


def _to_yaml(value: Any) -> str:
    """Return YAML in which every text is literal: Ansible expands no template in it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)}: {_to_yaml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return f"!unsafe {json.dumps(value)}"
    return json.dumps(value)
