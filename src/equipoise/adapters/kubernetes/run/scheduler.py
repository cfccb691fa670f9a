"""Starts a scheduler of Kubernetes with the configuration that a simulation needs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from equipoise.adapters.batsim.transport.process import SchedulerProcess
from equipoise.adapters.kubernetes.api.app import CLIENTS_PATH
from equipoise.adapters.kubernetes.clock.build import PROGRAM
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files.document import FileFormat, check_size_for_format, decode_text
from equipoise.files.yaml_reader import read_yaml

_CONFIG_API: Final = "kubescheduler.config.k8s.io/v1"
_CONFIG_KIND: Final = "KubeSchedulerConfiguration"
_CONFIG_FLAG: Final = "--config"
_PORT_FLAG: Final = "--secure-port"
_PLACEHOLDERS: Final = ("{config}", "{kubeconfig}", "{url}", "{port}")
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerCommand:
    """A scheduler to start.

    ``{config}``, ``{kubeconfig}``, ``{url}`` and ``{port}`` in the command are replaced. A command
    without any of them gets ``--config`` and ``--secure-port=0``, as kube-scheduler needs. If it
    names a configuration itself, that one is completed.
    """

    command: str
    config: Path | None = None
    """A KubeSchedulerConfiguration of the user; connection and leader election are ours."""
    log: Path | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The ``schedulerName`` of the pods that it serves."""
        config = self.parsed()[1]
        return ("default-scheduler",) if config is None else scheduler_names(config)

    def parsed(self) -> tuple[list[str], Path | None]:
        """Return the words of the command without a configuration, and the configuration."""
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise _usage(f"cannot be read: {str(error).lower()}", "close the quotes") from None
        if not words:
            raise _usage("is empty", "name a program")
        left, config = list[str](), self.config
        following = iter(words)
        for word in following:
            name, equals, path = word.partition("=")
            if name != _CONFIG_FLAG or "{config}" in word:
                left.append(word)
                continue
            path = path if equals else next(following, "{config}")
            if "{config}" in path:
                left.append(f"{_CONFIG_FLAG}={path}")
            else:
                config = Path(path)
        return left, config


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """What a clock asks of the configuration of kube-scheduler."""

    one_thread: bool = False
    """Filter and score on one thread, so that equal scores are broken in the same way."""
    short_backoff: bool = False
    """Retry after one second of wall-clock time, the least that kube-scheduler accepts."""


@dataclass(frozen=True, slots=True)
class StartedScheduler:
    """A running scheduler."""

    name: str
    process: SchedulerProcess
    pid: int
    client: str = ""
    """Its name for the server, if it uses the kubeconfig of the run."""


@dataclass(slots=True)
class SchedulerFolder:
    """The files that schedulers read: a kubeconfig, and a configuration for each."""

    path: Path
    url: str
    _count: int = field(default=0, init=False)

    @property
    def client(self) -> str:
        """The name of the last scheduler in the address of its kubeconfig."""
        return f"scheduler-{self._count}"

    def kubeconfig(self) -> Path:
        """Write the file that names the API for the last scheduler; return its path."""
        path = self.path / f"kubeconfig-{self._count}"
        content = kubeconfig_content(f"{self.url}{CLIENTS_PATH}{self.client}")
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def begin(self) -> None:
        """Make files for another scheduler from now on."""
        self._count += 1

    def config(self, given: Path | None, settings: SchedulerSettings) -> Path:
        """Write the configuration of a scheduler; return its path."""
        path = self.path / f"scheduler-{self._count}.json"
        content = {} if given is None else read_config(given)
        path.write_text(
            json.dumps(complete_config(content, self.kubeconfig(), settings)), encoding="utf-8"
        )
        return path


def kubeconfig_content(url: str, token: str = "", authority: bytes = b"") -> dict[str, Any]:
    """Return a kubeconfig that names the API at an address, and who vouches for it."""
    user = {"token": token} if token else {}
    cluster = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "simulation", "cluster": cluster}],
        "users": [{"name": "simulation", "user": user}],
        "contexts": [
            {"name": "simulation", "context": {"cluster": "simulation", "user": "simulation"}}
        ],
        "current-context": "simulation",
    }


