"""Laws of the language: compiled formulas mean what a plain interpreter says."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.errors import InvalidInput
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
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.host import Host, HostReserve, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, ResourceName
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import apply_to_draft
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.spec.evaluate.view import EvaluationContext, StateView
from equipoise.spec.language.parse import parse
from equipoise.spec.language.print import print_file
from equipoise.spec.language.syntax import Operation
from equipoise.spec.language.vocabulary import SIGNATURES
from equipoise.spec.specification import Specification, context_of
from formulas import BYTES, Choices, File, a_file, files, parse_term
from plain_interpreter import FUNCTIONS, Notes, NoValue, TooLong, World, holds, value_of

STEPS_MAX = 20_000
"""Number of terms after which the interpreter gives up on a formula."""

LICENCES = ResourceName("licences")
NAMES_OF_HOSTS = [("h1",), ("h1", "h2"), ("h1", "h2"), ("h1", "h2", "v1")]
NAMES_OF_VMS = [*[("v1", "v2"), ("v1", "v2", "h1")] * 4, ("v1",), ()]
RACKS = [{}, {"rack": "r1"}, {"rack": "r2"}, {"rack": "r1", "": "p1"}]
AMOUNTS: list[dict[ResourceName, int]] = [{}, {LICENCES: 1}, {LICENCES: 3}]
RESERVES = [HostReserve(), HostReserve(cpu_mhz=3998, memory_mib=16382)]


def some_host(name: str, choices: Choices) -> Host:
    return a_host(
        name,
        state=choices.pick([HostState.ON, *HostState]),
        labels=choices.pick(RACKS),
        capacity=choices.pick(AMOUNTS),
        reserve=choices.pick(RESERVES),
    )


def some_vm(name: str, hosts: list[HostId], choices: Choices) -> Vm:
    """Return a VM in any state, with everything that a formula may read."""
    state, few = choices.pick([*[VmState.RUNNING] * 3, *VmState]), range(4)
    return a_vm(
        name,
        choices.pick(hosts) if state.has_host else None,
        state=state,
        cpu=CpuSettings(reservation_mhz=choices.pick(few)),
        memory=MemorySettings(reservation_mib=choices.pick(few)),
        demand=Demand(
            cpu_mhz=choices.pick(few), memory_mib=choices.pick(few), named=choices.pick(AMOUNTS)
        ),
        consumption=choices.pick(AMOUNTS),
        pool=choices.pick([None, "p1", "p2"]),
        tenant=choices.pick([None, "t1"]),
        agent=choices.often(1),
        labels=choices.pick(RACKS),
    )


def some_cluster(choices: Choices) -> Snapshot:
    """Return up to three hosts and VMs, which may have the same names."""
    hosts = [some_host(name, choices) for name in choices.pick(NAMES_OF_HOSTS)]
    ids = [host.id for host in hosts]
    vms = [some_vm(name, ids, choices) for name in choices.pick(NAMES_OF_VMS)]
    if len(vms) > 1 and choices.often(1):
        vms[0], vms[1] = vms[0].but(ft_pair=vms[1].id), vms[1].but(ft_pair=vms[0].id)
    return Snapshot.of(Inventory(hosts=tuple(hosts), vms=tuple(vms)))


def some_action(cluster: Snapshot, choices: Choices) -> Action:
    """Return an action, often a valid one."""
    host, other = choices.pick(list(cluster.hosts)), choices.pick(list(cluster.hosts))
    if not cluster.vms or choices.seldom(4):
        kinds: list[type[Any]] = [PowerOn, PowerOff, EnterMaintenance, LeaveMaintenance]
        return cast(Action, choices.pick(kinds)(host=host))
    vm = choices.pick(list(cluster.vms.values()))
    source = vm.host or other
    actions: list[Action] = [Migrate(vm=vm.id, source=source, target=host)] * 3
    actions += [Boot(vm=vm.id, target=host), Resume(vm=vm.id, source=source, target=host)]
    actions += [Shutdown(vm=vm.id, source=source), Suspend(vm=vm.id, source=source)]
    actions += [Forge(vm=vm.id), Kill(vm=vm.id), Allocate(vm=vm.id, resource=LICENCES, amount=2)]
    return choices.pick(actions)


def a_world(data: bytes) -> World:
    """Return a cluster, a plan for it, and the moments at which an action starts or ends."""
    choices = Choices(data)
    cluster = some_cluster(choices)
    steps = []
    for number in range(choices.pick((0, 1, 2, 2, 3, 3, 3))):
        start = choices.pick((0, 500))
        action, end = some_action(cluster, choices), start + choices.pick((500, 1000))
        steps.append(a_step(f"s{9 - number}", action, start, end))
    moments = moments_of(cluster, steps)
    moments = moments[choices.pick(range(min(2, len(moments)))) :]
    known = tuple(moments) if choices.often(1) else ()
    return World(choices.pick(moments), moments[0], moments[-1], tuple(steps), known)


def moments_of(cluster: Snapshot, steps: list[Step]) -> list[Snapshot]:
    """Return the states of a plan: ends come before starts of the same time."""
    events: list[tuple[int, int, Any]] = []
    for step in steps:
        started = ActionStarted(at_ms=step.start_ms, step=step, attempt=1)
        finished = ActionFinished(at_ms=step.end_ms, step=step.id, attempt=1)
        events += [(step.start_ms, 1, started), (step.end_ms, 0, finished)]
    draft = Draft(cluster)
    found = [draft.freeze()]
    for _, __, happened in sorted(events, key=lambda timed: timed[:2]):
        apply_to_draft(draft, happened)
        found.append(draft.freeze())
    return found


def frame_on(world: World, *, draft: bool) -> EvaluationContext:
    """Return the context of a world; the current state may still be a draft."""
    context = context_of(
        Draft(world.now) if draft else world.now,
        initial=world.initial,
        final=world.final,
        steps=world.steps,
    )
    return replace(context, moments=[StateView.of(moment) for moment in world.moments])


def interpreted(file: File, world: World) -> Any:
    """Return the interpreter's value of a formula, or of the term that has the value ``e``."""
    main, declared = file[0], {constraint.name: constraint for constraint in file}
    if not main.parameters:
        return holds(main, {}, world, declared)
    assert isinstance(main.formula, Operation)
    return value_of(main.formula.left, {}, replace(world, declared=declared))


