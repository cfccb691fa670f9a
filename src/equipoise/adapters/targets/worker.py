"""A scheduler under test in a separate process: the cluster it reads, its answers in JSON lines.

A cluster has plain values in the units of the model. Rules, pools and reservations are left out,
because most targets cannot express them. Callers verify every answer at the gate.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypedDict, TypeVar

from equipoise.adapters.targets.environment import PYTHON_TARGETS, MissingTarget, find_environment
from equipoise.adapters.targets.scheduler import SchedulerTimeout, UnsupportedTrial
from equipoise.errors import WorldError
from equipoise.model.host import HostState
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState


class HostMessage(TypedDict):
    """A host that is on."""

    id: str
    cores: int
    mhz_per_core: int
    memory_mib: int


class VmMessage(TypedDict):
    """A running VM and its current use."""

    id: str
    host: str
    vcpus: int
    memory_mib: int
    cpu_mhz: float
    memory_used_mib: float


class ClusterMessage(TypedDict):
    """The question to a worker; the options are those of its target."""

    hosts: list[HostMessage]
    vms: list[VmMessage]
    options: dict[str, Any]


def encode_cluster(snapshot: Snapshot, **options: Any) -> ClusterMessage:
    """Encode the hosts that are on and the VMs that run there; demand counts as use."""
    hosts = [host for host in snapshot.hosts.values() if host.state is HostState.ON]
    ids = {host.id for host in hosts}
    return {
        "hosts": [
            {
                "id": host.id,
                "cores": host.cores,
                "mhz_per_core": host.mhz_per_core,
                "memory_mib": host.memory_mib,
            }
            for host in hosts
        ],
        "vms": [
            {
                "id": vm.id,
                "host": vm.host,
                "vcpus": vm.vcpus,
                "memory_mib": vm.memory_mib,
                "cpu_mhz": vm.demand.cpu_mhz,
                "memory_used_mib": vm.demand.memory_mib,
            }
            for vm in snapshot.vms.values()
            if vm.host is not None and vm.host in ids and vm.state is VmState.RUNNING
        ],
        "options": options,
    }


START_S_MAX: Final = 120.0
WORKER_PATH: Final = Path(__file__).parent / "worker_path"
"""The only folder of Equipoise on the module path of a worker."""
_EXIT_S_MAX: Final = 0.5
_STDERR_BYTES_MAX: Final = 2000


@dataclass(frozen=True, slots=True)
class ProposedMove:
    """One migration that a target proposes, with the source host that it assumes."""

    vm: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class ProposedMoves:
    """The migrations that a target proposes, in its order, and its decision time."""

    moves: tuple[ProposedMove, ...]
    seconds: float
    """The time of the decision alone, measured by the worker, without its model and the pipe."""

    def placement(self, before: Mapping[str, str]) -> dict[str, str]:
        """The host of each VM after the moves; a move with a wrong source has no effect."""
        after = dict(before)
        for move in self.moves:
            if after.get(move.vm) == move.source:
                after[move.vm] = move.target
        return after


@dataclass(frozen=True, slots=True)
class TargetCrash:
    """A target raised an error while it decided; its process still runs."""

    what: str


PlanAnswer = ProposedMoves | TargetCrash
AdmissionAnswer = tuple[bool, ...] | TargetCrash
"""Whether each host of the question may take the VM."""
AcceptsAnswer = bool | TargetCrash | UnsupportedTrial | SchedulerTimeout
"""Whether the target accepts a plan."""
OwnPlanAnswer = dict[str, Any] | TargetCrash | UnsupportedTrial | SchedulerTimeout | None
"""A plan in the format of the target; ``None`` if it found no plan."""
PlacementAnswer = dict[str, str] | TargetCrash
"""The host of each placed VM, in the order of the decisions."""
ActionsAnswer = tuple[Mapping[str, Any], ...] | TargetCrash
"""The actions of a target, in its order: each has ``do`` and the machines concerned."""
_Questions = Sequence[Mapping[str, Any]]
_Read = TypeVar("_Read")


class Worker:
    """A long-lived process; end it with ``with`` or ``close``.

    ``line`` is the command that starts it, ``name`` its name in error messages.
    """

    def __init__(
        self,
        line: Sequence[str | Path],
        *,
        name: str,
        start_s_max: float = START_S_MAX,
    ) -> None:
        self._name = name
        self._lost = ""
        self._timed_out = threading.Event()
        # A file, not a pipe: it is read only after the process has ended, and a pipe would fill up.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the worker)
        # Variables such as PYTHONHOME would change the interpreter of the target.
        env = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
        env["PYTHONPATH"] = str(WORKER_PATH)
        try:
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
                start_new_session=True, env=env,
            )  # fmt: skip
        except OSError as error:
            self._stderr.close()
            raise WorldError(f"{self._name} does not start: {error}") from error
        try:
            hello = self._exchange_lines({"ask": "hello"}, start_s_max)
            self.version = str(hello.get("version", ""))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def plan(self, cluster: ClusterMessage, *, seconds_max: float = 300.0) -> PlanAnswer:
        """Return the moves of the target for a cluster; it keeps no state between questions."""
        reply = self._exchange_lines({"ask": "plan", "cluster": cluster}, seconds_max)
        if "crash" in reply:
            return TargetCrash(str(reply["crash"]))
        try:
            moves = tuple(
                ProposedMove(str(move["vm"]), str(move["from"]), str(move["to"]))
                for move in reply["moves"]
            )
            return ProposedMoves(moves, float(reply["seconds"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._fail(f"sent an invalid answer: {json.dumps(reply)[:200]}") from error

    def admits(
        self, questions: _Questions, *, seconds_max: float = 300.0
    ) -> tuple[AdmissionAnswer, ...]:
        """Return which hosts may take a VM; each question has its own answer."""
        return self._ask_each({"ask": "admits"}, questions, seconds_max, _read_admission)

    def place(
        self, questions: _Questions, *, seconds_max: float = 300.0
    ) -> tuple[PlacementAnswer, ...]:
        """Return where the target places VMs; each question has its own answer."""
        return self._ask_each({"ask": "place"}, questions, seconds_max, _read_placement)

    def act(
        self, questions: _Questions, *, seconds_max: float = 300.0
    ) -> tuple[ActionsAnswer, ...]:
        """Return the actions of the target; each question has its own answer."""
        return self._ask_each({"ask": "act"}, questions, seconds_max, _read_actions)

    def accepts(
        self, questions: _Questions, *, each_s_max: int, seconds_max: float = 300.0
    ) -> tuple[AcceptsAnswer, ...]:
        """Return whether the target accepts plans, each within ``each_s_max`` seconds."""
        ask = {"ask": "accepts", "limit_s": each_s_max}
        return self._ask_each(ask, questions, seconds_max, _read_acceptance)

    def checks(
        self, questions: _Questions, *, seconds_max: float = 300.0
    ) -> tuple[AcceptsAnswer, ...]:
        """Return whether the checker of the target accepts plans; it does not search."""
        ask = {"ask": "checks", "limit_s": 0}
        return self._ask_each(ask, questions, seconds_max, _read_acceptance)

    def plans(
        self, questions: _Questions, *, each_s_max: int, seconds_max: float = 300.0
    ) -> tuple[OwnPlanAnswer, ...]:
        """Return the plans that the target makes, each within ``each_s_max`` seconds."""
        ask = {"ask": "plans", "limit_s": each_s_max}
        return self._ask_each(ask, questions, seconds_max, _read_own_plan)

    def _ask_each(
        self,
        ask: Mapping[str, Any],
        questions: _Questions,
        seconds_max: float,
        read: Callable[[Mapping[str, Any]], _Read],
    ) -> tuple[_Read | TargetCrash, ...]:
        reply = self._exchange_lines({**ask, "questions": questions}, seconds_max)
        # A crash of the target is part of one answer. A crash of the whole line is a bug of ours.
        if "crash" in reply:
            raise WorldError(f"{self._name} cannot read a question: {reply['crash']}")
        try:
            return tuple(
                TargetCrash(str(answer["crash"])) if "crash" in answer else read(answer)
                for _, answer in zip(questions, reply["answers"], strict=True)
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._fail(f"sent an invalid answer: {json.dumps(reply)[:200]}") from error

    @property
    def is_timed_out(self) -> bool:
        """Whether the worker was ended because it exceeded its time limit."""
        return self._timed_out.is_set()

    def close(self) -> None:
        """End the process. Further calls have no effect."""
        self._kill()  # first: closing a stream would wait for a process that does not read
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # unsent data is lost, as intended
                if stream is not None:
                    stream.close()
        self._stderr.close()
        self._lost = self._lost or f"{self._name} is closed"

    def _exchange_lines(self, question: Mapping[str, Any], seconds_max: float) -> dict[str, Any]:
        """Send one line and read one line. The time limit kills the process, which ends both."""
        if self._lost:
            raise WorldError(self._lost)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(seconds_max, self._kill_at_time_limit)
        timer.daemon = True
        timer.start()
        line = b""
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            pass  # the process has ended: the line stays empty
        finally:
            timer.cancel()
        if self._timed_out.is_set():
            raise self._fail(f"gave no answer within {seconds_max:g} s")
        if not line.endswith(b"\n"):
            raise self._fail("died")
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise self._fail(f"sent an invalid answer: {line[:200]!r}") from error
        if not isinstance(reply, dict):
            raise self._fail(f"sent an invalid answer: {line[:200]!r}")
        return reply

    def _kill_at_time_limit(self) -> None:
        self._timed_out.set()
        self._kill()

    def _fail(self, how: str) -> WorldError:
        """End the process and return the error, with the end of its standard error."""
        # A process that closed its pipe may be exiting: its own exit code is more precise.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_S_MAX)
        self._kill()
        code = self._process.wait()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - _STDERR_BYTES_MAX))
        output = self._stderr.read().decode(errors="replace").strip()
        ended = f" (exit code {code})" if how == "died" else ""
        self._lost = f"{self._name} {how}{ended}" + (f":\n{output}" if output else "")
        return WorldError(self._lost)

    def _kill(self) -> None:
        """Kill the process and its children: all of them are in the session that it leads."""
        if self._process.returncode is None:  # otherwise another process may have its id
            os.killpg(self._process.pid, signal.SIGKILL)


def _read_admission(answer: Mapping[str, Any]) -> tuple[bool, ...]:
    return tuple(map(bool, answer["passes"]))


def _read_placement(answer: Mapping[str, Any]) -> dict[str, str]:
    return {str(vm): str(host) for vm, host in answer["placed"].items()}


def _read_actions(answer: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return tuple({"do": str(record["do"]), **record} for record in answer["acts"])


def _read_acceptance(answer: Mapping[str, Any]) -> bool | UnsupportedTrial | SchedulerTimeout:
    match answer:
        case {"accepts": bool(accepted)}:
            return accepted
        case {"unsupported": str(reason)}:
            return UnsupportedTrial(reason, "unsupported-constraint")
        case {"late": True}:
            return SchedulerTimeout("the time limit of the question is exceeded")
    raise ValueError("the answer has none of the keys accepts, unsupported and late")


def _read_own_plan(
    answer: Mapping[str, Any],
) -> dict[str, Any] | UnsupportedTrial | SchedulerTimeout | None:
    match answer:
        case {"plan": None}:
            return None
        case {"plan": dict(plan)}:
            return plan
    reason = _read_acceptance(answer)
    if isinstance(reason, bool):
        raise ValueError("the question asks for a plan, the answer accepts or rejects one")
    return reason


def start_worker(name: str) -> Worker:
    """Start the worker of a target; raise ``MissingTarget`` if its environment does not exist."""
    python = find_environment(name)
    if python is None:
        raise missing_environment(name)
    # -s: packages of the user must not enter a pinned environment.
    # -P: modules beside the worker (requests.py, encode.py) must not shadow packages of the target.
    script = PYTHON_TARGETS[name].script
    return Worker([python, "-s", "-P", script], name=f"{name}_worker")


def why_missing(name: str) -> str:
    """Why a target is not available on this machine and how to install it; empty if it is."""
    return "" if find_environment(name) is not None else str(missing_environment(name))


def missing_environment(name: str) -> MissingTarget:
    """The error for a target whose environment does not exist, with its cure."""
    target = PYTHON_TARGETS[name]
    why = f"{target.folder} has no complete environment"
    return MissingTarget(target, why, f"run '{target.command}'")


T = TypeVar("T")


class WorkerClient:
    """Owns a worker and starts another one after a failure; end it with ``with`` or ``close``."""

    def __init__(self, starter: Callable[[], Worker]) -> None:
        self._start_worker = starter
        self._worker: Worker | None = starter()  # at once, so that a missing target fails at once

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker; the next question starts another one."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _ask(self, put: Callable[[Worker], T]) -> T:
        worker = self._worker = self._worker or self._start_worker()
        try:
            return put(worker)
        except WorldError as error:
            self.close()
            if worker.is_timed_out:
                raise SchedulerTimeout(str(error)) from error
            raise