def complete_config(
    given: Mapping[str, Any], kubeconfig: Path, settings: SchedulerSettings
) -> dict[str, Any]:
    """Return the configuration of the user with what the simulation needs."""
    content = {"apiVersion": _CONFIG_API, "kind": _CONFIG_KIND} | dict(given)
    # A bucket of tokens that virtual time does not fill would block for ever, so no rate limit.
    content["clientConnection"] = {
        "kubeconfig": str(kubeconfig),
        "contentType": _JSON,
        "acceptContentTypes": _JSON,
        "qps": -1,
        "burst": 0,
    }
    content["leaderElection"] = {"leaderElect": False}
    if settings.one_thread:
        content.setdefault("parallelism", 1)
    if settings.short_backoff:
        content.setdefault("podInitialBackoffSeconds", 1)
        content.setdefault("podMaxBackoffSeconds", content["podInitialBackoffSeconds"])
    return content


def read_config(path: Path) -> dict[str, Any]:
    """Read a KubeSchedulerConfiguration in YAML or JSON."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {(error.strerror or '').lower()}"
        raise _problem(path, "", what, "name a file that can be read") from error
    source = str(path)
    check_size_for_format(len(raw), source, FileFormat.YAML)
    tree = read_yaml(decode_text(raw, source), source)
    if tree.diagnostics:
        (first, *_) = tree.diagnostics
        key = ".".join(map(str, first.path))
        raise _problem(path, key, first.what, first.cure, first.code, line=tree.line_of(first.path))
    content: Any = tree.root
    if not isinstance(content, dict) or content.get("kind") != _CONFIG_KIND:
        what, cure = f"is no {_CONFIG_KIND}", f"write apiVersion: {_CONFIG_API} and the kind"
        raise _problem(path, "kind", what, cure)
    profiles = content.get("profiles")
    if profiles is not None and not (
        isinstance(profiles, list) and all(isinstance(profile, dict) for profile in profiles)
    ):
        cure = "write - schedulerName: NAME for each"
        line = tree.line_of(("profiles",))
        raise _problem(path, "profiles", "is no list of profiles", cure, "wrong-type", line=line)
    return content


def scheduler_names(path: Path) -> tuple[str, ...]:
    """Return the names of schedulers that a configuration serves."""
    profiles = read_config(path).get("profiles") or [{}]
    return tuple(str(profile.get("schedulerName", "default-scheduler")) for profile in profiles)


def start_scheduler(
    scheduler: SchedulerCommand,
    folder: SchedulerFolder,
    settings: SchedulerSettings,
    environment: Mapping[str, str],
    built: Path | None,
) -> StartedScheduler:
    """Start a scheduler that uses the API of the folder.

    ``built`` is the kube-scheduler that runs for the name alone, if none is on the path.
    """
    folder.begin()
    words = _words(scheduler, folder, settings)
    if words[0] == PROGRAM and built is not None:
        words[0] = str(built)
    if shutil.which(words[0]) is None:
        what = f"has no program {words[0]!r}"
        cure = "name a program, or build one: equipoise kube build-scheduler"
        problem = InputProblem(key="--scheduler", what=what, cure=cure, code="unknown-name")
        raise InvalidInput("kube", [problem])
    process = SchedulerProcess(
        words, scheduler.log, environment=dict(os.environ) | dict(environment)
    )
    return StartedScheduler(Path(words[0]).name, process, process.pid, folder.client)


def _words(
    scheduler: SchedulerCommand, folder: SchedulerFolder, settings: SchedulerSettings
) -> list[str]:
    words, given = scheduler.parsed()
    if not any(name in word for word in words for name in _PLACEHOLDERS):
        words.append(f"{_CONFIG_FLAG}={{config}}")
        if not any(word.startswith(_PORT_FLAG) for word in words):
            words.append(f"{_PORT_FLAG}=0")
    values = {"{url}": folder.url, "{port}": folder.url.rpartition(":")[2]}
    if any("{config}" in word for word in words):
        values["{config}"] = str(folder.config(given, settings))
    values["{kubeconfig}"] = str(folder.kubeconfig())
    for name, value in values.items():
        words = [word.replace(name, value) for word in words]
    return words


def _usage(what: str, cure: str) -> InvalidInput:
    return InvalidInput("kube", [InputProblem(key="--scheduler", what=what, cure=cure)])


def _problem(
    path: Path,
    key: str,
    what: str,
    cure: str,
    code: str = "invalid-value",
    *,
    line: int | None = None,
) -> InvalidInput:
    problem = InputProblem(key=key, what=what, cure=cure, code=code, line=line)
    return InvalidInput(str(path), [problem])
