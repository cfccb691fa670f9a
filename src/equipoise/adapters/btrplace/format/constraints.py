"""The constraints of BtrPlace: one table says how files write each, and its arguments here.

Our library has the constraints of BtrPlace under their own names. Read from an instance, a
constraint is a goal for the state of one VM or host, otherwise a rule of kind ``satisfy``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from equipoise.adapters.btrplace.format.model_reader import (
    InstancePlacement,
    InstanceViews,
    report_unknown_node,
)
from equipoise.adapters.btrplace.format.records import (
    QUANTITY_MAX,
    BtrPlaceRecord,
    ElementGroups,
    ElementNumber,
    ElementNumbers,
    Numbering,
    Ratio,
    ResourceQuantity,
    TimeSeconds,
    from_btrplace_resource,
    tag_of,
    tagged_record,
    to_btrplace_resource,
    union_of,
)
from equipoise.model.diagnostics import Diagnostics, KeyPath
from equipoise.model.problem import DesiredHostState, DesiredVmState
from equipoise.model.quantity import RuleId
from equipoise.model.rule import Argument, Satisfy

_SECONDS_MAX: Final = 10**9
_WRITTEN_SECONDS_MAX: Final = 12 * 3600
"""BtrPlace parses the deadlines that we write with a 12-hour clock."""
_TIMESTAMP_PARTS: Final = re.compile(r"[0-9]{1,9}(?::[0-9]{1,9}){0,2}")


class NameResolver:
    """Returns the ids of BtrPlace's numbers, and reports numbers that refer to nothing."""

    def __init__(
        self, placement: InstancePlacement, views: InstanceViews, diagnostics: Diagnostics
    ) -> None:
        self.path: KeyPath = ()
        """The path of the constraint that is being read."""
        self._placement, self._views, self._diagnostics = placement, views, diagnostics
        # Thousands of constraints name the same nodes: equal lists share one tuple of ids.
        self._host_names: dict[ElementNumbers, tuple[str, ...]] = {}
        self._host_group_names: dict[ElementGroups, tuple[tuple[str, ...], ...]] = {}

    def vm(self, number: int, *key: str | int) -> str:
        """Return the id of a VM."""
        name = self._placement.vms.get(number)
        if name is None:
            cure = "list it in readyVMs, or add a constraint on its state"
            self._report(key, f"there is no VM {number}", cure, "unknown-name")
        return name or ""

    def vms(self, numbers: ElementNumbers, *key: str | int) -> tuple[str, ...]:
        """Return the ids of VMs, each once."""
        names = [self.vm(number, *key, position) for position, number in enumerate(numbers)]
        return tuple(dict.fromkeys(names))

    def vm_sequence(self, numbers: ElementNumbers, *key: str | int) -> tuple[str, ...]:
        """Return the ids of VMs in a sequence; report a VM that is in it twice."""
        if len(set(numbers)) < len(numbers):
            self._report(key, "a VM is listed twice", "list every VM once", "duplicate-name")
        return self.vms(numbers, *key)

    def host(self, number: int, *key: str | int) -> str:
        """Return the id of a node."""
        name = self._placement.hosts.get(number)
        if name is None:
            report_unknown_node(number, (*self.path, *key), self._diagnostics)
        return name or ""

    def hosts(self, numbers: ElementNumbers, *key: str | int) -> tuple[str, ...]:
        """Return the ids of nodes, each once."""
        known = self._host_names.get(numbers)
        if known is None:
            count_before = len(self._diagnostics)
            names = [self.host(number, *key, position) for position, number in enumerate(numbers)]
            known = tuple(dict.fromkeys(names))
            if len(self._diagnostics) == count_before:  # a problem is reported at every use
                self._host_names[numbers] = known
        return known

    def vm_groups(self, groups: ElementGroups, key: str) -> tuple[tuple[str, ...], ...]:
        """Return the ids of VMs in disjoint groups."""
        self._check_disjoint(groups, key, "VM")
        named = [self.vms(group, key, position) for position, group in enumerate(groups)]
        return tuple(dict.fromkeys(named))

    def host_groups(self, groups: ElementGroups, key: str) -> tuple[tuple[str, ...], ...]:
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

    def resource(self, name: str, key: str) -> str:
        """Return the name of a resource in the model."""
        known = self._views.resources
        if name not in known:
            self._diagnostics.add_unknown((*self.path, key), "resource", name, known)
        return from_btrplace_resource(name)

    def deadline_ms(self, timestamp: int | str, key: str) -> int:
        """Return a timestamp in milliseconds from the start of the plan.

        ``+H:M:S``, ``+M:S``, ``+S`` and a number of seconds count from the start of the plan.
        """
        text = str(timestamp).strip()
        parts = text.removeprefix("+")
        seconds = 0
        if not _TIMESTAMP_PARTS.fullmatch(parts):
            cure = "hours, minutes and seconds from the start of the plan: +0:10:00"
            self._report((key,), "the timestamp cannot be read", cure, "invalid-value")
        elif ":" in parts and parts == text:
            what = f"without a + {text} is a time of day, but a plan has no time of day"
            cure = "count from the start of the plan: +0:10:00 is after ten minutes"
            self._report((key,), what, cure, "unsupported-feature")
        else:
            for part in parts.split(":"):
                seconds = 60 * seconds + int(part)
            if seconds > _SECONDS_MAX:
                what, cure = f"{seconds} seconds are too many", f"at most {_SECONDS_MAX}"
                self._report((key,), what, cure, "out-of-range")
        return 1000 * seconds

    def check_overbooked(self, resource: str, node: int, ratio: float) -> None:
        """Report a ratio with which a node exceeds the largest quantity."""
        view = self._views.resources.get(resource)
        has = 0 if view is None else view.nodes.get(node, view.default_capacity)
        if has * ratio > QUANTITY_MAX:
            what = f"{ratio} times {has} is more than {QUANTITY_MAX}"
            self._report(("ratio",), what, f"at most {QUANTITY_MAX / has:g}", "out-of-range")

    def _check_disjoint(self, groups: ElementGroups, key: str, noun: str) -> None:
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


