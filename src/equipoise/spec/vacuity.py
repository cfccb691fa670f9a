"""Formulas with only one answer: always true, or always false, on every small cluster and plan.

Two VMs on two hosts are enough to make most formulas true and most formulas false. A formula with
only one answer there is probably a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any, Final

from equipoise.errors import InvalidInput
from equipoise.model.action import Action, Boot, Forge, Kill, Migrate, PowerOff, Shutdown, Suspend
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, PoolId, ResourceName, StepId, TenantId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.spec.evaluate.domains import packings, subsets
from equipoise.spec.evaluate.view import EvaluationContext, PlanSteps, StateView
from equipoise.spec.language.syntax import (
    Binding,
    Call,
    Constraint,
    Parameter,
    Text,
    names_in,
    subterms,
)
from equipoise.spec.language.vocabulary import canonical_name
from equipoise.spec.moments import moments
from equipoise.spec.specification import Specification

SAMPLES_MAX: Final = 20_000
"""Number of equal answers after which the search ends."""

HOSTS: Final = (HostId("h1"), HostId("h2"))
VMS: Final = (VmId("v1"), VmId("v2"))
NUMBERS: Final = (1, 0, 2, 100, 1000)


def constant_answer(specification: Specification, name: str) -> bool | None:
    """Return the only answer of a constraint on small clusters; ``None`` if it has both."""
    constraint = specification.constraints[name]
    answers: set[bool] = set()
    for arguments, context in islice(_samples(constraint, _texts(specification)), SAMPLES_MAX):
        try:
            answers.add(specification.holds(name, arguments, context))
        except InvalidInput:
            continue  # a formula without a value has no answer
        if len(answers) > 1:
            return None
    return answers.pop() if answers else None


def _texts(specification: Specification) -> tuple[str, ...]:
    """Return the texts in the formulas; the sample clusters use them as labels and resources."""
    terms = [constraint.formula for constraint in specification.declared().values()]
    texts = {part.value for term in terms for part in subterms(term) if isinstance(part, Text)}
    return ("a", "b", *sorted(texts))


def _samples(
    constraint: Constraint, words: Sequence[str]
) -> Iterator[tuple[dict[str, Any], EvaluationContext]]:
    """Yield arguments and contexts; the first few already differ much from each other."""
    names = [parameter.name for parameter in constraint.parameters]
    # All combinations of arguments; each context uses a few of them in turn.
    domains = [_domain(parameter, words) for parameter in constraint.parameters]
    every = [dict(zip(names, values, strict=True)) for values in product(*domains)]
    for number, context in enumerate(_contexts(words)):
        # Strides that are prime to most lengths: neighbours in the product differ in one argument.
        for turn in range(min(len(every), 5)):
            yield every[(number * 7 + turn * 13) % len(every)], context


def _domain(parameter: Parameter, words: Sequence[str]) -> list[Any]:
    named = {canonical_name(name) for name in names_in(parameter.domain)}
    members: Sequence[Any]
    if "int" in named:
        members = NUMBERS
    elif "string" in named:
        members = words[:6]
    else:
        members = HOSTS if "hosts" in named else VMS
    if isinstance(parameter.domain, Call):
        return [tuple(members), tuple(reversed(members)), ()]
    match parameter.binding:
        case Binding.MEMBER:
            return list(members)
        case Binding.SUBSET:
            return list(subsets(members[:3]))[::-1]
        case Binding.PACKING:
            return list(packings(members[:3]))[::-1]


def _contexts(words: Sequence[str]) -> Iterator[EvaluationContext]:
    states = list(_states(words))
    # Steps of 31 through the states: neighbours in the list have little in common.
    for number, plan in enumerate(_PLANS * (len(states) // len(_PLANS) + 1)):
        initial = states[number * 31 % len(states)]
        steps = tuple(_step(index, *timed) for index, timed in enumerate(plan))
        views = [StateView.of(moment.state.freeze()) for moment in moments(initial, steps)]
        for view in views:
            yield EvaluationContext(view, views[0], views[-1], PlanSteps(steps), views)
        # A constraint may forbid only states to which no plan leads.
        elsewhere = StateView.of(states[(number * 31 + 17) % len(states)])
        yield EvaluationContext(
            elsewhere, views[0], elsewhere, PlanSteps(steps), [views[0], elsewhere]
        )


def _step(index: int, action: Action, start_ms: int, end_ms: int) -> Step:
    return Step(id=StepId(f"s{index}"), action=action, start_ms=start_ms, end_ms=end_ms)


def _states(words: Sequence[str]) -> Iterator[Snapshot]:
    vm_options: list[tuple[VmState, HostId | None]] = [
        *((VmState.RUNNING, host) for host in HOSTS),
        *((VmState.SLEEPING, host) for host in HOSTS),
        *((state, None) for state in (VmState.READY, VmState.INIT, VmState.TERMINATED)),
    ]
    host_states = (HostState.ON, HostState.STANDBY, HostState.MAINTENANCE)
    clusters = product(product(host_states, repeat=2), product(vm_options, repeat=2))
    for number, (states, options) in enumerate(clusters):
        hosts = (_host(index, state, words, number) for index, state in enumerate(states))
        vms = (_vm(index, option, words, number) for index, option in enumerate(options))
        yield Snapshot.of(Inventory(hosts=tuple(hosts), vms=tuple(vms)))


def _label(index: int, number: int) -> str:
    """Return a label: equal for both elements, different or empty, by the cluster's number."""
    return ("a", "a", "b", "")[(index * 2 + number) % 4 if number % 3 else number % 4]


