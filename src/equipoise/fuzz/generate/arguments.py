"""Arguments by chance, the unusual ones more often than chance would have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any, Final

from equipoise.fuzz.generate.options import Options
from equipoise.model.plan import Step
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import ResourceName
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.spec.language.syntax import Binding, Constraint, Name, Parameter

VALUES: Final = ("a", "b")
TENANTS: Final = ("a", "b")
_TAKEN: Final = (0.4, 0.75)
"""How many of those who could be in a set are in it: of the idle ones, and of the others."""
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "kind": tuple(kind.value for kind in ActionKind),
    "name": (*TENANTS, "nobody"),
}
_NUMBERS: Final[dict[str, tuple[int, ...]]] = {
    "percent": (0, 33, 50, 67, 100, 150),
    "ms": (0, 500, 1000, 2000, 3000, 5000),
}


class Nobody(Exception):
    """There is nobody whom an argument could name."""


def draw_arguments(
    rng: Random, constraint: Constraint, initial: Snapshot, steps: Iterable[Step], options: Options
) -> dict[str, Any]:
    """Values for all arguments of a constraint; numbers last, for they are about the others.

    Whoever has to do with the plan is named more often: else it would seldom make a difference.
    """
    drawer = _Drawer(rng, initial, steps, options)
    for one in sorted(constraint.parameters, key=_is_number):
        drawer.draw(one)
    return {one.name: drawer.drawn[one.name] for one in constraint.parameters}


def _is_number(parameter: Parameter) -> bool:
    return isinstance(parameter.domain, Name) and parameter.domain.name == "int"


class _Drawer:
    def __init__(
        self, rng: Random, initial: Snapshot, steps: Iterable[Step], options: Options
    ) -> None:
        self._rng = rng
        self._running = [vm for vm in initial.vms.values() if vm.state is VmState.RUNNING]
        self._vms = list(initial.vms)
        self._hosts = list(initial.hosts)
        touched = [step.footprint for step in steps]
        self._busy = {name for one in touched for name in (one.vm, *one.hosts)}
        self._options = options
        self.drawn: dict[str, Any] = {}

    def draw(self, parameter: Parameter) -> None:
        """Find a value for one argument."""
        self.drawn[parameter.name] = self._value(parameter)

    def _value(self, parameter: Parameter) -> Any:
        if not isinstance(parameter.domain, Name):  # the lists of VMs: any order of some of them
            some = sorted(self._subset(self._vms))
            self._rng.shuffle(some)
            return tuple(some)
        members = self._members(parameter.name, parameter.domain.name)
        match parameter.binding:
            case Binding.SUBSET:
                return self._subset(members)
            case Binding.PACKING:
                return self._packing(members)
        if not members:
            raise Nobody(parameter.name)
        busy = [one for one in members if one in self._busy]
        is_busy = busy and self._rng.random() < self._options.busy
        return self._rng.choice(busy if is_busy else members)

    def _is_unusual(self) -> bool:
        return self._rng.random() < self._options.unusual

    def _members(self, name: str, domain: str) -> Sequence[Any]:
        if domain in ("vms", "hosts"):
            return self._vms if domain == "vms" else self._hosts
        if name in self._options.given:
            return self._options.given[name]
        if domain == "int":
            return _NUMBERS.get(name) or sorted({0, *self._tight()})
        if name == "key":
            return (*self._options.labels, "colour")
        if name == "id":
            return ("cpu", "memory", *self._options.resources, "unheard-of")
        return _WORDS.get(name, (*VALUES, ""))

    def _tight(self) -> Iterator[int]:
        """Numbers that are just enough for what is there, or just not."""
        for some in self.drawn.values():
            if isinstance(some, frozenset):
                there = [vm for vm in self._running if vm.host in some]
                resource = ResourceName(str(self.drawn.get("id")))
                amounts = sum(vm.consumption.get(resource, 0) for vm in there)
                for figure in (len(some), len(there), amounts):
                    yield from (max(0, figure - 1), figure, figure + 1)
        yield from range(3)

    def _subset(self, members: Sequence[Any]) -> frozenset[Any]:
        rng = self._rng
        if not self._is_unusual():
            return frozenset(one for one in members if rng.random() < _TAKEN[one in self._busy])
        size = rng.choice((0, min(1, len(members)), len(members)))
        return frozenset(rng.sample(list(members), size))

    def _packing(self, members: Sequence[Any]) -> frozenset[frozenset[Any]]:
        rng = self._rng
        if self._is_unusual():
            whole = [frozenset(members)] if members else []
            return frozenset(rng.choice(([], whole, [frozenset({one}) for one in members])))
        groups: dict[int, set[Any]] = {}
        count = rng.randint(1, max(1, len(members)))
        for one in members:
            groups.setdefault(rng.randint(0, count), set()).add(one)
        groups.pop(0, None)  # these are in no group
        return frozenset(map(frozenset, groups.values()))