class InexpressibleArgument(Exception):
    """BtrPlace has no way to write an argument of a constraint."""


class ArgumentKind(NamedTuple):
    """The kind of an argument, in files and here."""

    file_type: Any
    read: Callable[[NameResolver, Any, str], Argument]
    """Returns the argument of the library for a value of a file and its key."""
    write: Callable[[Numbering, Any], Any]
    """Returns the value of a file for an argument of the library."""


def _sorted_numbers(names: Iterable[str], numbers: Mapping[str, int]) -> list[int]:
    return sorted(numbers[name] for name in names)


def _deadline(ms: int) -> str:
    """The deadline in whole seconds: actions end at whole seconds, so a fraction has no effect."""
    seconds = ms // 1000
    if not 0 <= seconds < _WRITTEN_SECONDS_MAX:
        raise InexpressibleArgument(
            "BtrPlace reads only deadlines within the first twelve hours of a plan"
        )
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"+{hour:02}:{minute:02}:{second:02}"


_VM: Final = ArgumentKind(ElementNumber, NameResolver.vm, lambda numbers, name: numbers.vms[name])
_HOST: Final = ArgumentKind(
    ElementNumber, NameResolver.host, lambda numbers, name: numbers.hosts[name]
)
_VMS: Final = ArgumentKind(
    ElementNumbers, NameResolver.vms, lambda numbers, names: _sorted_numbers(names, numbers.vms)
)
_VM_SEQUENCE: Final = ArgumentKind(
    ElementNumbers,
    NameResolver.vm_sequence,
    lambda numbers, names: [numbers.vms[name] for name in names],
)
_HOSTS: Final = ArgumentKind(
    ElementNumbers,
    NameResolver.hosts,
    lambda numbers, names: _sorted_numbers(names, numbers.hosts),
)
_VM_GROUPS: Final = ArgumentKind(
    ElementGroups,
    NameResolver.vm_groups,
    lambda numbers, groups: sorted(_sorted_numbers(group, numbers.vms) for group in groups),
)
_HOST_GROUPS: Final = ArgumentKind(
    ElementGroups,
    NameResolver.host_groups,
    lambda numbers, groups: sorted(_sorted_numbers(group, numbers.hosts) for group in groups),
)
RESOURCE: Final = ArgumentKind(
    str, NameResolver.resource, lambda _, name: to_btrplace_resource(name)
)
_AMOUNT: Final = ArgumentKind(
    ResourceQuantity, lambda _names, amount, _key: amount, lambda _, amount: amount
)
_PERCENT: Final = ArgumentKind(
    Ratio, lambda _names, ratio, _key: ratio, lambda _, percent: percent / 100
)
_DEADLINE: Final = ArgumentKind(
    TimeSeconds | str, NameResolver.deadline_ms, lambda _, ms: _deadline(ms)
)


