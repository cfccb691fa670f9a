"""Laws of the transition for any events: no VM or action is lost or duplicated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.capacity.ledger import RESOURCES, CapacityLedger
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
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionSkipped,
    ActionStarted,
    ActionTimedOut,
    ClusterLoaded,
    DemandObserved,
    Event,
    HostChanged,
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    SettingsChanged,
    VmArrived,
    VmChanged,
    VmCrashed,
    VmLeft,
    decode_event,
    encode_event,
)
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import ClusterSettings
from equipoise.model.plan import ConcurrencyLimits
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.state import transition
from equipoise.model.state.snapshot import HISTORY_MS, Snapshot
from equipoise.model.vm import CpuSettings, Demand, Vm, VmState
from plain_gate import FROM, LIVES, Cluster, hosts_of, switch, take_effect, vm_of
from worlds import LICENCES

HOSTS = [HostId(f"h{n}") for n in range(1, 4)]
VMS = [VmId(f"v{n}") for n in range(1, 6)]
STEPS = [StepId(f"s{n}") for n in range(1, 5)]


# Events over few names, so that known, unknown and returning hosts and VMs are all frequent


def some_host(chance: Random) -> Host:
    return a_host(
        chance.choice(HOSTS),
        state=chance.choice([*[HostState.ON] * 4, *HostState]),
        capacity={LICENCES: chance.randint(0, 3)},
    )


def some_vm(chance: Random, name: VmId | None = None, hosts: list[HostId] = HOSTS) -> Vm:
    state = chance.choice([*[VmState.RUNNING] * 4, *VmState])
    sane = chance.randrange(20) > 0 or name is not None
    return a_vm(
        name or chance.choice(VMS),
        chance.choice(hosts) if state.has_host is sane else None,
        state=state,
        agent=not chance.randrange(4),
        cpu=CpuSettings(reservation_mhz=chance.choice([0, 500])),
        consumption=chance.choice([{}, {LICENCES: 1}]),
    )


def some_action(chance: Random, snapshot: Snapshot) -> Action:
    """A random action; half of them fit the state."""
    name = chance.choice(VMS)
    vm = snapshot.vms.get(name)
    here = vm.host if vm is not None and chance.randrange(4) else None
    here = here or chance.choice(HOSTS)
    there = chance.choice(HOSTS)
    actions: list[Action] = [
        Forge(vm=name),
        Boot(vm=name, target=there),
        Shutdown(vm=name, source=here),
        Migrate(vm=name, source=here, target=there),
        Suspend(vm=name, source=here),
        Resume(vm=name, source=here, target=there),
        Allocate(vm=name, resource=LICENCES, amount=chance.randint(0, 3)),
        Kill(vm=name),
    ]
    if not chance.randrange(4):
        kinds = (PowerOn, PowerOff, EnterMaintenance, LeaveMaintenance)
        return chance.choice(kinds)(host=there)
    fitting = [each for each in actions if vm is not None and vm.state in LIVES[type(each)]]
    return chance.choice(fitting if fitting and chance.randrange(2) else actions)


def some_event(chance: Random, snapshot: Snapshot) -> Event:
    at_ms = max(0, snapshot.at_ms + chance.choice([0, 0, 1, 1000, HISTORY_MS, -500]))
    host, vm = chance.choice(HOSTS), chance.choice(VMS)
    step, attempt = chance.choice(STEPS), chance.choice([1, 1, 1, 2])
    if snapshot.in_flight and chance.randrange(3):
        running = chance.choice(list(snapshot.in_flight.values()))
        step, attempt = running.step.id, chance.choice([running.attempt] * 4 + [attempt])
    start = ActionStarted(
        at_ms=at_ms, step=a_step(chance.choice(STEPS), some_action(chance, snapshot)), attempt=1
    )
    kinds: list[Callable[[], Event]] = [
        *[lambda: start] * 8,
        *[lambda: ActionFinished(at_ms=at_ms, step=step, attempt=attempt)] * 6,
        lambda: ActionFailed(at_ms=at_ms, step=step, attempt=attempt),
        lambda: ActionLost(at_ms=at_ms, step=step, attempt=attempt),
        lambda: ActionTimedOut(at_ms=at_ms, step=step, attempt=attempt),
        lambda: ActionSkipped(at_ms=at_ms, step=step, reason=""),
        *[lambda: HostJoined(at_ms=at_ms, host=some_host(chance))] * 2,
        lambda: HostChanged(at_ms=at_ms, host=some_host(chance)),
        lambda: HostLeft(at_ms=at_ms, host=host),
        lambda: HostFailed(at_ms=at_ms, host=host),
        lambda: HostRecovered(at_ms=at_ms, host=host),
        *[lambda: VmArrived(at_ms=at_ms, vm=some_vm(chance))] * 4,
        lambda: VmChanged(at_ms=at_ms, vm=some_vm(chance)),
        lambda: VmLeft(at_ms=at_ms, vm=vm),
        lambda: VmCrashed(at_ms=at_ms, vm=vm),
        lambda: DemandObserved(at_ms=at_ms, demand={vm: Demand(cpu_mhz=chance.randint(0, 2))}),
        lambda: SettingsChanged(
            at_ms=at_ms,
            settings=ClusterSettings(limits=ConcurrencyLimits(actions_total=chance.randint(1, 9))),
        ),
    ]
    if not chance.randrange(40):
        return ClusterLoaded(at_ms=at_ms, inventory=some_cluster(chance).inventory())
    return chance.choice(kinds)()


def some_cluster(chance: Random) -> Snapshot:
    hosts = {host.id: host for host in [some_host(chance) for _ in range(chance.randint(1, 3))]}
    vms = [some_vm(chance, name, list(hosts)) for name in VMS if chance.randrange(3)]
    return a_cluster(*hosts.values(), vms=vms)


Transition = tuple[Snapshot, Event, Snapshot]


def random_transitions(chance: Random, length: int = 25) -> Iterator[Transition]:
    """Yield events, each with the states before and after it."""
    before = some_cluster(chance)
    for _ in range(chance.randint(1, length)):
        event = some_event(chance, before)
        after = transition.apply(before, event)
        yield before, event, after
        before = after


# Laws of one state


def everything_is_there_once_and_somewhere(after: Snapshot) -> None:
    for name, vm in after.vms.items():
        assert vm.id == name
        assert (vm.host is not None) == (vm.state in {VmState.RUNNING, VmState.SLEEPING})
        assert vm.host is None or vm.host in after.hosts
    assert all(host.id == name for name, host in after.hosts.items())
    times = [frame.at_ms for frame in after.history]
    assert times == sorted(times)
    residents = [vm for vms in after.residents.values() for vm in vms]
    assert sorted(residents) == sorted(after.placement)


def what_is_in_flight_is_about_what_exists(after: Snapshot) -> None:
    for name, running in after.in_flight.items():
        assert running.step.id == name
        assert vm_of(running.step.action) in {None, *after.vms}
        assert hosts_of(running.step.action) <= set(after.hosts)


# Laws of one event


def events_are_counted_and_time_goes_on(before: Snapshot, event: Event, after: Snapshot) -> None:
    assert after.version == before.version + 1
    assert after.at_ms == max(before.at_ms, event.at_ms)


def only_arrivals_and_departures_change_who_exists(
    before: Snapshot, event: Event, after: Snapshot
) -> None:
    hosts, vms = set(before.hosts), set(before.vms)
    match event:
        case ClusterLoaded():
            hosts = {host.id for host in event.inventory.hosts}
            vms = {vm.id for vm in event.inventory.vms}
        case HostJoined() | HostChanged():
            hosts |= {event.host.id}
        case HostLeft():
            hosts -= {event.host}
        case VmArrived() | VmChanged() if makes_sense(before, event):
            vms |= {event.vm.id}
        case VmLeft():
            vms -= {event.vm}
    assert set(after.hosts) == hosts
    assert set(after.vms) == vms


def makes_sense(snapshot: Snapshot, event: Event) -> bool:
    """Whether an event fits the present state."""
    match event:
        case HostLeft() | HostFailed():
            return event.host in snapshot.hosts
        case HostRecovered():
            host = snapshot.hosts.get(event.host)
            return host is not None and host.state is HostState.FAILED
        case VmLeft() | VmCrashed():
            return event.vm in snapshot.vms
        case VmArrived() | VmChanged():
            sane = event.vm.state.has_host is (event.vm.host is not None)
            return sane and event.vm.host in {None, *snapshot.hosts}
        case ActionStarted(step=step):
            vm = vm_of(step.action)
            return vm in {None, *snapshot.vms} and hosts_of(step.action) <= set(snapshot.hosts)
        case ActionFinished() | ActionFailed() | ActionLost():
            running = snapshot.in_flight.get(event.step)
            return running is not None and running.attempt == event.attempt
        case ActionTimedOut() | ActionSkipped():
            return False  # these tell of decisions, and are no change of the cluster
        case DemandObserved():
            return not snapshot.history or event.at_ms >= snapshot.history[-1].at_ms
        case _:
            return True


def what_makes_no_sense_changes_nothing(before: Snapshot, event: Event, after: Snapshot) -> None:
    if not makes_sense(before, event):
        for name in ("hosts", "vms", "in_flight", "settings", "history", "name"):
            assert getattr(after, name) == getattr(before, name)


def may_change(before: Snapshot, event: Event) -> tuple[set[HostId], set[VmId]]:
    """Return the only hosts and VMs that an event may change."""
    hosts: set[HostId] = set()
    vms: set[VmId] = set()
    match event:
        case ClusterLoaded():
            return {*HOSTS}, {*VMS}
        case HostJoined() | HostChanged():
            hosts = {event.host.id}
            if event.host.state is HostState.FAILED:
                vms = {vm.id for vm in before.vms.values() if vm.host == event.host.id}
        case HostLeft() | HostFailed() | HostRecovered():
            hosts = {event.host}
            vms = {vm.id for vm in before.vms.values() if vm.host == event.host}
        case VmArrived() | VmChanged():
            vms = {event.vm.id}
        case VmLeft() | VmCrashed():
            vms = {event.vm}
        case DemandObserved():
            vms = set(event.demand)
        case ActionFinished() if event.step in before.in_flight:
            action = before.in_flight[event.step].step.action
            if (vm := vm_of(action)) is not None:
                vms = {vm}
            else:
                hosts = hosts_of(action)
                vms = {vm.id for vm in before.vms.values() if vm.agent and vm.host in hosts}
    return hosts, vms


def nothing_else_changes(before: Snapshot, event: Event, after: Snapshot) -> None:
    hosts, vms = may_change(before, event)
    for name in (set(before.hosts) | set(after.hosts)) - hosts:
        assert after.hosts[name] is before.hosts[name]
    for vm in (set(before.vms) | set(after.vms)) - vms:
        assert after.vms[vm] is before.vms[vm]
    if not isinstance(event, ClusterLoaded | SettingsChanged):
        assert after.settings is before.settings
    if not isinstance(event, ClusterLoaded | DemandObserved):
        assert after.history is before.history
    if not isinstance(event, ClusterLoaded):
        assert after.name == before.name


def a_failed_host_runs_nothing(before: Snapshot, event: Event, after: Snapshot) -> None:
    if not isinstance(event, HostFailed) or event.host not in before.hosts:
        return
    assert after.hosts[event.host] == before.hosts[event.host].but(state=HostState.FAILED)
    for vm in before.vms.values():
        if vm.host == event.host:
            expected = vm
            if vm.state is VmState.RUNNING:
                lost = vm.but(state=VmState.READY, host=None)
                expected = vm.but(state=VmState.SLEEPING) if vm.agent else lost
            assert after.vms[vm.id] == expected
    for running in after.in_flight.values():
        assert event.host not in hosts_of(running.step.action)


def a_host_that_left_holds_nothing(before: Snapshot, event: Event, after: Snapshot) -> None:
    if isinstance(event, HostLeft):
        for vm in before.vms.values():
            if vm.host == event.host:
                assert after.vms[vm.id] == vm.but(state=VmState.READY, host=None)


def a_crash_frees_the_vm(before: Snapshot, event: Event, after: Snapshot) -> None:
    if isinstance(event, VmCrashed) and event.vm in before.vms:
        vm = before.vms[event.vm]
        if vm.state is VmState.RUNNING:
            assert after.vms[vm.id].state is not VmState.RUNNING
            assert vm.agent or after.vms[vm.id] == vm.but(state=VmState.READY, host=None)
            flying = [running.step.action for running in after.in_flight.values()]
            assert all(isinstance(each, Kill) for each in flying if vm_of(each) == vm.id)
        else:
            assert after.vms[vm.id] is vm


def what_is_in_flight_changes_only_by_its_own(
    before: Snapshot, event: Event, after: Snapshot
) -> None:
    """An action stays in flight until its answer, or until its host or VM is gone."""
    expected = {
        name: running for name, running in before.in_flight.items() if not ends(before, event, name)
    }
    if isinstance(event, ActionStarted) and makes_sense(before, event):
        started = after.in_flight[event.step.id]
        assert started[:3] == (event.step, event.attempt, event.at_ms)
        expected[event.step.id] = started
    assert after.in_flight == expected


def ends(before: Snapshot, event: Event, name: StepId) -> bool:
    """Whether an event ends an action in flight."""
    action = before.in_flight[name].step.action
    vm = vm_of(action)
    match event:
        case ClusterLoaded():
            return True
        case ActionFinished() | ActionFailed() | ActionLost():
            return event.step == name and event.attempt == before.in_flight[name].attempt
        case VmLeft():
            return event.vm == vm
        case VmCrashed():
            dies = (
                before.vms[event.vm].state is VmState.RUNNING if event.vm in before.vms else False
            )
            return event.vm == vm and dies and not isinstance(action, Kill)
        case HostJoined() | HostChanged() if event.host.state is HostState.FAILED:
            return ends(before, HostFailed(at_ms=0, host=event.host.id), name)
        case HostFailed() | HostLeft():
            at_home = isinstance(action, Allocate) and before.vms[action.vm].host == event.host
            return event.host in hosts_of(action) or at_home
        case _:
            return False


def a_finished_action_has_its_effect_if_it_can(
    before: Snapshot, event: Event, after: Snapshot
) -> None:
    if not isinstance(event, ActionFinished) or not makes_sense(before, event):
        return
    action = before.in_flight[event.step].step.action
    expected = Cluster(dict(before.hosts), dict(before.vms), [])
    if (name := vm_of(action)) is None:
        (host,) = hosts_of(action)
        if before.hosts[host].state is FROM.get(type(action)):
            take_effect(expected, action)
    else:
        vm = before.vms[name]
        fits = vm.state in LIVES[type(action)] and getattr(action, "source", vm.host) == vm.host
        if fits or isinstance(action, Kill | Allocate):
            take_effect(expected, action)
    assert (after.hosts, after.vms) == (expected.hosts, expected.vms)


def a_recovered_host_is_on_and_wakes_its_agents(
    before: Snapshot, event: Event, after: Snapshot
) -> None:
    if isinstance(event, HostRecovered) and makes_sense(before, event):
        expected = Cluster(dict(before.hosts), dict(before.vms), [])
        switch(expected, event.host, HostState.ON)
        assert (after.hosts, after.vms) == (expected.hosts, expected.vms)


def demand_is_remembered(before: Snapshot, event: Event, after: Snapshot) -> None:
    if isinstance(event, DemandObserved):
        if before.history and event.at_ms < before.history[-1].at_ms:
            assert (after.vms, after.history) == (before.vms, before.history)  # it came too late
            return
        for vm in before.vms.values():
            assert after.vms[vm.id] == vm.but(demand=event.demand.get(vm.id, vm.demand))
        assert after.history[-1].at_ms == event.at_ms
        assert after.history[-1].demand == {vm.id: vm.demand for vm in after.vms.values()}
        kept = [frame for frame in before.history if frame.at_ms > after.at_ms - HISTORY_MS]
        assert list(after.history[:-1]) == kept


def a_loaded_cluster_is_as_described(before: Snapshot, event: Event, after: Snapshot) -> None:
    if isinstance(event, ClusterLoaded):
        version, at_ms = before.version + 1, max(before.at_ms, event.at_ms)
        assert after == Snapshot.of(event.inventory, version=version, at_ms=at_ms)


STATE_LAWS = (everything_is_there_once_and_somewhere, what_is_in_flight_is_about_what_exists)
EVENT_LAWS = (
    events_are_counted_and_time_goes_on,
    only_arrivals_and_departures_change_who_exists,
    what_makes_no_sense_changes_nothing,
    nothing_else_changes,
    a_failed_host_runs_nothing,
    a_host_that_left_holds_nothing,
    a_crash_frees_the_vm,
    what_is_in_flight_changes_only_by_its_own,
    a_finished_action_has_its_effect_if_it_can,
    a_recovered_host_is_on_and_wakes_its_agents,
    demand_is_remembered,
    a_loaded_cluster_is_as_described,
)


def the_laws_hold(chance: Random) -> None:
    for before, event, after in random_transitions(chance):
        for state_law in STATE_LAWS:
            state_law(after)
        for event_law in EVENT_LAWS:
            event_law(before, event, after)


def no_copy_betrays_another(chance: Random) -> None:
    """Single steps, one replay, and a decoded journal agree; earlier snapshots do not change."""
    transitions = list(random_transitions(chance))
    first, events, last = (
        transitions[0][0],
        [event for _, event, _ in transitions],
        transitions[-1][2],
    )
    copy = deepcopy(first)
    assert transition.replay(first, events) == last
    assert transition.replay(first, [decode_event(encode_event(event)) for event in events]) == last
    half = chance.randint(0, len(events))
    middle = transition.replay(first, events[:half])
    assert transition.replay(middle, events[half:]) == last
    assert first == copy


def the_ledger_knows_what_a_new_one_would(chance: Random) -> None:
    """The incremental indexes equal those of a new ledger."""
    transitions = list(random_transitions(chance))
    ledger = CapacityLedger(transitions[0][0])
    for _, event, after in transitions:
        ledger.apply(event)
        same_books(ledger, CapacityLedger(after))
        flying = after.in_flight.items()
        for vm in VMS:
            expected = {name for name, flight in flying if vm_of(flight.step.action) == vm}
            assert {running.step.id for running in ledger.draft.actions_on_vm(vm)} == expected
        for host in HOSTS:
            expected = {name for name, flight in flying if host in hosts_of(flight.step.action)}
            assert {running.step.id for running in ledger.draft.actions_on_host(host)} == expected
            assert set(ledger.draft.residents(host)) == set(after.residents.get(host, ()))


def same_books(one: CapacityLedger, other: CapacityLedger) -> None:
    for vm in VMS:
        assert set(one.occupied(vm)) == set(other.occupied(vm))
    for host in HOSTS:
        limits = other.capacity.limits.get(host)
        assert limits is None or one.capacity.limits[host] == limits
        for resource in (*(resource.label for resource in RESOURCES), LICENCES):
            left, right = (books.capacity.committed(host, resource) for books in (one, other))
            assert left == right


ALL_LAWS = (the_laws_hold, no_copy_betrays_another, the_ledger_knows_what_a_new_one_would)


@pytest.mark.parametrize("law", ALL_LAWS)
def test_laws(law: Callable[[Random], None]) -> None:
    for seed in range(500):
        law(Random(seed))


@pytest.mark.parametrize("law", ALL_LAWS)
@given(chance=st.randoms(use_true_random=False))
def test_laws_in_small(law: Callable[[Random], None], chance: Random) -> None:
    law(chance)


# Defects that these laws have found, in their smallest form


def test_a_ledger_drops_the_cluster_that_was_replaced() -> None:
    old = a_cluster(vms=[a_vm("v1", "h1", cpu=CpuSettings(reservation_mhz=1000))])
    ledger = CapacityLedger(old)
    ledger.apply(ClusterLoaded(at_ms=0, inventory=a_cluster(vms=[a_vm("v2", "h1")]).inventory()))
    same_books(ledger, CapacityLedger(ledger.draft.freeze()))


@pytest.mark.parametrize("kind", [VmArrived, VmChanged])
@pytest.mark.parametrize(
    "vm", [a_vm("v2", state=VmState.RUNNING), a_vm("v2", "h1", state=VmState.READY)]
)
def test_an_inconsistent_vm_is_ignored(kind: type[VmArrived] | type[VmChanged], vm: Vm) -> None:
    everything_is_there_once_and_somewhere(transition.apply(a_cluster(), kind(at_ms=0, vm=vm)))


def test_the_history_is_in_the_order_of_time() -> None:
    late = [DemandObserved(at_ms=at_ms, demand={}) for at_ms in (HISTORY_MS * 2, 0)]
    history = transition.replay(a_cluster(), late).history
    assert [frame.at_ms for frame in history] == sorted(frame.at_ms for frame in history)


@pytest.mark.parametrize("state", [HostState.STANDBY, HostState.MAINTENANCE])
def test_only_a_failed_host_recovers(state: HostState) -> None:
    before = a_cluster(a_host(state=state))
    assert transition.apply(before, HostRecovered(at_ms=0, host=HostId("h1"))).hosts == before.hosts
