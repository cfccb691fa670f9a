"""Short trials for targets that make plans of moves, and a worker that says what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from builders import a_cluster, a_host, a_vm
from equipoise.fuzz.targets import Crashed, Worker
from equipoise.fuzz.trial import Trial
from equipoise.model.host import Host
from equipoise.model.vm import Vm
from equipoise.spec.demand import Demand
from equipoise.spec.library import library_constraints

HOST = {"vcpus": 8, "memory_gib": 4, "disk_gb": 8}
VM = {"vcpus": 1, "memory_gib": 2, "disk_gb": 1}


def node(name: str, **fields: Any) -> Host:
    """A host with room for two guests."""
    return a_host(name, **{"capacity": HOST, **fields})


def guest(name: str, host: str | None, **fields: Any) -> Vm:
    """A VM of usual size."""
    return a_vm(name, host, **{"consumption": VM, **fields})


def asked(
    name: str, hosts: Iterable[Host], vms: Iterable[Vm], *, continuous: bool = False, **about: Any
) -> Trial:
    """A trial without a plan; sets may be given as lists."""
    given = {
        key: frozenset(value) if isinstance(value, list) else value for key, value in about.items()
    }
    demand = Demand(library_constraints()[name], name, given, continuous)
    return Trial(demand, a_cluster(*hosts, vms=vms), ())


def migrate(vm: str, source: str, target: str | None, **more: Any) -> dict[str, Any]:
    return {"do": "migrate", "vm": vm, "from": source, "to": target, **more}


class Saying:
    """A worker that always gives the same answer, and remembers the questions."""

    is_late = False

    def __init__(self, *acts: Mapping[str, Any], crash: str = "") -> None:
        self._acts, self._crash = acts, crash
        self.heard: list[Mapping[str, Any]] = []

    def act(self, questions: Sequence[Mapping[str, Any]], **_: Any) -> Sequence[Any]:
        self.heard += questions
        return [Crashed(self._crash) if self._crash else self._acts for _ in questions]

    def close(self) -> None:
        pass

    @property
    def begin(self) -> Callable[[], Worker]:
        return lambda: cast(Worker, self)
