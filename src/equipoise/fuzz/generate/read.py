"""One trial of those that were drawn together: from numbers to what people and schedulers read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, cast

from equipoise.fuzz.generate.draw.numbers import (
    ALLOCATE,
    AMOUNT,
    AT,
    BOOT,
    CHOICE,
    END,
    ENTER,
    FORGE,
    HOST_GROUPS,
    KILL,
    KIND,
    LEAVE,
    MBPS,
    MIGRATE,
    NO_LIMIT,
    NONE,
    NUMBER,
    ONE_HOST,
    ONE_VM,
    POWER_OFF,
    POWER_ON,
    REINSTANTIATE,
    RESOURCE,
    RESUME,
    SHUTDOWN,
    SOME_CHOICES,
    SOME_HOSTS,
    SOME_VMS,
    SOURCE,
    START,
    SUSPEND,
    SWITCH,
    TARGET,
    TO,
    VM,
    VM_GROUPS,
    VM_LIST,
    Trials,
)
from equipoise.fuzz.generate.options import Options
from equipoise.fuzz.generate.parameters import Drawable
from equipoise.fuzz.generate.usual import USUAL_HOST, USUAL_VM
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    Kill,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.columns import HOST_STATES, VM_STATES
from equipoise.model.host import Host
from equipoise.model.inventory import Settings
from equipoise.model.plan import Step
from equipoise.model.problem.network import Link, Network, Switch
from equipoise.model.quantity import HostId, ResourceName, StepId, TenantId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm
from equipoise.spec.batch.cases import Array
from equipoise.spec.demand import Demand
from equipoise.spec.specification import Specification

SECOND_MS: Final = 1000


@dataclass(frozen=True)
class Source:
    """What trials are drawn from."""

    home: Specification
    name: str
    options: Options
    parameters: tuple[Drawable, ...]
    settings: Settings
    """What all clusters have."""

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """The resources, in the order of their columns."""
        return tuple(self.options.resources)

    @cached_property
    def labels(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The labels with their values, in the order of their columns."""
        return tuple(self.options.labels.items())

    @cached_property
    def labelled(self) -> Callable[[tuple[int, ...]], Mapping[str, str]]:
        """The labels of a machine by their numbers; there are not many, and each is made once."""

        @lru_cache(maxsize=1 << 16)
        def read(row: tuple[int, ...]) -> Mapping[str, str]:
            both = zip(self.labels, row, strict=True)
            return FrozenMap({key: values[value - 1] for (key, values), value in both if value})

        return read


class _VmRow(NamedTuple):
    """A VM in numbers."""

    state: int
    host: int
    label: list[int]
    tenant: int
    consumption: list[int]
    agent: bool
    replaceable: bool
    pair: int


class Reader:
    """Reads one trial."""

    def __init__(self, source: Source, out: Trials, i: int) -> None:
        self.source, self._out, self._i = source, out, i
        hosts, vms, self._steps = out.counts[i].tolist()
        self.hosts: Sequence[HostId] = cast(Sequence[HostId], names("h", hosts))
        self.vms: Sequence[VmId] = cast(Sequence[VmId], names("v", vms))

    def trial(self) -> Trial:
        """The whole trial."""
        source = self.source
        out = self._out
        of_hosts = self._rows(len(self.hosts), out.host_state, out.host_label, out.capacity)
        of_vms = self._rows(
            len(self.vms), out.vm_state, out.vm_host, out.vm_label, out.tenant, out.consumption,
            out.agent, out.replaceable, out.pair,
        )  # fmt: skip
        named = zip(self.hosts, of_hosts, strict=True)
        hosts = FrozenMap({name: self._host(name, *row) for name, row in named})
        called = zip(self.vms, of_vms, strict=True)
        vms = FrozenMap({name: self._vm(name, _VmRow(*row)) for name, row in called})
        snapshot = Snapshot(hosts=hosts, vms=vms, settings=source.settings)
        continuous = bool(self._out.continuous[self._i])
        demand = Demand(source.home, source.name, self.arguments(), continuous)
        return Trial(demand, snapshot, self._plan(), self._network())

    def arguments(self) -> dict[str, Any]:
        """The arguments of its constraint."""
        return {
            one.name: self._argument(one, self._out.arguments[self._i, place].tolist())
            for place, one in enumerate(self.source.parameters)
        }

    def _host(self, name: HostId, state: int, label: list[int], capacity: list[int]) -> Host:
        amounts = zip(self.source.resources, capacity, strict=True)
        return USUAL_HOST.but(
            id=name,
            state=HOST_STATES[state],
            labels=self.source.labelled(tuple(label)),
            capacity={key: amount for key, amount in amounts if amount != NONE},
        )

    def _vm(self, name: VmId, row: _VmRow) -> Vm:
        source = self.source
        return USUAL_VM.but(
            id=name,
            state=VM_STATES[row.state],
            host=None if row.host == NONE else self.hosts[row.host],
            consumption=dict(zip(source.resources, row.consumption, strict=True)),
            tenant=None if row.tenant == NONE else TenantId(source.options.tenants[row.tenant]),
            replaceable=row.replaceable,
            agent=row.agent,
            ft_pair=None if row.pair == NONE else self.vms[row.pair],
            labels=source.labelled(tuple(row.label)),
        )

    def _rows(self, count: int, *arrays: Array) -> Iterator[tuple[Any, ...]]:
        """What some arrays say of each of the first machines: lists are read faster than arrays."""
        return zip(*(array[self._i, :count].tolist() for array in arrays), strict=True)

    def _plan(self) -> tuple[Step, ...]:
        rows = self._out.steps[self._i, : self._steps].tolist()
        return tuple(
            Step(
                id=StepId(name),
                action=_ACTIONS[row[KIND]](self, row),
                start_ms=SECOND_MS * row[START],
                end_ms=SECOND_MS * row[END],
            )
            for name, row in zip(names("s", len(rows)), rows, strict=True)
        )

    def _network(self) -> Network | None:
        limits = [limit for limit in self._out.switches[self._i].tolist() if limit != NONE]
        if not limits:
            return None
        switches = [ResourceName(name) for name in names("sw", len(limits))]
        rows = self._out.links[self._i].tolist()
        there = [(place, row) for place, row in enumerate(rows) if row[MBPS]]
        first = self._out.host_state.shape[1]
        """From here on, links lead from switch to switch."""
        return Network(
            switches=tuple(
                Switch(id=name, capacity_mbps=None if limit == NO_LIMIT else limit)
                for name, limit in zip(switches, limits, strict=True)
            ),
            links=tuple(
                Link(
                    id=ResourceName(name),
                    switch=switches[row[AT]],
                    host=self.hosts[row[TO]] if place < first else None,
                    to=None if place < first else switches[row[TO]],
                    capacity_mbps=row[MBPS],
                )
                for name, (place, row) in zip(names("l", len(there)), there, strict=True)
            ),
        )

    def _argument(self, one: Drawable, row: list[int]) -> Any:
        members: Sequence[Any] = self.hosts if one.what in _ABOUT_HOSTS else self.vms
        return _READ[one.what](one.choices or members, row)