class ConstraintMode(Enum):
    """When a constraint holds: at the end (discrete) or at all times (continuous)."""

    GIVEN = auto()
    """The file must say it."""
    OPTIONAL = auto()
    """Files of before BtrPlace 1.12 say it; newer ones leave it out, and it is discrete."""
    CONTINUOUS = auto()
    """Always continuous, whatever the file says."""
    DISCRETE = auto()
    """Always discrete, whatever the file says."""
    TEMPORAL = auto()
    """The constraint is about times: BtrPlace knows no mode of it."""
    ENFORCED = auto()
    """BtrPlace always enforces it, so no file has it as a constraint."""


class ConstraintForm(NamedTuple):
    """How files write a constraint."""

    tag: str
    mode: ConstraintMode
    keys: Mapping[str, tuple[str, ArgumentKind]]
    """The argument of the library for each key of the file, and its kind."""

    @property
    def name(self) -> str:
        """The name in our library."""
        return f"{self.tag[0].upper()}{self.tag[1:]}"


def _form(tag: str, mode: ConstraintMode, **keys: tuple[str, ArgumentKind]) -> ConstraintForm:
    return ConstraintForm(tag, mode, keys)


_V, _N, _VS, _NS = ("v", _VM), ("n", _HOST), ("vs", _VMS), ("ns", _HOSTS)
_RC, _NB = ("id", RESOURCE), ("nb", _AMOUNT)
# The order is that of campaigns: trial n is for constraint n modulo their number.
_FORMS: Final = (
    _form("spread", ConstraintMode.GIVEN, vms=_VS),
    _form("gather", ConstraintMode.GIVEN, vms=_VS),
    _form("lonely", ConstraintMode.GIVEN, vms=_VS),
    _form("split", ConstraintMode.GIVEN, parts=("parts", _VM_GROUPS)),
    _form("among", ConstraintMode.GIVEN, vms=_VS, parts=("parts", _HOST_GROUPS)),
    _form(
        "splitAmong",
        ConstraintMode.GIVEN,
        vParts=("vs", _VM_GROUPS),
        pParts=("parts", _HOST_GROUPS),
    ),
    _form("fence", ConstraintMode.GIVEN, vm=_V, nodes=_NS),
    _form("ban", ConstraintMode.GIVEN, vm=_V, nodes=_NS),
    _form("root", ConstraintMode.CONTINUOUS, vm=_V),
    _form("quarantine", ConstraintMode.CONTINUOUS, node=_N),
    _form("running", ConstraintMode.DISCRETE, vm=_V),
    _form("ready", ConstraintMode.DISCRETE, vm=_V),
    _form("sleeping", ConstraintMode.DISCRETE, vm=_V),
    _form("killed", ConstraintMode.DISCRETE, vm=_V),
    _form("online", ConstraintMode.DISCRETE, node=_N),
    _form("offline", ConstraintMode.DISCRETE, node=_N),
    _form("maxOnline", ConstraintMode.GIVEN, nodes=_NS, amount=_NB),
    _form("runningCapacity", ConstraintMode.OPTIONAL, nodes=_NS, amount=_NB),
    _form("resourceCapacity", ConstraintMode.GIVEN, nodes=_NS, rc=_RC, amount=("qty", _AMOUNT)),
    _form("shareableResource", ConstraintMode.ENFORCED, rc=_RC),
    _form("preserve", ConstraintMode.DISCRETE, vm=_V, rc=_RC, amount=("amount", _AMOUNT)),
    _form("overbook", ConstraintMode.OPTIONAL, node=_N, rc=_RC, ratio=("percent", _PERCENT)),
    _form("seq", ConstraintMode.TEMPORAL, vms=("vs", _VM_SEQUENCE)),
    _form("Sync", ConstraintMode.TEMPORAL, vms=_VS),
    _form("noDelay", ConstraintMode.TEMPORAL, vm=_V),
    _form("Deadline", ConstraintMode.TEMPORAL, vm=_V, timestamp=("ms", _DEADLINE)),
    _form("Precedence", ConstraintMode.TEMPORAL, vm1=("before", _VM), vm2=("after", _VM)),
    _form("Serialize", ConstraintMode.TEMPORAL, vms=_VS),
)
CONSTRAINT_FORMS: Final[Mapping[str, ConstraintForm]] = {form.name: form for form in _FORMS}
"""The constraints of BtrPlace by their names in our library."""
_FORM_OF_TAG: Final = {form.tag: form for form in _FORMS}
VM_GOALS: Final = {goal.value: goal for goal in DesiredVmState if goal is not DesiredVmState.FORGED}
_HOST_GOALS: Final = {
    goal.value: goal for goal in (DesiredHostState.ONLINE, DesiredHostState.OFFLINE)
}


