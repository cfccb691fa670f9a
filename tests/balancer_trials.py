"""Short trials for targets that make plans of moves, and a worker with fixed answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from builders import a_cluster, a_host, a_vm
from equipoise.adapters.targets.worker import TargetCrash, Worker
from equipoise.fuzz.trial import Trial
from equipoise.model.host import Host
from equipoise.model.vm import Vm
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Requirement

HOST = {"vcpus": 8, "memory_gib": 4, "disk_gb": 8}
VM = {"vcpus": 1, "memory_gib": 2, "disk_gb": 1}


def node(name: str, **fields: Any) -> Host:
    """A host with room for two guests."""
    return a_host(name, **{"capacity": HOST, **fields})


def guest(name: str, host: str | None, **fields: Any) -> Vm:
    """A VM of usual size."""
    return a_vm(name, host, **{"consumption": VM, **fields})


def a_balancer_trial(
    name: str, hosts: Iterable[Host], vms: Iterable[Vm], *, continuous: bool = False, **about: Any
) -> Trial:
    """A trial without a plan; sets may be given as lists."""
    given = {
        key: frozenset(value) if isinstance(value, list) else value for key, value in about.items()
    }
    demand = Requirement(library_constraints()[name], name, given, continuous)
    return Trial(demand, a_cluster(*hosts, vms=vms), ())


def migrate(vm: str, source: str, target: str | None, **more: Any) -> dict[str, Any]:
    return {"do": "migrate", "vm": vm, "from": source, "to": target, **more}


class FixedAnswerWorker:
    """A worker that always gives the same answer, and remembers the questions."""

    is_timed_out = False

    def __init__(self, *acts: Mapping[str, Any], crash: str = "") -> None:
        self._acts, self._crash = acts, crash
        self.questions: list[Mapping[str, Any]] = []

    def act(self, questions: Sequence[Mapping[str, Any]], **_: Any) -> Sequence[Any]:
        self.questions += questions
        return [TargetCrash(self._crash) if self._crash else self._acts for _ in questions]

    def close(self) -> None:
        pass

    @property
    def starter(self) -> Callable[[], Worker]:
        return lambda: cast(Worker, self)
