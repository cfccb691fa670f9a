"""A second, plain implementation of the specification language, written from its documentation.

It walks over the syntax and makes every collection at once. It has nothing in common with the
product but the syntax and the model; when both disagree, one of them is wrong.

Where members are looked at in any order, an error may or may not be met before the answer is known.
The interpreter then gives the answer and notes that it ``depends_on_order``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations, product
from operator import and_, eq, ge, gt, le, lt, mul, ne, or_, sub
from typing import Any, Final

from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.spec.language import syntax
from equipoise.spec.language.syntax import Binder, Binding, Constraint, StateRef, Term
from equipoise.spec.language.vocabulary import canonical_name
from plain_limits import memory_for_sizes, vcpus_for_sizes

Names = Mapping[str, Any]

GROUPED_MAX: Final = 12
"""Largest number of members of which subsets and packings are enumerated."""
ORDERED_MAX: Final = 8
"""Largest number of members of which all orders are enumerated."""


class NoValue(Exception):
    """The term has no value: a division by zero, a position outside a list."""


class TooLong(Exception):
    """The interpreter has used up its steps."""


class VmName(str):
    """The name of a VM; it differs from a host of the same name."""


class HostName(str):
    """The name of a host."""


@dataclass
class Notes:
    """What the interpreter records while it evaluates a formula."""

    depends_on_order: bool = False
    steps_left: int = 10**9
    """Number of terms that may still be evaluated."""


@dataclass(frozen=True)
class World:
    """Everything that a formula may read."""

    now: Snapshot
    initial: Snapshot
    final: Snapshot
    steps: tuple[Step, ...] = ()
    moments: tuple[Snapshot, ...] = ()
    declared: Mapping[str, Constraint] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes, compare=False)


def holds(
    constraint: Constraint, arguments: Names, world: World, declared: Mapping[str, Constraint]
) -> bool:
    """Whether a constraint holds; ``declared`` are those that it may call."""
    found: bool = value_of(constraint.formula, arguments, replace(world, declared=declared))
    return found


def value_of(term: Term, environment: Names, world: World) -> Any:
    """Return the value of a term in an environment of names."""
    world.notes.steps_left -= 1
    if world.notes.steps_left < 0:
        raise TooLong
    return _RULES[type(term)](term, environment, world)


# Names and simple terms


def _name(term: syntax.Name, environment: Names, world: World) -> Any:
    if term.name in environment:
        return environment[term.name]
    name = canonical_name(term.name)
    if name == "vms":
        return _vms(world.now.vms)
    if name == "hosts":
        return frozenset(map(HostName, world.now.hosts))
    return VmState(name) if name in list(VmState) else HostState(name)


def _index(term: syntax.Index, environment: Names, world: World) -> Any:
    sequence = value_of(term.sequence, environment, world)
    position = value_of(term.position, environment, world)
    if not 0 <= position < len(sequence):
        raise NoValue(f"no position {position}")
    return sequence[position]


def _let(term: syntax.Let, environment: Names, world: World) -> Any:
    value = value_of(term.value, environment, world)
    return value_of(term.body, {**environment, term.name: value}, world)


def _all(terms: Iterable[Term], environment: Names, world: World) -> list[Any]:
    return [value_of(term, environment, world) for term in terms]


# Operations


def _operation(term: syntax.Operation, environment: Names, world: World) -> Any:
    left = value_of(term.left, environment, world)
    decided = {"&": (False, False), "|": (True, True), "-->": (False, True)}.get(term.operator)
    if decided is not None and left is decided[0]:
        return decided[1]
    right = value_of(term.right, environment, world)
    if decided is not None:
        return right
    return _OPERATORS[term.operator](left, right)


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise NoValue("a division by zero")
    return left // right


def _is_packing(groups: Collection[frozenset[Any]], whole: Collection[Any]) -> bool:
    """Whether the groups are disjoint and all within the whole."""
    apart = not any(left & right for left, right in combinations(groups, 2))
    return apart and all(group <= frozenset(whole) for group in groups)


_ORDER: Final = {"=": eq, "<-->": eq, "/=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_REST: Final = {"/\\": and_, "\\/": or_, "-": sub, "*": mul, "/": _quotient}
_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **_ORDER,
    **_REST,
    "+": lambda left, right: left | right if isinstance(left, frozenset) else left + right,
    ":": lambda member, whole: member in whole,
    "/:": lambda member, whole: member not in whole,
    "<:": lambda group, whole: group <= frozenset(whole),
    "/<:": lambda group, whole: not group <= frozenset(whole),
    "<<:": _is_packing,
    "/<<:": lambda groups, whole: not _is_packing(groups, whole),
}


# Variables that range over collections


def _choices(binding: Binding, domain: Collection[Any]) -> Iterable[Any]:
    """Return the values of a variable that ranges over a collection."""
    if binding is Binding.MEMBER:
        return domain
    different = list(dict.fromkeys(domain))
    if len(different) > GROUPED_MAX:
        raise NoValue("too many members to choose groups from")
    return _subsets(different) if binding is Binding.SUBSET else _packings(different)


def _subsets(members: list[Any]) -> Iterator[frozenset[Any]]:
    for size in range(len(members) + 1):
        yield from map(frozenset, combinations(members, size))


def _packings(members: list[Any]) -> Iterator[frozenset[frozenset[Any]]]:
    """Yield every set of non-empty, disjoint groups."""
    if not members:
        yield frozenset()
        return
    first, *others = members
    yield from _packings(others)
    for companions in _subsets(others):
        rest = [member for member in others if member not in companions]
        for packing in _packings(rest):
            yield packing | {companions | {first}}


def _environments(
    binders: tuple[Binder, ...], environment: Names, world: World
) -> Iterator[Names | NoValue]:
    """Yield all values of the variables, and an error where a collection has no value."""
    if not binders:
        yield environment
        return
    names = binders[0].names
    try:
        domain = value_of(binders[0].domain, environment, world)
        choices = list(_choices(binders[0].binding, domain))
    except NoValue as error:
        yield error
        return
    for chosen in product(choices, repeat=len(names)):
        inner = {**environment, **dict(zip(names, chosen, strict=True))}
        yield from _environments(binders[1:], inner, world)


def _tried(term: Term, environment: Names, world: World) -> bool | NoValue:
    try:
        return bool(value_of(term, environment, world))
    except NoValue as error:
        return error


def _decided(answers: Collection[bool | NoValue], deciding: bool, world: World) -> bool:
    """Return the answer: one deciding value is enough; without one every value is needed."""
    errors = [answer for answer in answers if isinstance(answer, NoValue)]
    if errors and deciding not in answers:
        raise errors[0]
    world.notes.depends_on_order |= bool(errors)
    return deciding if deciding in answers else not deciding


def _quantifier(term: syntax.ForAll | syntax.Exists, environment: Names, world: World) -> bool:
    cases = _environments(term.binders, environment, world)
    answers = [
        case if isinstance(case, NoValue) else _tried(term.body, case, world) for case in cases
    ]
    return _decided(answers, isinstance(term, syntax.Exists), world)


def _temporal(term: syntax.Always | syntax.Sometime, environment: Names, world: World) -> bool:
    """Evaluate the body at every moment; without moments only at the current one."""
    moments = world.moments or (world.now,)
    answers = [_tried(term.body, environment, replace(world, now=moment)) for moment in moments]
    return _decided(answers, isinstance(term, syntax.Sometime), world)


def _where(term: syntax.SetWhere | syntax.ListWhere, environment: Names, world: World) -> list[Any]:
    found = []
    for inner in _environments(term.binders, environment, world):
        if isinstance(inner, NoValue):
            raise inner
        if all(value_of(condition, inner, world) for condition in term.conditions):
            found.append(value_of(term.term, inner, world))
    return found


# Calls


def _call(term: syntax.Call, environment: Names, world: World) -> Any:
    arguments = _all(term.arguments, environment, world)
    moments = {
        StateRef.NOW: world.now,
        StateRef.INITIAL: world.initial,
        StateRef.FINAL: world.final,
    }
    state = moments[term.moment]
    meaning = FUNCTIONS.get(canonical_name(term.function))
    if meaning is not None:
        return meaning(state, world, *arguments)
    called = world.declared[term.function]
    names = [parameter.name for parameter in called.parameters]
    given = dict(zip(names, arguments, strict=True))
    return value_of(called.formula, given, replace(world, now=state))


def _vms(names: Iterable[str | None]) -> frozenset[VmName]:
    return frozenset(VmName(name) for name in names if name is not None)


def _host_name(host: str | None) -> HostName | None:
    return None if host is None else HostName(host)


def _place(vm: Vm) -> HostId | None:
    """Return the host on which a VM runs; a sleeping VM runs nowhere."""
    return vm.host if vm.state is VmState.RUNNING else None


def _running(state: Snapshot, _: World, host: HostId | None) -> frozenset[VmName]:
    return _vms(vm.id for vm in state.vms.values() if host is not None and _place(vm) == host)


def _hosted(state: Snapshot, _: World, host: HostId | None) -> frozenset[VmName]:
    """Return the VMs on a host and those on their way: a target counts from the start on."""
    if host is None:
        return frozenset()
    footprints = [running.step.footprint for running in state.in_flight.values()]
    lying = _vms(vm.id for vm in state.vms.values() if vm.host == host)
    return lying | _vms(seen.vm for seen in footprints if seen.target == host)


def _amounts(named: Mapping[Any, int], cpu: int, memory: int) -> dict[str, int]:
    """Return amounts by the names of resources; CPU and memory are always present."""
    return {**named, "cpu": cpu, "memory": memory}


def _sizes(memory: int, vcpus: int) -> dict[str, int]:
    return {"configured_memory": memory, "vcpus": vcpus}


def _consumption(state: Snapshot, _: World, name: VmId, resource: str) -> int:
    """Return the consumption; of CPU and memory it is the reservation."""
    vm = state.vms[name]
    known = _amounts(vm.consumption, vm.cpu.reservation_mhz, vm.memory.reservation_mib)
    known |= _sizes(vm.memory_mib, vm.vcpus)
    return known.get(resource, 0)


def _capacity(state: Snapshot, _: World, name: HostId | None, resource: str) -> int:
    if name is None:
        return 0
    host = state.hosts[name]
    known = _amounts(host.capacity, host.usable_cpu_mhz, host.usable_memory_mib)
    known |= _sizes(memory_for_sizes(host), vcpus_for_sizes(host))
    return known.get(resource, 0)


def _demand(state: Snapshot, _: World, name: VmId, resource: str) -> int:
    wanted = state.vms[name].demand
    return _amounts(wanted.named, wanted.cpu_mhz, wanted.memory_mib).get(resource, 0)


def _is_host(element: str | None, state: Snapshot) -> bool:
    return isinstance(element, HostName) or element not in state.vms


def _label(state: Snapshot, _: World, element: str | None, key: str) -> str:
    if element is None:
        return ""
    known: Any = state.hosts if _is_host(element, state) else state.vms
    return str(known[element].labels.get(key, ""))


def _on(steps: Iterable[Step], element: str | None, state: Snapshot) -> list[Step]:
    """Return the actions on a VM, or those that touch a host."""
    if _is_host(element, state):
        return [step for step in steps if element in step.footprint.hosts]
    return [step for step in steps if element == step.footprint.vm]


def _actions(state: Snapshot, world: World, element: str | None) -> tuple[Step, ...]:
    mine = _on(world.steps, element, state)
    return tuple(sorted(mine, key=lambda step: (step.start_ms, step.end_ms, step.id)))


def _underway(state: Snapshot, _: World, element: str | None) -> frozenset[Step]:
    steps = (running.step for running in state.in_flight.values())
    return frozenset(_on(steps, element, state))


def _orders(_: Snapshot, __: World, members: frozenset[Any]) -> frozenset[tuple[Any, ...]]:
    if len(members) > ORDERED_MAX:
        raise NoValue("too many orders")
    return frozenset(permutations(members))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "host": lambda state, _, vm: _host_name(state.vms[vm].host),
    "hosted": _hosted,
    "running": _running,
    "colocated": lambda state, _, vm: _running(state, _, _place(state.vms[vm])),
    "runs": lambda state, _, vm: state.vms[vm].state is VmState.RUNNING,
    "vmState": lambda state, _, vm: state.vms[vm].state,
    "hostState": lambda state, _, host: None if host is None else state.hosts[host].state,
    "cons": _consumption,
    "capa": _capacity,
    "demand": _demand,
    "label": _label,
    "pool": lambda state, _, vm: state.vms[vm].pool or "",
    "tenant": lambda state, _, vm: state.vms[vm].tenant or "",
    "agent": lambda state, _, vm: state.vms[vm].agent,
    "ftPair": lambda state, _, vm: _vms([state.vms[vm].ft_pair]),
    "card": lambda _, __, collection: len(collection),
    "sum": lambda _, __, numbers: sum(numbers),
    "largest": lambda _, __, numbers, few: tuple(sorted(numbers, reverse=True)[: max(few, 0)]),
    "range": lambda _, __, elements: tuple(range(len(elements))),
    "lists": _orders,
    "actions": _actions,
    "underway": _underway,
    "kind": lambda _, __, step: str(type(step.action).__struct_config__.tag),
    "source": lambda _, __, step: _host_name(step.footprint.source),
    "target": lambda _, __, step: _host_name(step.footprint.target),
    "begin": lambda _, __, step: step.start_ms,
    "end": lambda _, __, step: step.end_ms,
}

_RULES: Final[dict[type[Any], Callable[[Any, Names, World], Any]]] = {
    syntax.Name: _name,
    **dict.fromkeys((syntax.Number, syntax.Text, syntax.Boolean), lambda term, *_: term.value),
    syntax.Call: _call,
    syntax.Operation: _operation,
    syntax.Not: lambda term, names, world: not value_of(term.term, names, world),
    syntax.Minus: lambda term, names, world: -value_of(term.term, names, world),
    syntax.Index: _index,
    syntax.SetOf: lambda term, names, world: frozenset(_all(term.members, names, world)),
    syntax.ListOf: lambda term, names, world: tuple(_all(term.elements, names, world)),
    syntax.SetWhere: lambda term, names, world: frozenset(_where(term, names, world)),
    syntax.ListWhere: lambda term, names, world: tuple(_where(term, names, world)),
    syntax.Let: _let,
    **dict.fromkeys((syntax.ForAll, syntax.Exists), _quantifier),
    **dict.fromkeys((syntax.Always, syntax.Sometime), _temporal),
}
