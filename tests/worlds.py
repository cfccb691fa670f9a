"""Hypothesis strategies for small clusters, intents, and scripts of a ``MemoryWorld``."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import strategies as st

from builders import a_host, a_vm
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
from equipoise.model.event import (
    Event,
    HostFailed,
    HostLeft,
    HostRecovered,
    PlanCancelled,
    VmCrashed,
    VmLeft,
)
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import ConcurrencyLimits, Intent
from equipoise.model.quantity import HostId, PlanId, ResourceName, RuleId, StepId, VmId
from equipoise.model.rule import (
    Argument,
    KeepApart,
    KeepTogether,
    Rule,
    Satisfy,
    StayOff,
    StayWithin,
)
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, MemorySettings, Vm, VmState
from memory_world import Script

LICENCES = ResourceName("licences")


@st.composite
def hosts(draw: st.DrawFn, name: str) -> Host:
    """A host with capacity for two or three small VMs."""
    return a_host(
        name,
        cores=draw(st.sampled_from([1, 2])),
        memory_mib=draw(st.sampled_from([2048, 4096])),
        state=draw(st.sampled_from([*[HostState.ON] * 4, *HostState])),
        capacity={LICENCES: draw(st.integers(0, 3))},
    )


@st.composite
def vms(draw: st.DrawFn, name: str, on: list[HostId]) -> Vm:
    """A VM in any state, on one of the hosts that are on."""
    state = draw(st.sampled_from([*[VmState.RUNNING] * 4, *VmState]))
    if not on and state.has_host:
        state = VmState.READY
    memory_mib = draw(st.sampled_from([512, 1024]))
    return a_vm(
        name,
        draw(st.sampled_from(on)) if state.has_host else None,
        state=state,
        vcpus=draw(st.sampled_from([1, 1, 2])),
        memory_mib=memory_mib,
        cpu=CpuSettings(reservation_mhz=draw(st.sampled_from([0, 500, 1000]))),
        memory=MemorySettings(reservation_mib=draw(st.sampled_from([0, memory_mib]))),
        consumption=draw(st.sampled_from([{}, {LICENCES: 1}, {LICENCES: 2}])),
        template=draw(st.sampled_from([None, "debian"])),
        replaceable=draw(st.booleans()),
        agent=draw(st.booleans()) and draw(st.booleans()) and state.has_host,
    )


@st.composite
def constraints(draw: st.DrawFn, name: str, of: list[VmId], on: list[HostId]) -> Satisfy:
    """A rule of the specification language that depends only on finished actions."""
    vms = tuple(draw(st.lists(st.sampled_from(of), min_size=1, unique=True)))
    hosts = tuple(draw(st.lists(st.sampled_from(on), min_size=1, unique=True)))
    number = draw(st.integers(0, 2))
    choices: list[tuple[str, dict[str, Argument]]] = [
        ("Lonely", {"vs": vms}),
        ("MaxPerHost", {"vs": vms, "nb": number}),
        ("MinRunning", {"vs": vms, "nb": number}),
        ("RunningCapacity", {"ns": hosts, "nb": number}),
        ("MaxOnline", {"ns": hosts, "nb": number}),
        ("Fence", {"v": vms[0], "ns": hosts}),
        ("Isolated", {"vs": vms, "ns": hosts}),
    ]
    constraint, arguments = draw(st.sampled_from(choices))
    # Continuous: for a discrete rule the gate charges only the cells that its formula reads.
    hard = draw(st.booleans())
    return Satisfy(
        id=RuleId(name), constraint=constraint, arguments=arguments, hard=hard, continuous=True
    )


@st.composite
def rules(draw: st.DrawFn, name: str, of: list[VmId], on: list[HostId]) -> Rule:
    """A rule of any kind over the given VMs and hosts."""
    if draw(st.integers(0, 2)) == 0:
        return draw(constraints(name, of, on))
    kind = draw(st.sampled_from([KeepApart, KeepTogether, StayWithin, StayOff]))
    least = 2 if kind in {KeepApart, KeepTogether} else 1
    fields = {
        "id": name,
        "vms": tuple(draw(st.lists(st.sampled_from(of), min_size=least, unique=True))),
        "hard": draw(st.booleans()),
        "continuous": draw(st.booleans()),
    }
    if kind in {StayWithin, StayOff}:
        fields["hosts"] = tuple(draw(st.lists(st.sampled_from(on), min_size=1, unique=True)))
    rule: Rule = kind(**fields)
    return rule


@st.composite
def clusters(draw: st.DrawFn, hosts_max: int = 3, vms_max: int = 4, ruled: bool = True) -> Snapshot:
    """A small cluster with so little capacity that many intents are impossible."""
    drawn = [draw(hosts(f"h{n}")) for n in range(1, draw(st.integers(1, hosts_max)) + 1)]
    on = [host.id for host in drawn if host.state is HostState.ON]
    drawn_vms = [draw(vms(f"v{n}", on)) for n in range(1, draw(st.integers(0, vms_max)) + 1)]
    pairs = draw(st.booleans()) and len(drawn_vms) > 1 and drawn_vms[0].host != drawn_vms[1].host
    if pairs:
        drawn_vms[0], drawn_vms[1] = (
            drawn_vms[0].but(ft_pair=drawn_vms[1].id),
            drawn_vms[1].but(ft_pair=drawn_vms[0].id),
        )
    names = [vm.id for vm in drawn_vms]
    drawn_rules = [
        draw(rules(f"r{n}", names, [host.id for host in drawn]))
        for n in range(draw(st.integers(0, 2)) if ruled and len(names) > 1 else 0)
    ]
    limits = ConcurrencyLimits(
        actions_per_host=draw(st.integers(1, 3)), actions_total=draw(st.integers(1, 4))
    )
    return Snapshot.of(
        Inventory(hosts=tuple(drawn), vms=tuple(drawn_vms), rules=tuple(drawn_rules), limits=limits)
    )


@st.composite
def actions(draw: st.DrawFn, snapshot: Snapshot) -> Action:
    """Any action on a cluster; many fit its state."""
    host = st.sampled_from(list(snapshot.hosts))
    host_kinds: list[type[Any]] = [PowerOn, PowerOff, EnterMaintenance, LeaveMaintenance]
    if not snapshot.vms or draw(st.integers(0, 4)) == 0:
        return cast(Action, draw(st.sampled_from(host_kinds))(host=draw(host)))
    vm = snapshot.vms[draw(st.sampled_from(list(snapshot.vms)))]
    source = vm.host or draw(host)
    kinds: list[type[Any]] = [Migrate] * 4
    kinds += [Reinstantiate, Boot, Boot, Shutdown, Suspend, Resume, Forge, Kill, Allocate]
    kind = draw(st.sampled_from(kinds))
    if kind in {Migrate, Reinstantiate, Resume}:
        return cast(Action, kind(vm=vm.id, source=source, target=draw(host)))
    if kind is Boot:
        return Boot(vm=vm.id, target=draw(host))
    if kind in {Shutdown, Suspend}:
        return cast(Action, kind(vm=vm.id, source=source))
    if kind is Allocate:
        return Allocate(vm=vm.id, resource=LICENCES, amount=draw(st.integers(0, 3)))
    return cast(Action, kind(vm=vm.id))


@st.composite
def intents(draw: st.DrawFn, snapshot: Snapshot, size_max: int = 6) -> list[Intent]:
    """Intents for a cluster, some with earlier ones as prerequisites."""
    made: list[Intent] = []
    for n in range(draw(st.integers(0, size_max))):
        before = [intent.id for intent in made]
        after = draw(st.lists(st.sampled_from(before), unique=True, max_size=2)) if before else []
        made.append(
            Intent(
                id=StepId(f"s{n}"),
                action=draw(actions(snapshot)),
                duration_ms=draw(st.sampled_from([1, 1000, 1000, 2500])),
                after=tuple(after),
            )
        )
    return made


@st.composite
def scripts(draw: st.DrawFn, snapshot: Snapshot, steps: list[StepId]) -> Script:
    """A script with slow, failing and silent steps, and with failures of hosts and VMs."""
    some = st.sampled_from(steps) if steps else st.nothing()
    return Script(
        durations_ms=draw(st.dictionaries(some, st.sampled_from([1, 500, 5000, 10**6]))),
        failures=draw(st.dictionaries(some, st.integers(1, 4))),
        silent=frozenset(draw(st.sets(some, max_size=1)) if steps else ()),
        events=tuple(draw(st.lists(world_events(snapshot), max_size=3))),
    )


@st.composite
def world_events(draw: st.DrawFn, snapshot: Snapshot) -> Event:
    """An event that the loop does not cause: a failure, a removal, or a cancellation."""
    at_ms = draw(st.integers(0, 8)) * 500
    host = st.sampled_from(list(snapshot.hosts))
    if draw(st.integers(0, 5)) == 0:
        return PlanCancelled(at_ms=at_ms, plan=PlanId("p"), abort=draw(st.booleans()))
    host_kinds: list[type[Any]] = [HostFailed, HostFailed, HostRecovered, HostLeft]
    vm_kinds: list[type[Any]] = [VmCrashed, VmCrashed, VmLeft]
    if len(snapshot.vms) and draw(st.booleans()):
        vm = draw(st.sampled_from(list(snapshot.vms)))
        return cast(Event, draw(st.sampled_from(vm_kinds))(at_ms=at_ms, vm=vm))
    return cast(Event, draw(st.sampled_from(host_kinds))(at_ms=at_ms, host=draw(host)))
