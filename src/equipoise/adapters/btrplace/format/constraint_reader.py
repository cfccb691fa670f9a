"""The constraints of an instance: a goal for the state of one VM or host, otherwise a rule.

A rule has kind ``satisfy`` and names a constraint of the library, which has those of BtrPlace
under their own names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from equipoise.adapters.btrplace.format import records
from equipoise.adapters.btrplace.format.model_reader import (
    InstancePlacement,
    InstanceViews,
    report_unknown_node,
)
from equipoise.adapters.btrplace.format.numbering import from_btrplace_resource
from equipoise.model.diagnostics import Diagnostics, KeyPath
from equipoise.model.problem import DesiredHostState, DesiredVmState
from equipoise.model.quantity import RuleId
from equipoise.model.rule import Argument, Satisfy

_SECONDS_MAX: Final = 10**9
_TIMESTAMP_PARTS: Final = re.compile(r"[0-9]{1,9}(?::[0-9]{1,9}){0,2}")


class InvalidTimestamp(NamedTuple):
    """Why a timestamp cannot be used: the error, the fix and the code."""

    what: str
    cure: str
    code: str


def parse_timestamp_ms(timestamp: int | str) -> int | InvalidTimestamp:
    """Return a timestamp in milliseconds from the start of the plan.

    ``+H:M:S``, ``+M:S``, ``+S`` and a number of seconds count from the start of the plan.
    """
    text = str(timestamp).strip()
    parts = text.removeprefix("+")
    if not _TIMESTAMP_PARTS.fullmatch(parts):
        cure = "hours, minutes and seconds from the start of the plan: +0:10:00"
        return InvalidTimestamp("the timestamp cannot be read", cure, "invalid-value")
    if ":" in parts and parts == text:
        what = f"without a + {text} is a time of day, but a plan has no time of day"
        cure = "count from the start of the plan: +0:10:00 is after ten minutes"
        return InvalidTimestamp(what, cure, "unsupported-feature")
    seconds = 0
    for part in parts.split(":"):
        seconds = 60 * seconds + int(part)
    if seconds > _SECONDS_MAX:
        what = f"{seconds} seconds are too many"
        return InvalidTimestamp(what, f"at most {_SECONDS_MAX}", "out-of-range")
    return 1000 * seconds


class NameResolver:
    """Returns the ids of BtrPlace's numbers, and reports numbers that refer to nothing."""

    def __init__(
        self, placement: InstancePlacement, views: InstanceViews, diagnostics: Diagnostics
    ) -> None:
        self.path: KeyPath = ()
        """The path of the constraint that is being read."""
        self._placement, self._views, self._diagnostics = placement, views, diagnostics
        self._host_names: dict[records.ElementNumbers, tuple[str, ...]] = {}
        self._host_group_names: dict[records.ElementGroups, tuple[tuple[str, ...], ...]] = {}

    def vm(self, number: int, *key: str | int) -> str:
        """Return the id of a VM."""
        name = self._placement.vms.get(number)
        if name is None:
            cure = "list it in readyVMs, or add a constraint on its state"
            self._report(key or ("vm",), f"there is no VM {number}", cure, "unknown-name")
        return name or ""

    def vms(self, numbers: records.ElementNumbers, *key: str | int) -> tuple[str, ...]:
        """Return the ids of VMs, each once."""
        path = key or ("vms",)
        names = [self.vm(number, *path, position) for position, number in enumerate(numbers)]
        return tuple(dict.fromkeys(names))

    def vm_sequence(self, numbers: records.ElementNumbers) -> tuple[str, ...]:
        """Return the ids of VMs in a sequence; report a VM that is in it twice."""
        if len(set(numbers)) < len(numbers):
            self._report(("vms",), "a VM is listed twice", "list every VM once", "duplicate-name")
        return self.vms(numbers)

    def host(self, number: int, *key: str | int) -> str:
        """Return the id of a node."""
        name = self._placement.hosts.get(number)
        if name is None:
            report_unknown_node(number, (*self.path, *(key or ("node",))), self._diagnostics)
        return name or ""

    def hosts(self, numbers: records.ElementNumbers, *key: str | int) -> tuple[str, ...]:
        """Return the ids of nodes. Equal lists give the same object, to save memory."""
        known = self._host_names.get(numbers)
        if known is None:
            path = key or ("nodes",)
            count_before = len(self._diagnostics)
            names = [self.host(number, *path, position) for position, number in enumerate(numbers)]
            known = tuple(dict.fromkeys(names))
            if len(self._diagnostics) == count_before:  # a problem is reported at every use
                self._host_names[numbers] = known
        return known

    def vm_groups(self, groups: records.ElementGroups, key: str) -> tuple[tuple[str, ...], ...]:
        """Return the ids of VMs in disjoint groups."""
        self._check_disjoint(groups, key, "VM")
        named = [self.vms(group, key, position) for position, group in enumerate(groups)]
        return tuple(dict.fromkeys(named))

    def host_groups(self, groups: records.ElementGroups, key: str) -> tuple[tuple[str, ...], ...]:
        """Return the ids of nodes in disjoint groups."""
        known = self._host_group_names.get(groups)
        if known is None:
            count_before = len(self._diagnostics)
            self._check_disjoint(groups, key, "node")
            named = [self.hosts(group, key, position) for position, group in enumerate(groups)]
            known = tuple(dict.fromkeys(named))
            if len(self._diagnostics) == count_before:
                self._host_group_names[groups] = known
        return known

    def resource(self, name: str) -> str:
        """Return the name of a resource in the model."""
        known = self._views.resources
        if name not in known:
            self._diagnostics.add_unknown((*self.path, "rc"), "resource", name, known)
        return from_btrplace_resource(name)

    def deadline_ms(self, timestamp: int | str) -> int:
        """Return a timestamp in milliseconds from the start of the plan."""
        deadline = parse_timestamp_ms(timestamp)
        if isinstance(deadline, int):
            return deadline
        self._report(("timestamp",), deadline.what, deadline.cure, deadline.code)
        return 0

    def check_overbooked(self, constraint: records.OverbookConstraint) -> None:
        """Report a ratio with which a node exceeds the largest quantity."""
        view = self._views.resources.get(constraint.resource)
        if view is None:
            return
        has = view.nodes.get(constraint.node, view.default_capacity)
        if has * constraint.ratio > records.QUANTITY_MAX:
            what = f"{constraint.ratio} times {has} is more than {records.QUANTITY_MAX}"
            cure = f"at most {records.QUANTITY_MAX / has:g}"
            self._report(("ratio",), what, cure, "out-of-range")

    def _check_disjoint(self, groups: records.ElementGroups, key: str, noun: str) -> None:
        """Report groups that overlap. BtrPlace keeps groups in a set, so equal ones count once."""
        first: dict[int, int] = {}
        for position, group in enumerate(dict.fromkeys(groups)):
            for number in set(group):
                if first.setdefault(number, position) != position:
                    what = f"the {noun} {number} is in two groups"
                    cure = "let the groups share nothing"
                    self._report((key,), what, cure, "duplicate-name")
                    return

    def _report(self, key: KeyPath, what: str, cure: str, code: str) -> None:
        self._diagnostics.add((*self.path, *key), what, cure, code=code)