def agrees(specification: Specification, context: EvaluationContext, expected: Any) -> bool:
    """Whether the product has the same value of the formula, or finds the value of the term."""
    if specification.constraints["a"].parameters:
        return specification.holds("a", {"e": expected}, context)
    return specification.holds("a", {}, context) is expected


class Case(NamedTuple):
    """Return a file and a world to judge it in; the current state may still be a draft."""

    file: File
    world: World
    draft: bool


cases = st.binary(min_size=2 * BYTES, max_size=2 * BYTES).map(
    lambda data: Case(a_file(data[:BYTES]), a_world(data[BYTES:]), data[-1] % 2 == 0)
)


@settings(max_examples=4 * settings().max_examples)
@given(cases)
def test_a_compiled_formula_means_what_the_interpreter_says(case: Case) -> None:
    file, world, draft = case
    specification = Specification.read(print_file(file))
    for now in {id(state): state for state in (world.now, *world.moments)}.values():
        notes, context = Notes(steps_left=STEPS_MAX), frame_on(replace(world, now=now), draft=draft)
        try:
            expected = interpreted(file, replace(world, now=now, notes=notes))
        except TooLong:
            return
        except NoValue:
            event("no value")
            with pytest.raises(InvalidInput):
                agrees(specification, context, None)
            continue
        try:
            event(f"a value: {type(expected).__name__}")
            assert agrees(specification, context, expected)
        except InvalidInput:
            # The order of the members decides whether an error is met before the answer is known.
            assert notes.depends_on_order


@given(files)
def test_a_well_typed_formula_passes_the_checker_and_reads_back(
    file: File,
) -> None:
    text = print_file(file)
    assert parse(text) == file
    Specification.read(text)


TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|<-->|-->|/?<?<:|/:|/=|[<>]=|::=|/\\|\\/|\w+|\S')
OTHERS = TOKENS.findall(
    """( ) { } [ ] , ; . : <: <<: /<<: = < + - * / /\\ \\/ & | --> <--> not ! ? let in always
    sometime true false 0 1 99999999999999999999 "" "a" x y vms hosts running on card sum lists
    host label actions begin ^ $ ::= hard"""
)


@st.composite
def changed(draw: st.DrawFn, text: str) -> str:
    """Return the text with one or two tokens replaced, inserted, doubled, removed or swapped."""
    tokens = TOKENS.findall(text)
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        place = draw(st.integers(0, len(tokens) - 1))
        other = draw(st.sampled_from([*OTHERS, *tokens]))
        first, second = tokens[place], tokens[place + 1 : place + 2]
        instead = [[other, *second], [first, other, *second], [first, first, *second]]
        instead += [second, [*second, first]]
        tokens[place : place + 2] = draw(st.sampled_from(instead))
        if not tokens:
            break
    return " ".join(tokens)


@given(files.flatmap(lambda file: changed(print_file(file))))
def test_a_formula_with_a_changed_word_is_parsed_or_refused(text: str) -> None:
    try:
        Specification.read(text)
        event("read")
    except InvalidInput:
        event("refused")


# The interpreter itself

A_CLUSTER = a_cluster(a_host("h1"), vms=[a_vm("v1", "h1"), a_vm("v2")])
A_WORLD = World(A_CLUSTER, A_CLUSTER, A_CLUSTER)


def test_the_interpreter_knows_every_function() -> None:
    assert FUNCTIONS.keys() == SIGNATURES.keys()


@pytest.mark.parametrize(
    "text",
    [
        "-7 / 2 = -4 & 7 / -2 = -4 & -7 / -2 = 3",
        "{1, 2} + {2, 3} - {1} /\\ {2} = {2}",
        "[x * y . x : [1, 2]; y : [x, 3]] = [1, 3, 4, 6]",
        "{s . s <: {1, 2}} = {{}, {1}, {2}, {1, 2}}",
        "{p . p <<: {1, 2}} = {{}, {{1}}, {{2}}, {{1}, {2}}, {{1, 2}}}",
        "card({p . p <<: {1, 2, 3, 4}}) = 52 & card([p . p <<: {1, 2, 3, 4}]) = 52",
        "lists({1, 2}) = {[1, 2], [2, 1]} & card(lists({1, 2, 3})) = 6",
        "[{}, {}, {1}] <<: {1} & [{1}, {1}] /<<: {1} & [{2}] /<<: {1}",
        "let x = 1 in [x . x : {x + 1}; x : {x + 1}] = [3]",
        "{host(v) . v : vms, host(v) : nodes} = hosts",
        "false & 1 / 0 = 1 | true | 1 / 0 = 1",
        "?(x, y : {z . z : {1, 2}}) x /= y",
        "!(x, y : {z . w : {2}; z : {3}}) y = 3",
        "largest([1, 3, 2, 3], 3) = [3, 3, 2] & largest([1], 2) = [1] & largest([1], -1) = []",
    ],
)
def test_both_evaluate_simple_formulas(text: str) -> None:
    assert value_of(parse_term(text), {}, A_WORLD) is True
    assert Specification.read(f"a ::= {text}").holds("a", {}, context_of(A_CLUSTER)) is True


@pytest.mark.parametrize("text", ["1 / 0", "[1][1]", "[1][-1]", "!(x : {1, 0}) 1 / x = 1"])
def test_a_term_without_a_value_is_an_error_of_the_interpreter(text: str) -> None:
    with pytest.raises(NoValue):
        value_of(parse_term(text), {}, A_WORLD)


def test_the_interpreter_records_a_dependence_on_the_order_of_members() -> None:
    world = replace(A_WORLD, notes=Notes())
    assert value_of(parse_term("?(x : {0, 1}) 1 / x = 1"), {}, world) is True
    assert world.notes.depends_on_order
