"""Decoding: one drawn trial from its array rows to the objects of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, cast

from equipoise.adapters.targets.trial import Trial, TrialOptions
from equipoise.fuzz.generate.draw.trial_arrays import (
    ALLOCATE,
    AMOUNT,
    AT,
    BOOT,
    CHOICE,
    DEFAULT_HOST,
    DEFAULT_VM,
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
    TrialArrays,
)
from equipoise.fuzz.generate.parameters import DrawableParameter
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
from equipoise.model.host import HOST_STATES, Host
from equipoise.model.inventory import ClusterSettings
from equipoise.model.plan import Step
from equipoise.model.problem.problem import Network, NetworkLink, NetworkSwitch
from equipoise.model.quantity import HostId, ResourceName, StepId, TenantId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VM_STATES, Vm
from equipoise.spec.batch.cases import Array
from equipoise.spec.requirement import Requirement
from equipoise.spec.specification import Specification

SECOND_MS: Final = 1000


@dataclass(frozen=True)
class TrialSource:
    """The constraint and the options of drawn trials."""

    specification: Specification
    name: str
    options: TrialOptions
    parameters: tuple[DrawableParameter, ...]
    settings: ClusterSettings
    """The settings of all clusters."""

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
        """The labels of a machine by their numbers; cached, because few combinations occur."""

        @lru_cache(maxsize=1 << 16)
        def decode(row: tuple[int, ...]) -> Mapping[str, str]:
            pairs = zip(self.labels, row, strict=True)
            return FrozenMap({key: values[value - 1] for (key, values), value in pairs if value})

        return decode


class _VmRow(NamedTuple):
    """The numbers of one VM in the arrays."""

    state: int
    host: int
    label: list[int]
    tenant: int
    consumption: list[int]
    agent: bool
    replaceable: bool
    pair: int


class TrialDecoder:
    """Decodes one trial."""

    def __init__(self, source: TrialSource, out: TrialArrays, i: int) -> None:
        self.source, self._out, self._i = source, out, i
        hosts, vms, self._steps = out.counts[i].tolist()
        self.hosts: Sequence[HostId] = cast(Sequence[HostId], numbered_names("h", hosts))
        self.vms: Sequence[VmId] = cast(Sequence[VmId], numbered_names("v", vms))

    def trial(self) -> Trial:
        """The whole trial."""
        source = self.source
        out = self._out
        of_hosts = self._rows(len(self.hosts), out.host_state, out.host_label, out.capacity)
        of_vms = self._rows(
            len(self.vms), out.vm_state, out.vm_host, out.vm_label, out.tenant, out.consumption,
            out.agent, out.replaceable, out.pair,
        )  # fmt: skip
        host_rows = zip(self.hosts, of_hosts, strict=True)
        hosts = FrozenMap({name: self._host(name, *row) for name, row in host_rows})
        vm_rows = zip(self.vms, of_vms, strict=True)
        vms = FrozenMap({name: self._vm(name, _VmRow(*row)) for name, row in vm_rows})
        snapshot = Snapshot(hosts=hosts, vms=vms, settings=source.settings)
        continuous = bool(self._out.continuous[self._i])
        demand = Requirement(source.specification, source.name, self.arguments(), continuous)
        return Trial(demand, snapshot, self._plan(), self._network())

    def arguments(self) -> dict[str, Any]:
        """The arguments of the constraint."""
        return {
            parameter.name: self._argument(parameter, self._out.arguments[self._i, i].tolist())
            for i, parameter in enumerate(self.source.parameters)
        }

    def _host(self, name: HostId, state: int, label: list[int], capacity: list[int]) -> Host:
        amounts = zip(self.source.resources, capacity, strict=True)
        return DEFAULT_HOST.but(
            id=name,
            state=HOST_STATES[state],
            labels=self.source.labelled(tuple(label)),
            capacity={key: amount for key, amount in amounts if amount != NONE},
        )

    def _vm(self, name: VmId, row: _VmRow) -> Vm:
        source = self.source
        return DEFAULT_VM.but(
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
        """The rows of some arrays for the first machines, as lists: those are read faster."""
        return zip(*(array[self._i, :count].tolist() for array in arrays), strict=True)

    def _plan(self) -> tuple[Step, ...]:
        rows = self._out.steps[self._i, : self._steps].tolist()
        return tuple(
            Step(
                id=StepId(name),
                action=_ACTION_DECODERS[row[KIND]](self, row),
                start_ms=SECOND_MS * row[START],
                end_ms=SECOND_MS * row[END],
            )
            for name, row in zip(numbered_names("s", len(rows)), rows, strict=True)
        )

    def _network(self) -> Network | None:
        limits = [limit for limit in self._out.switches[self._i].tolist() if limit != NONE]
        if not limits:
            return None
        switches = [ResourceName(name) for name in numbered_names("sw", len(limits))]
        rows = self._out.links[self._i].tolist()
        links = [(i, row) for i, row in enumerate(rows) if row[MBPS]]
        # The links of hosts come first; from here on, links are between switches.
        first = self._out.host_state.shape[1]
        return Network(
            switches=tuple(
                NetworkSwitch(id=name, capacity_mbps=None if limit == NO_LIMIT else limit)
                for name, limit in zip(switches, limits, strict=True)
            ),
            links=tuple(
                NetworkLink(
                    id=ResourceName(name),
                    switch=switches[row[AT]],
                    host=self.hosts[row[TO]] if i < first else None,
                    to=None if i < first else switches[row[TO]],
                    capacity_mbps=row[MBPS],
                )
                for name, (i, row) in zip(numbered_names("l", len(links)), links, strict=True)
            ),
        )

    def _argument(self, parameter: DrawableParameter, row: list[int]) -> Any:
        members: Sequence[Any] = self.hosts if parameter.what in _ABOUT_HOSTS else self.vms
        return _DECODERS[parameter.what](parameter.choices or members, row)


@lru_cache(maxsize=1 << 10)
def numbered_names(letter: str, count: int) -> tuple[str, ...]:
    """Names with equal widths, so that their order is that of their numbers."""
    width = len(str(count))
    return tuple(f"{letter}{number:0{width}}" for number in range(1, count + 1))


def _some(members: Sequence[Any], row: list[int]) -> Any:
    return frozenset(member for member, chosen in zip(members, row, strict=False) if chosen)


def _groups(members: Sequence[Any], row: list[int]) -> Any:
    groups: dict[int, set[Any]] = {}
    for member, group in zip(members, row, strict=False):
        if group:
            groups.setdefault(group, set()).add(member)
    return frozenset(map(frozenset, groups.values()))


def _list(members: Sequence[Any], row: list[int]) -> Any:
    return tuple(members[number - 1] for number in row if number)


def _one(members: Sequence[Any], row: list[int]) -> Any:
    return members[row[0]]


def _number(_: Sequence[Any], row: list[int]) -> Any:
    return row[0]


_DECODERS: Final[Mapping[int, Callable[[Sequence[Any], list[int]], Any]]] = {
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
"""The decoders of arguments by their kind."""
_ABOUT_HOSTS: Final = frozenset({SOME_HOSTS, HOST_GROUPS, ONE_HOST})


def _vm_action(
    kind: Callable[..., Action], **columns: int
) -> Callable[[TrialDecoder, list[int]], Action]:
    """The decoder of an action of a VM, with the columns of its hosts."""

    def decode(decoder: TrialDecoder, row: list[int]) -> Action:
        hosts = {name: decoder.hosts[row[column]] for name, column in columns.items()}
        return kind(vm=decoder.vms[row[VM]], **hosts)

    return decode


def _host_action(kind: Callable[..., Action]) -> Callable[[TrialDecoder, list[int]], Action]:
    return lambda decoder, row: kind(host=decoder.hosts[row[SWITCH]])


def _allocate(decoder: TrialDecoder, row: list[int]) -> Action:
    resource = ResourceName(decoder.source.resources[row[RESOURCE]])
    return Allocate(vm=decoder.vms[row[VM]], resource=resource, amount=row[AMOUNT])


_ACTION_DECODERS: Final[Mapping[int, Callable[[TrialDecoder, list[int]], Action]]] = {
    FORGE: _vm_action(Forge),
    KILL: _vm_action(Kill),
    BOOT: _vm_action(Boot, target=TARGET),
    SHUTDOWN: _vm_action(Shutdown, source=SOURCE),
    SUSPEND: _vm_action(Suspend, source=SOURCE),
    MIGRATE: _vm_action(Migrate, source=SOURCE, target=TARGET),
    REINSTANTIATE: _vm_action(Reinstantiate, source=SOURCE, target=TARGET),
    RESUME: _vm_action(Resume, source=SOURCE, target=TARGET),
    ALLOCATE: _allocate,
    POWER_ON: _host_action(PowerOn),
    POWER_OFF: _host_action(PowerOff),
    ENTER: _host_action(EnterMaintenance),
    LEAVE: _host_action(LeaveMaintenance),
}
"""The decoders of steps by their kind."""
