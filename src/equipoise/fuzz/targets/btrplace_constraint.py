"""A constraint of ``btrplace.spec`` in BtrPlace's own words, or the reason why it has none for it.

Each has the name it has there. BtrPlace's resources are the named ones of a cluster, for it has no
others; its ratios are percentages here, and its moments milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.files.btrplace import Numbering, their_resource
from equipoise.spec.demand import Demand

Record = dict[str, Any]
_SECONDS_MAX: Final = 12 * 3600
"""BtrPlace reads moments by a clock with twelve hours."""


class _Wanted(NamedTuple):
    """The arguments of a constraint, and who is who in BtrPlace."""

    arguments: Mapping[str, Any]
    numbers: Numbering
    resources: frozenset[str]
    """The named resources that the cluster has."""

    def vm(self, name: str = "v") -> int:
        return self.numbers.vms[self.arguments[name]]

    def host(self) -> int:
        return self.numbers.hosts[self.arguments["n"]]

    def vms(self) -> list[int]:
        return _numbered(self.arguments["vs"], self.numbers.vms)

    def hosts(self) -> list[int]:
        return _numbered(self.arguments["ns"], self.numbers.hosts)

    def vm_groups(self, name: str) -> list[list[int]]:
        return sorted(_numbered(group, self.numbers.vms) for group in self.arguments[name])

    def host_groups(self) -> list[list[int]]:
        return sorted(_numbered(group, self.numbers.hosts) for group in self.arguments["parts"])

    def resource(self) -> str:
        name = str(self.arguments["id"])
        if name not in self.resources:
            raise Unsupported(f"nobody in the cluster has or takes the resource {name!r} by name")
        return their_resource(name)


def told_constraint(trial: Trial, numbers: Numbering) -> Record | None:
    """Put the constraint of a trial into BtrPlace's words; nothing if it holds there anyway."""
    demand = trial.demand
    name = demand.library_name
    if name is None or name not in _WORDS:
        raise Unsupported(f"BtrPlace has no constraint {demand.name}")
    capacities = (one.capacity for one in trial.initial.hosts.values())
    consumptions = (one.consumption for one in trial.initial.vms.values())
    resources = frozenset(key for some in (*capacities, *consumptions) for key in some)
    told = _WORDS[name](_Wanted(demand.arguments, numbers, resources))
    if name == "ShareableResource":
        if not demand.continuous:
            raise Unsupported("BtrPlace counts what hosts give at every moment")
        return None
    return {"id": _id(name), **told, **_mode(demand)}


def _mode(demand: Demand) -> Record:
    """Whether every moment counts, where this can be said; BtrPlace answers if it may."""
    if demand.name in _TEMPORAL:
        if demand.continuous:
            raise Unsupported(f"{demand.name} is about when things happen, in BtrPlace in one way")
        return {}
    return {"continuous": demand.continuous}


def _id(name: str) -> str:
    return name if name in _CAPITALS else f"{name[0].lower()}{name[1:]}"


def _numbered(names: Iterable[str], numbers: Mapping[str, int]) -> list[int]:
    return sorted(numbers[name] for name in names)


def _of_vm(wanted: _Wanted) -> Record:
    return {"vm": wanted.vm()}


def _of_vms(wanted: _Wanted) -> Record:
    return {"vms": wanted.vms()}


def _of_host(wanted: _Wanted) -> Record:
    return {"node": wanted.host()}


def _of_places(wanted: _Wanted) -> Record:
    return {"vm": wanted.vm(), "nodes": wanted.hosts()}


def _of_number(wanted: _Wanted) -> Record:
    return {"nodes": wanted.hosts(), "amount": wanted.arguments["nb"]}


def _seq(wanted: _Wanted) -> Record:
    return {"vms": [wanted.numbers.vms[name] for name in wanted.arguments["vs"]]}


def _among(wanted: _Wanted) -> Record:
    return {"vms": wanted.vms(), "parts": wanted.host_groups()}


def _split_among(wanted: _Wanted) -> Record:
    return {"vParts": wanted.vm_groups("vs"), "pParts": wanted.host_groups()}


def _resource_capacity(wanted: _Wanted) -> Record:
    amount = wanted.arguments["qty"]
    return {"nodes": wanted.hosts(), "rc": wanted.resource(), "amount": amount}


def _preserve(wanted: _Wanted) -> Record:
    return {"vm": wanted.vm(), "rc": wanted.resource(), "amount": wanted.arguments["amount"]}


def _overbook(wanted: _Wanted) -> Record:
    ratio = wanted.arguments["percent"] / 100
    return {"node": wanted.host(), "rc": wanted.resource(), "ratio": ratio}


def _precedence(wanted: _Wanted) -> Record:
    return {"vm1": wanted.vm("before"), "vm2": wanted.vm("after")}


def _deadline(wanted: _Wanted) -> Record:
    """Actions end at whole seconds, so that part of a second makes no difference."""
    seconds = wanted.arguments["ms"] // 1000
    if not 0 <= seconds < _SECONDS_MAX:
        raise Unsupported("BtrPlace reads moments within the first twelve hours of a plan only")
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return {"vm": wanted.vm(), "timestamp": f"+{hour:02}:{minute:02}:{second:02}"}


_WORDS: Final[Mapping[str, Callable[[_Wanted], Record]]] = {
    "Spread": _of_vms,
    "Gather": _of_vms,
    "Lonely": _of_vms,
    "Split": lambda wanted: {"parts": wanted.vm_groups("parts")},
    "Among": _among,
    "SplitAmong": _split_among,
    "Fence": _of_places,
    "Ban": _of_places,
    "Root": _of_vm,
    "Quarantine": _of_host,
    "Running": _of_vm,
    "Ready": _of_vm,
    "Sleeping": _of_vm,
    "Killed": _of_vm,
    "Online": _of_host,
    "Offline": _of_host,
    "MaxOnline": _of_number,
    "RunningCapacity": _of_number,
    "ResourceCapacity": _resource_capacity,
    "ShareableResource": lambda wanted: {"rc": wanted.resource()},
    "Preserve": _preserve,
    "Overbook": _overbook,
    "Seq": _seq,
    "Sync": _of_vms,
    "NoDelay": _of_vm,
    "Deadline": _deadline,
    "Precedence": _precedence,
    "Serialize": _of_vms,
}
_TEMPORAL: Final = frozenset(("Seq", "Sync", "NoDelay", "Deadline", "Precedence", "Serialize"))
_CAPITALS: Final = frozenset(("Sync", "Deadline", "Precedence", "Serialize"))
"""Those whose names begin with a capital in BtrPlace's files."""
CONSTRAINTS: Final = tuple(_WORDS)
"""What BtrPlace can be asked about."""