RuleArguments = Mapping[str, Argument]

_VM_GOALS: Final[dict[type, DesiredVmState]] = {
    records.RunningConstraint: DesiredVmState.RUNNING,
    records.ReadyConstraint: DesiredVmState.READY,
    records.SleepingConstraint: DesiredVmState.SLEEPING,
    records.KilledConstraint: DesiredVmState.KILLED,
}
_HOST_GOALS: Final[dict[type, DesiredHostState]] = {
    records.OnlineConstraint: DesiredHostState.ONLINE,
    records.OfflineConstraint: DesiredHostState.OFFLINE,
}
_ALWAYS_CONTINUOUS: Final = records.RootConstraint | records.QuarantineConstraint
_NEVER_CONTINUOUS: Final = (
    records.VmStateConstraint
    | records.NodeStateConstraint
    | records.PreserveConstraint
    | records.SeqConstraint
    | records.NoDelayConstraint
    | records.SyncConstraint
    | records.SerializeConstraint
    | records.PrecedenceConstraint
    | records.DeadlineConstraint
)


class ConstraintReader:
    """Turns the constraints of an instance into goals and rules."""

    def __init__(self, names: NameResolver) -> None:
        self.vms: dict[str, DesiredVmState] = {}
        self.hosts: dict[str, DesiredHostState] = {}
        self.rules: list[Satisfy] = []
        self.overbooked: dict[tuple[str, int], float] = {}
        """The ratio of overbooking, by resource and node."""
        self._names = names

    def read_all(self, constraints: Iterable[records.BtrPlaceConstraint]) -> None:
        """Read all constraints and report their problems."""
        for position, constraint in enumerate(constraints):
            self._names.path = ("constraints", position)
            if isinstance(constraint, records.VmStateConstraint):
                self._add_vm_goal(constraint, position)
            elif isinstance(constraint, records.NodeStateConstraint):
                self._add_host_goal(constraint, position)
            elif isinstance(constraint, records.OverbookConstraint):
                self._add_overbooking(constraint)
            else:
                self._add_rule(
                    constraint,
                    position,
                    _ARGUMENT_READERS[type(constraint)](constraint, self._names),
                )

    # Two goals for one VM or host contradict each other. The second becomes a rule, so that the
    # explanation why there is no plan can name both.

    def _add_vm_goal(self, constraint: records.VmStateConstraint, position: int) -> None:
        name, goal = self._names.vm(constraint.vm), _VM_GOALS[type(constraint)]
        if self.vms.setdefault(name, goal) is not goal:
            self._add_rule(constraint, position, {"v": name})

    def _add_host_goal(self, constraint: records.NodeStateConstraint, position: int) -> None:
        name, goal = self._names.host(constraint.node), _HOST_GOALS[type(constraint)]
        if self.hosts.setdefault(name, goal) is not goal:
            self._add_rule(constraint, position, {"n": name})

    def _add_rule(
        self, constraint: records.BtrPlaceConstraint, position: int, arguments: RuleArguments
    ) -> None:
        tag = str(constraint.__struct_config__.tag)
        always = isinstance(constraint, _ALWAYS_CONTINUOUS)
        self.rules.append(
            Satisfy(
                id=RuleId(f"{tag[0].lower()}{tag[1:]}-{position}"),
                constraint=f"{tag[0].upper()}{tag[1:]}",
                arguments=arguments,
                continuous=always
                or (constraint.continuous and not isinstance(constraint, _NEVER_CONTINUOUS)),
            )
        )

    def _add_overbooking(self, constraint: records.OverbookConstraint) -> None:
        """Remember the ratio of a node; of several ratios the lowest counts.

        Overbooking is not a rule, because the rule that no host gives more than it has would still
        hold. So the host gets the overbooked amount as its capacity.
        """
        self._names.resource(constraint.resource)
        self._names.host(constraint.node)
        key = (constraint.resource, constraint.node)
        self.overbooked[key] = min(self.overbooked.get(key, constraint.ratio), constraint.ratio)
        self._names.check_overbooked(constraint)