def _host(index: int, state: HostState, words: Sequence[str], number: int) -> Host:
    return Host(
        id=HOSTS[index],
        cores=1,
        mhz_per_core=1000,
        memory_mib=1000,
        state=state,
        labels={word: _label(index, number) for word in words},
        capacity={ResourceName(word): (number + index) % 3 for word in words},
    )


def _vm(index: int, option: tuple[VmState, HostId | None], words: Sequence[str], number: int) -> Vm:
    pair = VMS[1 - index] if number % 2 else None
    return Vm(
        id=VMS[index],
        vcpus=1,
        memory_mib=100,
        state=option[0],
        host=option[1],
        labels={word: _label(index, number // 2) for word in words},
        consumption={ResourceName(word): (number + index) % 3 for word in words},
        demand=Demand(named={ResourceName(word): number % 3 for word in words}),
        tenant=TenantId("a") if (number + index) % 3 else None,
        pool=PoolId("a") if (number + index) % 2 else None,
        agent=number % 5 == 0 and option[1] is not None,
        ft_pair=pair,
    )


_AWAY: Final = Migrate(vm=VMS[0], source=HOSTS[0], target=HOSTS[1])
_BACK: Final = Migrate(vm=VMS[1], source=HOSTS[1], target=HOSTS[0])
_PLANS: Final[tuple[tuple[tuple[Action, int, int], ...], ...]] = (
    (),
    ((_AWAY, 0, 3),),
    ((_AWAY, 0, 3), (_BACK, 1, 4)),
    ((_AWAY, 0, 3), (_BACK, 3, 3000)),
    ((Boot(vm=VMS[0], target=HOSTS[0]), 0, 2), (Boot(vm=VMS[1], target=HOSTS[1]), 5, 7)),
    ((Shutdown(vm=VMS[0], source=HOSTS[0]), 1, 2), (Suspend(vm=VMS[1], source=HOSTS[1]), 1, 2)),
    ((Forge(vm=VMS[0]), 0, 1), (Boot(vm=VMS[0], target=HOSTS[1]), 0, 2)),
    ((Kill(vm=VMS[0]), 0, 1), (Kill(vm=VMS[1]), 0, 1)),
    ((PowerOff(host=HOSTS[0]), 0, 1), (PowerOff(host=HOSTS[1]), 0, 1)),
    ((_AWAY, 0, 1), (Migrate(vm=VMS[0], source=HOSTS[1], target=HOSTS[0]), 1, 2)),
)