@lru_cache(maxsize=1 << 10)
def names(letter: str, count: int) -> tuple[str, ...]:
    """Names of which the order is that of their numbers."""
    width = len(str(count))
    return tuple(f"{letter}{number:0{width}}" for number in range(1, count + 1))


def _some(members: Sequence[Any], row: list[int]) -> Any:
    return frozenset(one for one, there in zip(members, row, strict=False) if there)


def _groups(members: Sequence[Any], row: list[int]) -> Any:
    groups: dict[int, set[Any]] = {}
    for one, group in zip(members, row, strict=False):
        if group:
            groups.setdefault(group, set()).add(one)
    return frozenset(map(frozenset, groups.values()))


def _list(members: Sequence[Any], row: list[int]) -> Any:
    return tuple(members[one - 1] for one in row if one)


def _one(members: Sequence[Any], row: list[int]) -> Any:
    return members[row[0]]


def _number(_: Sequence[Any], row: list[int]) -> Any:
    return row[0]


_READ: Final[Mapping[int, Callable[[Sequence[Any], list[int]], Any]]] = {
    SOME_VMS: _some,
    SOME_HOSTS: _some,
    SOME_CHOICES: _some,
    VM_GROUPS: _groups,
    HOST_GROUPS: _groups,
    VM_LIST: _list,
    ONE_VM: _one,
    ONE_HOST: _one,
    CHOICE: _one,
    NUMBER: _number,
}
"""How the numbers of an argument are read, by what it is."""
_ABOUT_HOSTS: Final = frozenset({SOME_HOSTS, HOST_GROUPS, ONE_HOST})


def _way(kind: Callable[..., Action], **columns: int) -> Callable[[Reader, list[int]], Action]:
    """How an action of a VM is read, by the columns of its hosts."""

    def read(reader: Reader, row: list[int]) -> Action:
        hosts = {name: reader.hosts[row[column]] for name, column in columns.items()}
        return kind(vm=reader.vms[row[VM]], **hosts)

    return read


def _switch(kind: Callable[..., Action]) -> Callable[[Reader, list[int]], Action]:
    return lambda reader, row: kind(host=reader.hosts[row[SWITCH]])


def _allocate(reader: Reader, row: list[int]) -> Action:
    resource = ResourceName(reader.source.resources[row[RESOURCE]])
    return Allocate(vm=reader.vms[row[VM]], resource=resource, amount=row[AMOUNT])


_ACTIONS: Final[Mapping[int, Callable[[Reader, list[int]], Action]]] = {
    FORGE: _way(Forge),
    KILL: _way(Kill),
    BOOT: _way(Boot, target=TARGET),
    SHUTDOWN: _way(Shutdown, source=SOURCE),
    SUSPEND: _way(Suspend, source=SOURCE),
    MIGRATE: _way(Migrate, source=SOURCE, target=TARGET),
    REINSTANTIATE: _way(Reinstantiate, source=SOURCE, target=TARGET),
    RESUME: _way(Resume, source=SOURCE, target=TARGET),
    ALLOCATE: _allocate,
    POWER_ON: _switch(PowerOn),
    POWER_OFF: _switch(PowerOff),
    ENTER: _switch(EnterMaintenance),
    LEAVE: _switch(LeaveMaintenance),
}
"""How the numbers of a step are read, by its kind."""
