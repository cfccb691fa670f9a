"""One run of Ansible: its files, its worker process, the events of the run, and the clean-up."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Timer
from typing import Any, Final

from equipoise.adapters.ansible.job import (
    HostConnection,
    PlaybookJob,
    RunEnding,
    RunLog,
    RunnerEvent,
    RunOptions,
    runner_event,
)
from equipoise.adapters.line_process import call_when_late
from equipoise.errors import MissingExtra

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
        # The runner checks for a stop between two reads of output, so a read lasts one second at
        # most. ``poll`` works with more than 1,024 open files, ``select`` does not.
        "env/settings": json.dumps({"pexpect_timeout": 1, "pexpect_use_poll": True}),
        # Empty, so that no configuration of the user or of the machine applies.
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
        # Only keys of the named file are trusted, not those of the machine.
        options += [f'UserKnownHostsFile="{run_options.known_hosts}"', "GlobalKnownHostsFile=none"]
    if connection.key_file is not None:
        # Otherwise SSH offers the keys of an agent first, and a server refuses after a few of them.
        options.append("IdentitiesOnly=yes")
    return shlex.join(part for option in options for part in ("-o", option))


def _playbook(groups: Sequence[PlaybookGroup]) -> str:
    plays: list[dict[str, Any]] = []
    for group in groups:
        names = [entry.name for entry in group.entries]
        plays.append({"import_playbook": str(group.playbook), "vars": {HOSTS_VARIABLE: names}})
        # A play of its own runs after all handlers of the playbook, and failed hosts do not reach
        # it.
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


class StopSignal:
    """A signal that stops the present run and all later ones. It cannot be reset."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._callback: Callable[[], object] | None = None
        self._is_set = False

    @property
    def is_set(self) -> bool:
        """Whether runs must stop."""
        return self._is_set

    def stop(self) -> None:
        """Stop the present run and all later ones."""
        with self._lock:
            self._is_set = True
            callback = self._callback
        if callback is not None:
            callback()

    @contextmanager
    def on_stop(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call ``callback`` when the signal is set; at once if it is set already."""
        with self._lock:
            self._callback, is_set = callback, self._is_set
        if is_set:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callback = None


RUN_MARK: Final = "EQUIPOISE_ANSIBLE_RUN"
"""The environment variable of every process of a run, in any session; its value is the folder."""


def kill_leftovers(folder: Path) -> int:
    """Kill every process of the run in this folder and return their number."""
    killed = 0
    # Until none is left: a process may have started a child in the meantime.
    while pids := list(_marked_processes(folder)):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def _marked_processes(folder: Path) -> Iterator[int]:
    mark = f"{RUN_MARK}={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or it belongs to another user
            if mark in (entry / "environ").read_bytes().split(b"\0") and _is_alive(entry):
                yield int(entry.name)


def _is_alive(entry: Path) -> bool:
    # A killed process stays as a zombie until its parent collects it.
    state = (entry / "stat").read_bytes().rsplit(b")", 1)[1].split()[0]
    return state not in (b"Z", b"X")


GRACE_S: Final = 20.0
"""The time that a run has to end after it was stopped."""
TAIL_CHARACTERS: Final = 1000
PROGRAM: Final = "ansible-playbook"

Listener = Callable[[RunnerEvent], object]


def need_ansible() -> None:
    """Raise ``MissingExtra`` if Ansible is not installed."""
    if find_spec("ansible_runner") is None or shutil.which(PROGRAM, path=search_path()) is None:
        raise MissingExtra("ansible", "acting on hosts by Ansible")


def run_ansible(
    files: Mapping[str, str],
    settings: Mapping[str, str],
    timeout_s: int,
    listener: Listener,
    stop_signal: StopSignal,
) -> RunLog:
    """Run Ansible in a folder with these files, and return its log when it has ended."""
    with _run_folder(files) as folder:
        own = {
            "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            "ANSIBLE_HOME": str(folder / "home"),
            "PATH": search_path(),
            RUN_MARK: str(folder),
        }
        order = {"folder": str(folder), "timeout_s": timeout_s, "environment": {**settings, **own}}
        with _WorkerProcess(folder) as worker:
            return worker.run(order, timeout_s, listener, stop_signal)


class _WorkerProcess:
    """The worker process. Leaving the context guarantees that it has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._events: list[RunnerEvent] = []
        self._end: Mapping[str, Any] | None = None
        self._is_late = self._is_interrupted = False
        self._kill_timer: Timer | None = None

    def __enter__(self) -> _WorkerProcess:
        with (self._folder / "stderr").open("w", encoding="utf-8") as stderr:
            self._process = subprocess.Popen(
                (sys.executable, "-P", "-m", "equipoise.adapters.ansible.worker"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=inherited_environment(os.environ),
                start_new_session=True,  # Ctrl-C goes to this process, which stops the worker
            )
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        if self._end is None:
            kill_leftovers(self._folder)

    def run(
        self, order: Mapping[str, Any], timeout_s: int, listener: Listener, stop_signal: StopSignal
    ) -> RunLog:
        """Send the order and read events until the run ends."""
        with call_when_late(timeout_s + GRACE_S, self._kill_when_late):
            try:
                self._send_order(order)
                with stop_signal.on_stop(self._interrupt):
                    self._read_events(listener)
            except KeyboardInterrupt:
                self._interrupt()
                with suppress(KeyboardInterrupt):  # a second Ctrl-C ends the wait
                    self._read_events(lambda _event: None)
        if self._kill_timer is not None:
            self._kill_timer.cancel()
        return self._run_log()

    def _send_order(self, order: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the worker has died; its stderr is read later
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()

    def _read_events(self, listener: Listener) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            document = json.loads(line)
            if "end" in document:
                self._end = document["end"]
                return
            event = runner_event(document["event"])
            self._events.append(event)
            listener(event)

    def _interrupt(self) -> None:
        self._is_interrupted = True
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()  # the worker ends the run when its input ends
        self._kill_timer = Timer(GRACE_S, self._process.kill)
        self._kill_timer.daemon = True
        self._kill_timer.start()

    def _kill_when_late(self) -> None:
        self._is_late = True
        self._process.kill()

    def _run_log(self) -> RunLog:
        if self._end is None:
            ending = RunEnding.TIME_UP if self._is_late else RunEnding.DIED
            if self._is_interrupted:
                ending = RunEnding.INTERRUPTED
            stderr = (self._folder / "stderr").read_text("utf-8", "replace")
            return RunLog(
                ending=ending,
                events=tuple(self._events),
                tail=stderr[-TAIL_CHARACTERS:],
                is_interrupted=self._is_interrupted,
            )
        endings = {"timeout": RunEnding.TIME_UP, "canceled": RunEnding.INTERRUPTED}
        return RunLog(
            ending=endings.get(self._end["status"], RunEnding.BY_ITSELF),
            events=tuple(self._events),
            stats=self._end["stats"],
            rc=self._end["rc"],
            tail=self._end["tail"],
            is_interrupted=self._is_interrupted,
        )


@contextmanager
def _run_folder(files: Mapping[str, str]) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="equipoise-")).resolve()  # only the owner can read it
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def search_path() -> str:
    """Return the search path for programs; the present Python environment comes first."""
    own = str(Path(sys.executable).parent)
    return os.pathsep.join(filter(None, (own, os.environ.get("PATH", ""))))
