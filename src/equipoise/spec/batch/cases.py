"""Cases as arrays: the states before the plans, and the steps of the plans.

The last axis of every array is the case. VMs and hosts are numbered within their case in the order
of their names, which is the order in which the language visits the members of a set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, NamedTuple, Self, TypeVar, get_args, overload

import numpy as np
import numpy.typing as npt

from equipoise.model.action import Action, Allocate, kind_of
from equipoise.model.host import HOST_STATES, Host
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import VM_STATES, Vm
from equipoise.spec.evaluate.view import capacity_of, consumption_of, demand_of
from equipoise.spec.requirement import Case

Array = npt.NDArray[Any]
T = TypeVar("T")

NOWHERE: Final = 63
"""The number of the missing host; also its bit in a set of hosts."""
VMS_MAX: Final = 64
HOSTS_MAX: Final = 63
# A quarter of the range: sorting keys double the times and must not overflow.
NEVER: Final = np.iinfo(np.int64).max // 4

VM_CODES: Final = {state: code for code, state in enumerate(VM_STATES)}
HOST_CODES: Final = {state: code for code, state in enumerate(HOST_STATES)}


class Unbatchable(Exception):
    """These cases or this formula cannot be computed as arrays."""


class CaseNumbering(NamedTuple):
    """For each case the numbers of its VMs and hosts by name, in order of the names."""

    vms: Sequence[Mapping[VmId, int]]
    hosts: Sequence[Mapping[Any, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepArrays:
    """The steps of all plans, in the order of each plan; an unused row has ``kind`` -1."""

    kind: Array
    vm: Array
    source: Array
    target: Array
    switched: Array
    resource: Array
    amount: Array
    start_ms: Array
    end_ms: Array


@dataclass(frozen=True)
class LazySequence(Sequence[T]):
    """A sequence whose elements are made when they are read."""

    length: int
    make: Callable[[int], T]

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self.make(number) for number in range(self.length)[index]]
        return self.make(range(self.length)[index])


@dataclass(eq=False)
class CaseArrays:
    """Many cases of a similar size."""

    cases: Sequence[Case]
    vms: int
    """The largest number of VMs in a case."""
    hosts: int
    vm_present: Array
    """For each case the set of its VMs, as bits."""
    host_present: Array
    vm_state: Array
    vm_host: Array
    host_state: Array
    steps: StepArrays
    names: CaseNumbering
    words: dict[str, int] = field(default_factory=lambda: {"": 0})
    """The code of each text: two texts are equal if their codes are equal."""
    _ranks: Array | None = None
    _figures: dict[tuple[str, str], Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.cases)

    @classmethod
    def of(cls, cases: Sequence[Case]) -> CaseArrays:
        """Make the arrays of cases; no action may be under way when they begin."""
        if any(case.initial.in_flight for case in cases):
            raise Unbatchable("an action is under way at the start")
        numbered = cache(_numbered)  # many cases have the same VMs and hosts
        names = CaseNumbering(
            [numbered(tuple(case.initial.vms)) for case in cases],
            [numbered(tuple(case.initial.hosts)) for case in cases],
        )
        vms = max(1, *map(len, names.vms))  # an unused row does no harm
        hosts = max(1, *map(len, names.hosts))
        # Sets are 64-bit words: one bit for each VM; of hosts, one bit is the missing host.
        if vms > VMS_MAX or hosts > HOSTS_MAX:
            raise Unbatchable(f"{vms} VMs and {hosts} hosts are too many")
        words = {"": 0} | {kind.kind: kind.code for kind in _ACTION_FIELDS.values()}
        vm_state, vm_host, host_state = _states(cases, names, vms, hosts)
        return cls(
            cases=cases,
            vms=vms,
            hosts=hosts,
            names=names,
            vm_present=_present(names.vms),
            host_present=_present(names.hosts),
            vm_state=vm_state,
            vm_host=vm_host,
            host_state=host_state,
            steps=_steps(cases, names, words),
            words=words,
        )

    def without_steps(self) -> Self:
        """Return the same cases without their plans."""
        nothing = np.zeros((0, len(self)), np.int64)
        steps = StepArrays(**dict.fromkeys(StepArrays.__slots__, nothing))
        before = LazySequence(len(self), lambda number: Case(self.cases[number].initial))
        return replace(self, cases=before, steps=steps, _ranks=None)

    def text_code(self, text: str) -> int:
        """Return the code of a text; an unknown text gets the next code."""
        return self.words.setdefault(text, len(self.words))

    def of_vms(self, what: str, name: str = "") -> Array:
        """Return a figure of each VM, such as ``cons`` or ``label``, by (VM, case)."""
        return self._figure("vm", what, name)

    def agents(self) -> Array:
        """Return which VMs are agents; most cases have none."""
        if any(vm.agent for case in self.cases for vm in case.initial.vms.values()):
            return self.of_vms("agent").astype(bool)
        return np.zeros((self.vms, len(self)), bool)

    def ranks(self) -> Array:
        """Return the rank of each step in order of time, by (step, case); -1 for an unused row."""
        if self._ranks is None:
            self._ranks = np.full(self.steps.kind.shape, -1, np.int64)
            for column, case in enumerate(self.cases):
                times = ((step.start_ms, step.end_ms, step.id) for step in case.steps)
                in_time = sorted(zip(times, range(len(case.steps)), strict=True))
                for rank, (_, row) in enumerate(in_time):
                    self._ranks[row, column] = rank
        return self._ranks

    def of_hosts(self, what: str, name: str = "") -> Array:
        """Return a figure of each host, ``capa`` or ``label``, by (host, case)."""
        return self._figure("host", what, name)

    def _figure(self, of: str, what: str, name: str) -> Array:
        figure = self._figures.get((f"{what} of {of}", name))
        if figure is None:
            figure = self._gather(of, what, name)
            self._figures[f"{what} of {of}", name] = figure
        return figure

    def _gather(self, of: str, what: str, name: str) -> Array:
        every = self.names.vms if of == "vm" else self.names.hosts
        rows = self.vms if of == "vm" else self.hosts
        read: Callable[[Any, str], Any] = FIGURE_READERS[f"{what} of {of}"]
        table = []
        for case, names in zip(self.cases, every, strict=True):
            elements: Mapping[Any, Any] = case.initial.vms if of == "vm" else case.initial.hosts
            values = [read(elements[element], name) for element in names]
            figures = [
                self.text_code(value) if isinstance(value, str) else value for value in values
            ]
            if any(not -NEVER < figure < NEVER for figure in figures):
                raise Unbatchable(f"a figure of {what} is too large")
            table.append(figures + [0] * (rows - len(figures)))
        return _by_case(table, np.int64)

    def partners(self) -> Array:
        """Return the fault-tolerant partner of each VM, as a set of bits."""
        partners = np.zeros((self.vms, len(self)), np.uint64)
        for column, (case, rows) in enumerate(zip(self.cases, self.names.vms, strict=True)):
            for vm, row in rows.items():
                partner: Any = case.initial.vms[vm].ft_pair
                if partner in rows:
                    partners[row, column] = 1 << rows[partner]
        return partners


def _numbered(names: tuple[Any, ...]) -> dict[Any, int]:
    return {name: number for number, name in enumerate(sorted(names))}


FIGURE_READERS: Final[Mapping[str, Callable[[Any, str], int | str]]] = {
    "cons of vm": consumption_of,
    "demand of vm": demand_of,
    "capa of host": capacity_of,
    "label of vm": lambda vm, key: vm.labels.get(key, ""),
    "label of host": lambda host, key: host.labels.get(key, ""),
    "tenant of vm": lambda vm, _: vm.tenant or "",
    "pool of vm": lambda vm, _: vm.pool or "",
    "agent of vm": lambda vm, _: int(vm.agent),
}
"""How a figure of one VM or host is read."""


def _present(numberings: Sequence[Mapping[Any, int]]) -> Array:
    return np.array([(1 << len(names)) - 1 for names in numberings], np.uint64)


def _states(cases: Sequence[Case], names: CaseNumbering, vms: int, hosts: int) -> Iterator[Array]:
    vm_state, vm_host, host_state = [], [], []
    for case, vm_rows, host_rows in zip(cases, names.vms, names.hosts, strict=True):
        vms_by_name: Mapping[VmId, Vm] = case.initial.vms
        hosts_by_name: Mapping[HostId, Host] = case.initial.hosts
        ordered = [vms_by_name[vm] for vm in vm_rows]
        unused = [NOWHERE] * (vms - len(ordered))
        vm_state.append([VM_CODES[vm.state] for vm in ordered] + unused)
        vm_host.append([host_rows.get(vm.host, NOWHERE) for vm in ordered] + unused)
        states = [HOST_CODES[hosts_by_name[host].state] for host in host_rows]
        host_state.append(states + [NOWHERE] * (hosts - len(states)))
    return (_by_case(rows, np.int8) for rows in (vm_state, vm_host, host_state))


def _by_case(rows: Sequence[Any], kind: Any) -> Array:
    """Return an array of one row for each case, with the cases moved to the last axis."""
    return np.ascontiguousarray(np.moveaxis(np.array(rows, kind), 0, -1))


def _steps(cases: Sequence[Case], names: CaseNumbering, words: dict[str, int]) -> StepArrays:
    most = max((len(case.steps) for case in cases), default=0)
    # Unused rows end after all others, so the sort by time puts them last.
    unused = (-1, -1, NOWHERE, NOWHERE, NOWHERE, -1, 0, NEVER, NEVER)
    every = []
    for case, vms, hosts in zip(cases, names.vms, names.hosts, strict=True):
        rows = [_step(step, vms, hosts, words) for step in case.steps]
        every.append(rows + [unused] * (most - len(rows)))
    shaped = np.array(every, np.int64).reshape(len(cases), most, len(unused))
    fields = np.ascontiguousarray(shaped.transpose(2, 1, 0))
    return StepArrays(**dict(zip(StepArrays.__slots__, fields, strict=True)))


def _step(
    step: Step, vms: Mapping[Any, int], hosts: Mapping[Any, int], words: dict[str, int]
) -> tuple[int, ...]:
    # ``step.footprint`` has the same data, but this runs for every step of every case.
    action: Any = step.action
    _, code, has_vm, has_source, has_target, has_host = _ACTION_FIELDS[type(action)]
    try:
        return (
            code,
            vms[action.vm] if has_vm else -1,
            hosts[action.source] if has_source else NOWHERE,
            hosts[action.target] if has_target else NOWHERE,
            hosts[action.host] if has_host else NOWHERE,
            words.setdefault(action.resource, len(words)) if type(action) is Allocate else -1,
            action.amount if type(action) is Allocate else 0,
            step.start_ms,
            step.end_ms,
        )
    except KeyError as missing:
        raise Unbatchable(f"step {step.id} names {missing}, which the case lacks") from None


class _ActionFields(NamedTuple):
    kind: str
    code: int
    vm: bool
    source: bool
    target: bool
    host: bool


_ACTION_FIELDS: Final = {
    kind: _ActionFields(
        kind_of(kind),
        code,
        *(name in kind.__struct_fields__ for name in ("vm", "source", "target", "host")),
    )
    for code, kind in enumerate(get_args(Action), start=1)
}
"""The fields that the actions of each kind have."""
KIND_CODES: Final = {kind.kind: kind.code for kind in _ACTION_FIELDS.values()}
"""The code of each kind of action."""