def _vms_arguments(constraint: Any, names: NameResolver) -> RuleArguments:
    return {"vs": names.vms(constraint.vms)}


def _placement_arguments(constraint: Any, names: NameResolver) -> RuleArguments:
    return {"v": names.vm(constraint.vm), "ns": names.hosts(constraint.nodes)}


def _vm_arguments(constraint: Any, names: NameResolver) -> RuleArguments:
    return {"v": names.vm(constraint.vm)}


def _amount_arguments(constraint: Any, names: NameResolver) -> RuleArguments:
    return {"ns": names.hosts(constraint.nodes), "nb": constraint.amount}


def _split_among_arguments(
    constraint: records.SplitAmongConstraint, names: NameResolver
) -> RuleArguments:
    return {
        "vs": names.vm_groups(constraint.vm_parts, "vParts"),
        "parts": names.host_groups(constraint.node_parts, "pParts"),
    }


def _resource_capacity_arguments(
    constraint: records.ResourceCapacityConstraint, names: NameResolver
) -> RuleArguments:
    return {
        "ns": names.hosts(constraint.nodes),
        "id": names.resource(constraint.resource),
        "qty": constraint.amount,
    }


def _preserve_arguments(
    constraint: records.PreserveConstraint, names: NameResolver
) -> RuleArguments:
    return {
        "v": names.vm(constraint.vm),
        "id": names.resource(constraint.resource),
        "amount": constraint.amount,
    }


_ARGUMENT_READERS: Final[dict[type, Callable[[Any, NameResolver], RuleArguments]]] = {
    records.SpreadConstraint: _vms_arguments,
    records.GatherConstraint: _vms_arguments,
    records.LonelyConstraint: _vms_arguments,
    records.SyncConstraint: _vms_arguments,
    records.SerializeConstraint: _vms_arguments,
    records.SeqConstraint: lambda constraint, names: {"vs": names.vm_sequence(constraint.vms)},
    records.SplitConstraint: lambda constraint, names: {
        "parts": names.vm_groups(constraint.parts, "parts")
    },
    records.AmongConstraint: lambda constraint, names: {
        "vs": names.vms(constraint.vms),
        "parts": names.host_groups(constraint.parts, "parts"),
    },
    records.SplitAmongConstraint: _split_among_arguments,
    records.FenceConstraint: _placement_arguments,
    records.BanConstraint: _placement_arguments,
    records.RootConstraint: _vm_arguments,
    records.NoDelayConstraint: _vm_arguments,
    records.QuarantineConstraint: lambda constraint, names: {"n": names.host(constraint.node)},
    records.MaxOnlineConstraint: _amount_arguments,
    records.RunningCapacityConstraint: _amount_arguments,
    records.ResourceCapacityConstraint: _resource_capacity_arguments,
    records.PreserveConstraint: _preserve_arguments,
    records.PrecedenceConstraint: lambda constraint, names: {
        "before": names.vm(constraint.before, "vm1"),
        "after": names.vm(constraint.after, "vm2"),
    },
    records.DeadlineConstraint: lambda constraint, names: {
        "v": names.vm(constraint.vm),
        "ms": names.deadline_ms(constraint.timestamp),
    },
}
"""The arguments of the constraint of the same name in the library."""