class ConstraintRecord(BtrPlaceRecord, forbid_unknown_fields=True):
    """A constraint of a file; its other keys are those of its form."""

    continuous: bool = False
    """Whether it holds at all times. BtrPlace ignores it where there is no choice."""


class _ModeConstraintRecord(ConstraintRecord):
    continuous: bool


if TYPE_CHECKING:
    AnyConstraint = ConstraintRecord
else:
    AnyConstraint = union_of(
        tagged_record(
            form.tag,
            _ModeConstraintRecord if form.mode is ConstraintMode.GIVEN else ConstraintRecord,
            {key: kind.file_type for key, (_, kind) in form.keys.items()},
        )
        for form in _FORMS
        if form.mode is not ConstraintMode.ENFORCED
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

    def read_all(self, constraints: Iterable[ConstraintRecord]) -> None:
        """Read all constraints and report their problems."""
        for position, constraint in enumerate(constraints):
            self._names.path = ("constraints", position)
            form = _FORM_OF_TAG[tag_of(constraint)]
            arguments = {
                argument: kind.read(self._names, getattr(constraint, key), key)
                for key, (argument, kind) in form.keys.items()
            }
            if form.tag == "overbook":
                self._add_overbooking(constraint)
            elif not self._is_goal(form.tag, arguments):
                self._add_rule(form, position, arguments, constraint.continuous)

    def _is_goal(self, tag: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a constraint is the first goal for a VM or host, or repeats it.

        Two goals for one VM or host contradict each other. The second becomes a rule, so that the
        explanation why there is no plan can name both.
        """
        if tag in VM_GOALS:
            return self.vms.setdefault(arguments["v"], VM_GOALS[tag]) is VM_GOALS[tag]
        if tag in _HOST_GOALS:
            return self.hosts.setdefault(arguments["n"], _HOST_GOALS[tag]) is _HOST_GOALS[tag]
        return False

    def _add_rule(
        self, form: ConstraintForm, position: int, arguments: Mapping[str, Argument], stated: bool
    ) -> None:
        has_choice = form.mode in (ConstraintMode.GIVEN, ConstraintMode.OPTIONAL)
        self.rules.append(
            Satisfy(
                id=RuleId(f"{form.tag[0].lower()}{form.tag[1:]}-{position}"),
                constraint=form.name,
                arguments=arguments,
                continuous=stated if has_choice else form.mode is ConstraintMode.CONTINUOUS,
            )
        )

    def _add_overbooking(self, constraint: Any) -> None:
        """Remember the ratio of a node; of several ratios the lowest counts.

        Overbooking is not a rule, because the rule that no host gives more than it has would still
        hold. So the host gets the overbooked amount as its capacity.
        """
        key, ratio = (constraint.rc, constraint.node), constraint.ratio
        self.overbooked[key] = min(self.overbooked.get(key, ratio), ratio)
        self._names.check_overbooked(*key, ratio)
