"""Hypothesis strategies for whole files: valid inventories and plans, and any events.

``inventories`` draws files without problems. ``plans`` are well formed, but the gate may refuse
them. ``events`` may name hosts and VMs that do not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeVar, cast

from hypothesis import strategies as st

from equipoise.model import action, event
from equipoise.model.action import Action
from equipoise.model.event import Event
from equipoise.model.host import Host, HostReserve, HostState, PowerProfile
from equipoise.model.inventory import AntiAffinityGroup, Inventory, Pool, Sla, Tenant
from equipoise.model.plan import ConcurrencyLimits, Plan, Step
from equipoise.model.quantity import (
    GroupId,
    HostId,
    PlanId,
    PoolId,
    ResourceId,
    ResourceName,
    RuleId,
    StepId,
    TenantId,
    VmId,
)
from equipoise.model.rule import KeepApart, KeepTogether, Rule, StayOff, StayWithin
from equipoise.model.upgrade import infrastructure
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    Resource,
    ResourceGroup,
)
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState

T = TypeVar("T")

# Names that some version of YAML reads as another type than text.
_TRAPS = (
    "on", "no", "y", "NULL", "True", "1", "-1", "0x1F", "0o17", "1e3", "1_000", "12:30:45", "-",
    "2024-01-01", ".5", ".inf", "a:", ":a", "-a", "+1", "0123", "@x", "x/y", "...", "---", "a:b",
)  # fmt: skip
_LETTERS = "abcXYZ019_.:@/+-"

AMOUNTS = st.integers(0, 10**12)
ids = st.sampled_from(_TRAPS) | st.text(_LETTERS, min_size=1, max_size=6)
texts = st.sampled_from((*_TRAPS, "", " a", "a ", "a: b", "a #b", "~", "<<", "=", "\n", "%")) | (
    st.text(max_size=8)
)
resource_names = st.sampled_from(("network_mbps", "gpus", "on")).map(ResourceName)
labels: st.SearchStrategy[dict[str, str]] = st.just({}) | st.dictionaries(texts, texts, max_size=2)
capacities: st.SearchStrategy[dict[ResourceName, int]] = st.just({}) | st.dictionaries(
    resource_names, AMOUNTS, max_size=2
)
ATTEMPTS = st.integers(1, 3)


def up_to(most: int) -> st.SearchStrategy[int]:
    """Integers from 0 to ``most``; Hypothesis draws the bounds often."""
    return st.integers(0, most)


def some(items: Sequence[T], least: int = 0, most: int = 4) -> st.SearchStrategy[tuple[T, ...]]:
    """A few different items, at least ``least``."""
    if not items:
        return st.just(())
    drawn = st.lists(st.sampled_from(items), min_size=least, max_size=most, unique=True)
    return drawn.map(tuple)


def names(most: int, least: int = 0) -> st.SearchStrategy[list[str]]:
    """Different ids."""
    return st.lists(ids, min_size=least, max_size=most, unique=True)


@st.composite
def hosts(draw: st.DrawFn, name: str) -> Host:
    """A host of any size and in any state."""
    cores, mhz, memory = draw(st.integers(1, 256)), draw(st.integers(1, 5000)), draw(_SIZES)
    return Host(
        id=HostId(name),
        cores=cores,
        mhz_per_core=mhz,
        memory_mib=memory,
        state=draw(st.sampled_from(HostState)),
        power=draw(power_figures()),
        reserve=draw(st.sampled_from((HostReserve(), HostReserve(cpu_mhz=mhz, memory_mib=memory)))),
        labels=draw(labels),
        capacity=draw(capacities),
    )


@st.composite
def power_figures(draw: st.DrawFn) -> PowerProfile:
    """A power profile; some are managed."""
    peak = draw(up_to(1000))
    watts = sorted(draw(st.lists(up_to(peak), min_size=2, max_size=4)))
    return PowerProfile(
        idle_watts=peak // 3,
        peak_watts=peak,
        standby_watts=peak // 50,
        managed=draw(st.booleans()),
        managed_watts=tuple(watts),
    )


_SIZES = st.integers(1, 10**6)


@st.composite
def cpu_settings(draw: st.DrawFn) -> CpuSettings:
    """CPU settings whose reservation is at most the limit."""
    limit = draw(st.none() | up_to(10**9))
    most = 10**9 if limit is None else limit
    return CpuSettings(
        reservation_mhz=draw(up_to(most)), limit_mhz=limit, shares=draw(st.integers(1, 10**7))
    )


@st.composite
def memory_settings(draw: st.DrawFn, most: int = 10**12) -> MemorySettings:
    """Memory settings whose reservation is at most the limit and the size ``most``."""
    limit = draw(st.none() | up_to(10**12))
    reservation = draw(up_to(most if limit is None else min(limit, most)))
    return MemorySettings(
        reservation_mib=reservation, limit_mib=limit, shares=draw(st.integers(1, 10**7))
    )


CPU_SETTINGS = st.just(CpuSettings()) | cpu_settings()
MEMORY_SETTINGS = st.just(MemorySettings()) | memory_settings()


@st.composite
def demands(draw: st.DrawFn, memory_mib: int) -> Demand:
    """A demand of a VM of this size."""
    return Demand(
        cpu_mhz=draw(up_to(10**9)),
        memory_mib=draw(up_to(memory_mib)),
        named=draw(capacities),
    )


@st.composite
def vms(
    draw: st.DrawFn,
    name: str,
    within: Sequence[Host],
    pools: Sequence[Pool] = (),
    tenants: Sequence[TenantId] = (),
) -> Vm:
    """A VM in any state that the hosts allow."""
    powered_on = [host for host in within if host.state is HostState.ON]
    states = [state for state in VmState if powered_on or state is not VmState.RUNNING]
    state = draw(st.sampled_from(states))
    allowed = powered_on if state is VmState.RUNNING else within
    host = draw(st.sampled_from(allowed)) if state.has_host else None
    memory = draw(_SIZES)
    template = draw(st.none() | texts)
    offered = host.capacity if host else {"gpus": 1}
    return Vm(
        id=VmId(name),
        vcpus=draw(st.integers(1, 64)),
        memory_mib=memory,
        state=state,
        host=host.id if host else None,
        cpu=draw(CPU_SETTINGS),
        memory=draw(st.just(MemorySettings()) | memory_settings(memory)),
        demand=draw(st.just(Demand()) | demands(memory)),
        consumption={ResourceName(key): draw(up_to(10**12)) for key in draw(some(tuple(offered)))},
        pool=draw(st.none() | st.sampled_from([pool.id for pool in pools])) if pools else None,
        tenant=draw(st.none() | st.sampled_from(tenants)) if tenants else None,
        template=template,
        replaceable=template is not None and draw(st.booleans()),
        agent=draw(st.booleans()),
        labels=draw(labels),
    )


@st.composite
def pool_trees(draw: st.DrawFn) -> tuple[Pool, ...]:
    """Trees of pools, in any order."""
    made: list[Pool] = []
    for name in draw(names(4)):
        above = [pool.id for pool in made]
        pool = Pool(
            id=PoolId(name),
            parent=draw(st.none() | st.sampled_from(above)) if above else None,
            cpu=draw(CPU_SETTINGS),
            memory=draw(MEMORY_SETTINGS),
            cpu_expandable=draw(st.booleans()),
            memory_expandable=draw(st.booleans()),
            scalable=draw(st.booleans()),
        )
        made.append(pool)
    return tuple(draw(st.permutations(made)))


@st.composite
def rules(draw: st.DrawFn, name: str, vm_ids: Sequence[VmId], host_ids: Sequence[HostId]) -> Rule:
    """A rule about some of at least two VMs."""
    given: dict[str, Any] = {
        "id": RuleId(name),
        "hard": draw(st.booleans()),
        "continuous": draw(st.booleans()),
    }
    kind: Any = draw(st.sampled_from((KeepApart, KeepTogether, StayWithin, StayOff)))
    if kind in (KeepApart, KeepTogether):
        return cast(Rule, kind(vms=draw(some(vm_ids, least=2)), **given))
    where = draw(some(host_ids, least=1))
    return cast(Rule, kind(vms=draw(some(vm_ids, least=1)), hosts=where, **given))


@st.composite
def tenants_of(draw: st.DrawFn, name: TenantId, members: Sequence[Vm]) -> Tenant:
    """A tenant with an SLA and groups of its own VMs."""
    own = [vm.id for vm in members if vm.tenant == name]
    most = draw(up_to(1000))
    groups = draw(names(2)) if own else []
    return Tenant(
        id=name,
        sla=Sla(
            vms_min=draw(up_to(most)), vms_max=most, scaling_vms=1 + most // 9, cooldown_s=most
        ),
        anti_affinity=tuple(
            AntiAffinityGroup(
                id=GroupId(group),
                vms=draw(some(own, least=1)),
                disturbed_max=draw(st.integers(1, 3)),
            )
            for group in groups
        ),
    )


@st.composite
def resources(
    draw: st.DrawFn, vm_ids: Sequence[VmId], host_ids: Sequence[HostId]
) -> tuple[Resource, ...]:
    """Resources of the infrastructure; some name a host or a VM."""
    return tuple(
        Resource(
            id=ResourceId(name),
            kind=draw(st.sampled_from(infrastructure.ResourceKind)),
            side=draw(st.sampled_from(infrastructure.ResourceSide)),
            version=draw(texts),
            host=draw(st.none() | st.sampled_from(host_ids)) if host_ids else None,
            vm=draw(st.none() | st.sampled_from(vm_ids)) if vm_ids else None,
        )
        for name in draw(names(4))
    )


@st.composite
def dependencies(draw: st.DrawFn, parts: Sequence[Resource]) -> tuple[Dependency, ...]:
    """Dependencies with the options that their kind allows."""
    links = [part.id for part in parts if part.kind.value.endswith("link")]
    made = []
    for _ in range(draw(up_to(4)) if len(parts) > 1 else 0):
        dependent, sponsor = draw(some([part.id for part in parts], least=2, most=2))
        kind = draw(st.sampled_from(DependencyKind))
        presence = draw(st.sampled_from(infrastructure.DependencyPresence))
        both = presence is infrastructure.DependencyPresence.CURRENT_FUTURE
        is_linked = kind is DependencyKind.COMMUNICATION and bool(links)
        made.append(
            Dependency(
                dependent=dependent,
                sponsor=sponsor,
                kind=kind,
                presence=presence,
                incompatible=both and draw(st.booleans()),
                constituents_min=draw(st.sampled_from((None, 1)))
                if kind is DependencyKind.AGGREGATION
                else None,
                link=draw(st.none() | st.sampled_from(links)) if is_linked else None,
            )
        )
    return tuple(made)


@st.composite
def groups(draw: st.DrawFn, parts: Sequence[Resource]) -> tuple[ResourceGroup, ...]:
    """Groups; a protection group may be chosen from a potential one that came before."""
    kinds = infrastructure.ResourceGroupKind
    made: list[ResourceGroup] = []
    for name in draw(names(3)) if parts else ():
        members = draw(some([part.id for part in parts], least=1))
        kind = draw(st.sampled_from(kinds))
        wide = [group for group in made if group.kind is kinds.POTENTIAL_PROTECTION]
        outer = [group.id for group in wide if set(members) <= set(group.resources)]
        within = draw(st.sampled_from(outer)) if outer and kind is kinds.PROTECTION else None
        made.append(ResourceGroup(id=GroupId(name), kind=kind, resources=members, within=within))
    return tuple(made)


@st.composite
def inventories(draw: st.DrawFn) -> Inventory:
    """A small valid cluster with every kind of entry."""
    all_hosts = tuple(draw(hosts(name)) for name in draw(names(3, least=1)))
    pools = draw(pool_trees())
    tenant_ids = [TenantId(name) for name in draw(names(2))]
    all_vms = [draw(vms(name, all_hosts, pools, tenant_ids)) for name in draw(names(5))]
    all_vms = draw(paired(all_vms))
    vm_ids, host_ids = [vm.id for vm in all_vms], [host.id for host in all_hosts]
    parts = draw(resources(vm_ids, host_ids))
    return Inventory(
        name=draw(texts),
        hosts=all_hosts,
        vms=tuple(all_vms),
        pools=pools,
        rules=tuple(
            draw(rules(name, vm_ids, host_ids)) for name in draw(names(3)) if len(vm_ids) > 1
        ),
        tenants=tuple(draw(tenants_of(name, all_vms)) for name in tenant_ids),
        resources=parts,
        dependencies=draw(dependencies(parts)),
        groups=draw(groups(parts)),
        limits=ConcurrencyLimits(
            actions_per_host=draw(st.integers(1, 8)), actions_total=draw(st.integers(1, 64))
        ),
    )


@st.composite
def paired(draw: st.DrawFn, machines: list[Vm]) -> list[Vm]:
    """Make two VMs on different hosts a fault-tolerant pair, if there are any."""
    apart = [
        (first, second)
        for first, second in combinations(machines, 2)
        if first.host is None or first.host != second.host
    ]
    if not apart or draw(st.booleans()):
        return machines
    first, second = draw(st.sampled_from(apart))
    pairs = {first.id: second.id, second.id: first.id}
    return [vm.but(ft_pair=pairs[vm.id]) if vm.id in pairs else vm for vm in machines]


@st.composite
def actions(draw: st.DrawFn, vm_ids: Sequence[VmId], host_ids: Sequence[HostId]) -> Action:
    """Any action on these VMs and hosts."""
    host = st.sampled_from(host_ids)
    on_hosts = (
        action.PowerOn, action.PowerOff, action.EnterMaintenance, action.LeaveMaintenance,
    )  # fmt: skip
    kinds: list[st.SearchStrategy[Any]] = [st.builds(kind, host=host) for kind in on_hosts]
    if vm_ids:
        vm = st.sampled_from(vm_ids)
        kinds += [
            st.builds(action.Forge, vm=vm),
            st.builds(action.Kill, vm=vm),
            st.builds(action.Boot, vm=vm, target=host),
            st.builds(action.Shutdown, vm=vm, source=host),
            st.builds(action.Suspend, vm=vm, source=host),
            st.builds(action.Migrate, vm=vm, source=host, target=host),
            st.builds(action.Reinstantiate, vm=vm, source=host, target=host),
            st.builds(action.Resume, vm=vm, source=host, target=host),
            st.builds(action.Allocate, vm=vm, resource=resource_names, amount=up_to(10**12)),
        ]
    return cast(Action, draw(st.one_of(kinds)))


@st.composite
def steps(
    draw: st.DrawFn, name: str, before: Sequence[StepId], chosen_actions: st.SearchStrategy[Action]
) -> Step:
    """A step with some earlier steps as prerequisites."""
    start = draw(up_to(10**6))
    return Step(
        id=StepId(name),
        action=draw(chosen_actions),
        start_ms=start,
        end_ms=start + draw(st.integers(1, 10**6)),
        after=draw(some(before, most=2)),
        reason=draw(texts),
    )


@st.composite
def plans(draw: st.DrawFn, inventory: Inventory) -> Plan:
    """A well-formed plan for an inventory; the gate may refuse it."""
    chosen_actions = actions([vm.id for vm in inventory.vms], [host.id for host in inventory.hosts])
    made: list[Step] = []
    for name in draw(names(5)):
        made.append(draw(steps(name, [step.id for step in made], chosen_actions)))
    version = draw(up_to(10**6))
    return Plan(id=PlanId(draw(ids)), base_version=version, steps=tuple(made))


_UNKNOWN = ("unknown-1", "unknown-2")


@st.composite
def events(draw: st.DrawFn, inventory: Inventory) -> list[Event]:
    """Events of a cluster: most fit the state, some name unknown things, some are late.

    Answers follow their starts more often than not, with the right attempt or a wrong one.
    """
    plan = draw(plans(inventory))
    earlier: list[Event] = []
    now = 0
    for _ in range(draw(st.integers(0, 12))):
        now = max(0, now + draw(st.integers(-10, 5000)))
        earlier.append(draw(an_event(inventory, plan, earlier, now)))
    return earlier


@st.composite
def an_event(
    draw: st.DrawFn, inventory: Inventory, plan: Plan, earlier: Sequence[Event], at_ms: int
) -> Event:
    """The next event after those in ``earlier``."""
    kinds = [facts(inventory)]
    if plan.steps:
        kinds.append(st.builds(event.ActionStarted, step=st.sampled_from(plan.steps), **_ATTEMPT))
    started = [each for each in earlier if isinstance(each, event.ActionStarted)]
    if started:
        answered = draw(st.sampled_from(started))
        attempts = st.sampled_from((answered.attempt, answered.attempt, 7))
        kinds += [answers(st.just(answered.step.id), attempts)] * 2
    kinds.append(answers(st.sampled_from(_UNKNOWN).map(StepId), ATTEMPTS))
    return cast(Event, draw(st.one_of(kinds)).but(at_ms=at_ms))


def answers(
    step: st.SearchStrategy[StepId], attempt: st.SearchStrategy[int]
) -> st.SearchStrategy[Any]:
    """An end of an action."""
    ends = (event.ActionFinished, event.ActionFailed, event.ActionTimedOut, event.ActionLost)
    return st.sampled_from(ends).flatmap(
        lambda kind: st.builds(kind, at_ms=st.just(0), step=step, attempt=attempt)
    )


_ATTEMPT: dict[str, Any] = {"at_ms": st.just(0), "attempt": ATTEMPTS}


def facts(inventory: Inventory) -> st.SearchStrategy[Any]:
    """A fact about a known or an unknown host or VM."""
    at = st.just(0)
    unknown_host, unknown_vm = HostId("unknown-host"), VmId("unknown-vm")
    host = st.sampled_from([*(host.id for host in inventory.hosts), unknown_host])
    vm = st.sampled_from([*(vm.id for vm in inventory.vms), unknown_vm])
    some_vm = vm.flatmap(lambda name: vms(name, inventory.hosts))
    lost_vm = some_vm.map(lambda lost: lost.but(state=VmState.RUNNING, host=unknown_host))
    measured = st.dictionaries(vm, demands(1000), max_size=3)
    return st.one_of(
        st.builds(event.HostFailed, at_ms=at, host=host, reason=texts),
        st.builds(event.HostRecovered, at_ms=at, host=host),
        st.builds(event.HostLeft, at_ms=at, host=host),
        st.builds(event.HostJoined, at_ms=at, host=host.flatmap(hosts)),
        st.builds(event.HostChanged, at_ms=at, host=host.flatmap(hosts)),
        st.builds(event.VmArrived, at_ms=at, vm=some_vm | lost_vm),
        st.builds(event.VmChanged, at_ms=at, vm=some_vm | lost_vm),
        st.builds(event.VmCrashed, at_ms=at, vm=vm, reason=texts),
        st.builds(event.VmLeft, at_ms=at, vm=vm),
        st.builds(event.DemandObserved, at_ms=at, demand=measured),
        st.builds(event.ClusterLoaded, at_ms=at, inventory=st.just(inventory)),
    )
