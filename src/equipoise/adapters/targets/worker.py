"""A scheduler under test in a separate process: the cluster it reads, its answers in JSON lines.

A cluster has plain values in the units of the model. Rules, pools and reservations are left out,
because most targets cannot express them. Callers verify every answer at the gate.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypedDict, TypeVar

from equipoise.adapters.line_process import LineProcess
from equipoise.adapters.targets.environment import PYTHON_TARGETS, MissingTarget, find_environment
from equipoise.adapters.targets.scheduler import SchedulerTimeout, UnsupportedTrial
from equipoise.errors import WorldError
from equipoise.model.action import Migrate
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
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


@dataclass(frozen=True, slots=True)
class ProposedMoves:
    """The migrations that a target proposes, in its order, and its decision time."""

    moves: tuple[Migrate, ...]
    """Each with the source host that the target assumes."""
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


class Worker(LineProcess):
    """The long-lived process of a target, with the questions that it answers."""

    def __init__(
        self, line: Sequence[str | Path], *, name: str, start_s_max: float = START_S_MAX
    ) -> None:
        # Variables such as PYTHONHOME would change the interpreter of the target.
        environ = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
        super().__init__(line, name=name, environ={**environ, "PYTHONPATH": str(WORKER_PATH)})
        try:
            hello = self.exchange({"ask": "hello"}, start_s_max)
            self.version = str(hello.get("version", ""))
        except BaseException:
            self.close()
            raise

    def plan(self, cluster: ClusterMessage, *, seconds_max: float = 300.0) -> PlanAnswer:
        """Return the moves of the target for a cluster; it keeps no state between questions."""
        reply = self.exchange({"ask": "plan", "cluster": cluster}, seconds_max)
        if "crash" in reply:
            return TargetCrash(str(reply["crash"]))
        try:
            moves = tuple(
                Migrate(
                    vm=VmId(str(move["vm"])),
                    source=HostId(str(move["from"])),
                    target=HostId(str(move["to"])),
                )
                for move in reply["moves"]
            )
            return ProposedMoves(moves, float(reply["seconds"]))
        except (KeyError, TypeError, ValueError) as error:
            how = f"sent an invalid answer: {json.dumps(reply)[:200]}"
            raise self._fail(how, "worker-answer-invalid") from error

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
        reply = self.exchange({**ask, "questions": questions}, seconds_max)
        # A crash of the target is part of one answer. A crash of the whole line is a bug of ours.
        if "crash" in reply:
            text = f"{self._name} cannot read a question: {reply['crash']}"
            raise WorldError(text, code="worker-question-invalid")
        try:
            return tuple(
                TargetCrash(str(answer["crash"])) if "crash" in answer else read(answer)
                for _, answer in zip(questions, reply["answers"], strict=True)
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            how = f"sent an invalid answer: {json.dumps(reply)[:200]}"
            raise self._fail(how, "worker-answer-invalid") from error


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

    def __exit__(self, *error: object) -> None:
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
