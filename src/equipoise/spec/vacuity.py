"""Formulas that say nothing: true, or false, whatever small cluster and plan they are asked of.

Two VMs on two hosts are enough to make most formulas true and most formulas false. One that is
always the same there is most likely not what somebody meant to write.
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
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.spec.choose import packings, subsets
from equipoise.spec.language.syntax import (
    Binding,
    Call,
    Constraint,
    Parameter,
    Text,
    names_in,
    parts_of,
)
from equipoise.spec.language.vocabulary import plain
from equipoise.spec.moment import moments
from equipoise.spec.specification import Specification
from equipoise.spec.view import Frame, Steps, View

QUESTIONS_MAX: Final = 20_000
"""After so many equal answers nobody asks further."""

HOSTS: Final = (HostId("h1"), HostId("h2"))
VMS: Final = (VmId("v1"), VmId("v2"))
NUMBERS: Final = (1, 0, 2, 100, 1000)


def always(specification: Specification, name: str) -> bool | None:
    """The only answer a constraint ever gives on small clusters; none if it gives both."""
    constraint = specification.constraints[name]
    seen: set[bool] = set()
    for arguments, frame in islice(_questions(constraint, _words(specification)), QUESTIONS_MAX):
        try:
            seen.add(specification.holds(name, arguments, frame))
        except InvalidInput:
            continue  # it has no value there, which is another matter
        if len(seen) > 1:
            return None
    return seen.pop() if seen else None


def _words(specification: Specification) -> tuple[str, ...]:
    """The texts that the formulas compare with or ask for; all of them mean something below."""
    terms = [one.formula for one in specification.declared().values()]
    found = {part.value for term in terms for part in parts_of(term) if isinstance(part, Text)}
    return ("a", "b", *sorted(found))


def _questions(
    constraint: Constraint, words: Sequence[str]
) -> Iterator[tuple[dict[str, Any], Frame]]:
    """Arguments and frames, such that the first few already differ much from each other."""
    names = [one.name for one in constraint.parameters]
    domains = [_domain(one, words) for one in constraint.parameters]
    every = [dict(zip(names, values, strict=True)) for values in product(*domains)]
    for number, frame in enumerate(_frames(words)):
        for turn in range(min(len(every), 5)):
            yield every[(number * 7 + turn * 13) % len(every)], frame


def _domain(parameter: Parameter, words: Sequence[str]) -> list[Any]:
    named = {plain(name) for name in names_in(parameter.domain)}
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


def _frames(words: Sequence[str]) -> Iterator[Frame]:
    states = list(_states(words))
    # Steps of 31 through the states: neighbours in the list have little in common.
    for number, plan in enumerate(_PLANS * (len(states) // len(_PLANS) + 1)):
        initial = states[number * 31 % len(states)]
        steps = tuple(_step(place, *one) for place, one in enumerate(plan))
        views = [View.of(one.state.freeze()) for one in moments(initial, steps)]
        for view in views:
            yield Frame(view, views[0], views[-1], Steps(steps), views)
        # What no plan leads to may still be what a constraint forbids.
        elsewhere = View.of(states[(number * 31 + 17) % len(states)])
        yield Frame(elsewhere, views[0], elsewhere, Steps(steps), [views[0], elsewhere])


def _step(place: int, action: Action, start_ms: int, end_ms: int) -> Step:
    return Step(id=StepId(f"s{place}"), action=action, start_ms=start_ms, end_ms=end_ms)


def _states(words: Sequence[str]) -> Iterator[Snapshot]:
    spots: list[tuple[VmState, HostId | None]] = [
        *((VmState.RUNNING, host) for host in HOSTS),
        *((VmState.SLEEPING, host) for host in HOSTS),
        *((state, None) for state in (VmState.READY, VmState.INIT, VmState.TERMINATED)),
    ]
    modes = (HostState.ON, HostState.STANDBY, HostState.MAINTENANCE)
    clusters = product(product(modes, repeat=2), product(spots, repeat=2))
    for number, (states, places) in enumerate(clusters):
        hosts = (_host(place, state, words, number) for place, state in enumerate(states))
        vms = (_vm(place, spot, words, number) for place, spot in enumerate(places))
        yield Snapshot.of(Inventory(hosts=tuple(hosts), vms=tuple(vms)))


def _label(place: int, number: int) -> str:
    """A value for a label: sometimes equal, sometimes different, sometimes none."""
    return ("a", "a", "b", "")[(place * 2 + number) % 4 if number % 3 else number % 4]


def _host(place: int, state: HostState, words: Sequence[str], number: int) -> Host:
    return Host(
        id=HOSTS[place],
        cores=1,
        mhz_per_core=1000,
        memory_mib=1000,
        state=state,
        labels={word: _label(place, number) for word in words},
        capacity={ResourceName(word): (number + place) % 3 for word in words},
    )


def _vm(place: int, spot: tuple[VmState, HostId | None], words: Sequence[str], number: int) -> Vm:
    pair = VMS[1 - place] if number % 2 else None
    return Vm(
        id=VMS[place],
        vcpus=1,
        memory_mib=100,
        state=spot[0],
        host=spot[1],
        labels={word: _label(place, number // 2) for word in words},
        consumption={ResourceName(word): (number + place) % 3 for word in words},
        demand=Demand(named={ResourceName(word): number % 3 for word in words}),
        tenant=TenantId("a") if (number + place) % 3 else None,
        pool=PoolId("a") if (number + place) % 2 else None,
        agent=number % 5 == 0 and spot[1] is not None,
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
