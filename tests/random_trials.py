"""Small random trials whose plans can be executed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from builders import a_step
from equipoise.fuzz.trial import Trial
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    HostAction,
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
from equipoise.model.host import HostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Step
from equipoise.model.quantity import ResourceName
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.spec.library import library_constraints
from equipoise.spec.moments import moments
from equipoise.spec.requirement import Requirement
from small_worlds import VARIANTS, a_random_state, arguments


def trials(constraint: str, rng: Random, arguments_max: int = 4) -> Iterator[Trial]:
    """Endless trials of a constraint of the library; each cluster has a few of them."""
    specification = library_constraints()[constraint]
    declared = specification.constraints[constraint]
    while True:
        initial = _a_state(rng)
        steps = _a_plan(rng, initial)
        for given in arguments(declared, initial, rng, arguments_max):
            mark = rng.choice(
                [mark for mark in declared.marks if mark in ("discrete", "continuous")]
            )
            demand = Requirement(specification, constraint, given, continuous=mark == "continuous")
            yield Trial(demand, initial, steps)


def _a_state(rng: Random) -> Snapshot:
    """A state in which hosts that have VMs are on, and have room for most VMs."""
    state = a_random_state(rng, rng.randrange(1, 5), rng.randrange(2, 5), rng.randrange(VARIANTS))
    used = {vm.host for vm in state.vms.values() if vm.host is not None}
    hosts = tuple(
        host.but(
            memory_mib=16384,
            mhz_per_core=4,
            capacity={name: host.capacity.get(name, 0) + 3 for name in _AMOUNTS},
            state=HostState.ON if host.id in used else host.state,
        )
        for host in state.hosts.values()
    )
    vms = tuple(vm.but(template="small", replaceable=True) for vm in state.vms.values())
    return Snapshot.of(Inventory(hosts=hosts, vms=vms))


def _a_plan(rng: Random, initial: Snapshot) -> tuple[Step, ...]:
    """As many steps as machines allow, each proposed for the state that those before lead to."""
    kept: tuple[Step, ...] = ()
    restless = rng.random() < 0.4
    for number in range(rng.choice([0, 2, 4, 8])):
        *_, last = moments(initial, kept)
        start = rng.choice([0, 0, 0, 1, 2, 3, 4])
        action = _an_action(rng, last.state.freeze(), restless=restless)
        more = (*kept, a_step(f"s{number}", action, start, start + rng.choice([1, 2, 3, 3])))
        if not Trial(_NOTHING, initial, more).objections:
            kept = more
    return kept


def _an_action(rng: Random, state: Snapshot, *, restless: bool) -> Action:
    """Something that a VM or a host may do in its state; if all are restless, mostly moves."""
    target = rng.choice(list(state.hosts))
    vms = [vm for vm in state.vms.values() if not vm.agent]  # those stay with their hosts
    if not vms or rng.random() < (0 if restless else 0.2):
        return rng.choice(_SWITCHES[state.hosts[target].state])(host=target)
    vm = rng.choice(vms)
    source, name = vm.host or target, vm.id
    if vm.state is VmState.RUNNING:
        move = Migrate(vm=name, source=source, target=target)
        recreate = Reinstantiate(vm=name, source=source, target=target)
        amount = Allocate(vm=name, resource=_AMOUNTS[0], amount=rng.randrange(4))
        ends = (Shutdown(vm=name, source=source), Suspend(vm=name, source=source), Kill(vm=name))
        others: list[Action] = [move, move, recreate, amount, *ends]
        return move if restless else rng.choice(others)
    if vm.state is VmState.SLEEPING:
        return Resume(vm=name, source=source, target=rng.choice([source, target]))
    return Forge(vm=name) if vm.state is VmState.INIT else Boot(vm=name, target=target)


_AMOUNTS = tuple(map(ResourceName, ("licences", "instances", "pods")))
_NOTHING = Requirement(library_constraints()["Spread"], "Spread", {"vs": frozenset()})
_SWITCHES: dict[HostState, tuple[type[HostAction], ...]] = {
    HostState.ON: (PowerOff, EnterMaintenance),
    HostState.STANDBY: (PowerOn,),
    HostState.MAINTENANCE: (LeaveMaintenance,),
    HostState.FAILED: (PowerOn,),
}
