"""Random upgrade campaigns with ample capacity and many failures; one seed makes one campaign."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from equipoise.model.host import Host
from equipoise.model.inventory import AntiAffinityGroup, Inventory, Sla, Tenant
from equipoise.model.quantity import GroupId, HostId, ResourceId, ResourceName, TenantId, VmId
from equipoise.model.upgrade.campaign import (
    InjectedFailure,
    InjectedMoveFailure,
    ScalingStep,
    ScheduledCampaignEvent,
    UpgradeCampaign,
    UpgradeSettings,
    UpgradeSimulation,
)
from equipoise.model.upgrade.catalog import (
    Catalog,
    ComponentDescription,
    ComponentId,
    ComponentRequirement,
    Recipe,
)
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    DependencyPresence,
    Resource,
    ResourceGroup,
    ResourceGroupKind,
    ResourceKind,
)
from equipoise.model.upgrade.request import (
    ChangeKind,
    ChangeSet,
    CommandKind,
    RequestedChange,
    RequestId,
    SetId,
    UpgradeCommand,
    UpgradeRequest,
)
from equipoise.model.vm import Vm

ITERATIONS_MAX = 400
"""Far beyond what a campaign of this size needs: more iterations are endless ones."""
LINKED = DependencyKind.COMMUNICATION
PEERS = DependencyKind.PEER_STATELESS


@dataclass
class _Parts:
    """What has been drawn of a cluster so far."""

    rng: Random
    hosts: list[Host] = field(default_factory=list)
    resources: list[Resource] = field(default_factory=list)
    dependencies: list[Dependency] = field(default_factory=list)
    groups: list[ResourceGroup] = field(default_factory=list)
    racks: list[list[HostId]] = field(default_factory=list)
    vms: list[Vm] = field(default_factory=list)
    tenants: list[Tenant] = field(default_factory=list)
    targets: dict[str, list[ResourceId]] = field(default_factory=dict)
    """The resources that can be upgraded together, by kind."""
    clashing: set[str] = field(default_factory=set)
    """Components whose versions do not work together."""

    def add(self, name: str, kind: ResourceKind, host: HostId | None = None) -> ResourceId:
        id_ = ResourceId(name)
        self.resources.append(Resource(id=id_, kind=kind, version="v1", host=host))
        return id_

    def bind(
        self, dependent: str, sponsor: str, kind: DependencyKind, least: int | None = None
    ) -> None:
        self.dependencies.append(
            Dependency(
                dependent=ResourceId(dependent),
                sponsor=ResourceId(sponsor),
                kind=kind,
                presence=DependencyPresence.CURRENT_FUTURE,
                constituents_min=least,
            )
        )


def random_campaign(seed: int) -> UpgradeCampaign:
    """Return the campaign of a seed."""
    parts = _Parts(Random(f"campaign {seed}"))
    _draw_hosts(parts)
    _draw_network(parts)
    _draw_controllers(parts)
    _draw_storage(parts)
    _draw_vms(parts)
    requests = _draw_requests(parts)
    return UpgradeCampaign(
        name=f"random-{seed}",
        seed=seed,
        cluster=Inventory(
            name=f"random-{seed}",
            hosts=tuple(parts.hosts),
            vms=tuple(parts.vms),
            tenants=tuple(parts.tenants),
            resources=tuple(parts.resources),
            dependencies=tuple(parts.dependencies),
            groups=tuple(parts.groups),
        ),
        catalog=_catalog(parts),
        requests=requests,
        settings=UpgradeSettings(
            vm_move_s=5,
            failover_hosts=parts.rng.choice([0, 0, 1]),
            iterations_max=ITERATIONS_MAX,
        ),
        simulation=_draw_failures(parts, requests),
    )


def _draw_hosts(parts: _Parts) -> None:
    rng = parts.rng
    boxed = rng.random() < 0.3
    capacity = rng.randint(3, 4)
    for rack in range(rng.randint(4, 6)):
        parts.racks.append([])
        for number in range(rng.randint(2, 3)):
            name = HostId(f"h{rack}{number}")
            vms = capacity if rng.random() < 0.8 else capacity + 1
            parts.hosts.append(
                Host(id=name, cores=32, mhz_per_core=2000, memory_mib=65536,
                     capacity={ResourceName("vms"): vms})
            )  # fmt: skip
            parts.racks[-1].append(name)
            kernel = parts.add(f"k-{name}", ResourceKind.HYPERVISOR, name)
            parts.targets.setdefault("kernels", []).append(kernel)
            if boxed:
                box = parts.add(f"box-{name}", ResourceKind.SERVER, name)
                parts.bind(kernel, box, DependencyKind.CONTAINER)
                parts.targets.setdefault("boxes", []).append(box)


def _draw_network(parts: _Parts) -> None:
    """One switch for each rack, or two that are peers; routers above them."""
    rng = parts.rng
    paired = rng.random() < 0.4
    switches = parts.targets.setdefault("switches", [])
    for rack, hosts in enumerate(parts.racks):
        names = [parts.add(f"sw{rack}{side}", ResourceKind.SWITCH) for side in "ab"[: 1 + paired]]
        switches += names
        for host in hosts:
            for name in names:
                parts.bind(f"k-{host}", name, LINKED)
        if paired:
            parts.bind(names[0], names[1], PEERS)
    if rng.random() < 0.4:
        routers = [parts.add(f"r{number}", ResourceKind.ROUTER) for number in "ab"]
        parts.targets["routers"] = routers
        for switch in switches:
            for router in routers:
                parts.bind(switch, router, LINKED)
        if rng.random() < 0.5:
            parts.bind(routers[0], routers[1], PEERS)
        else:
            parts.groups.append(
                ResourceGroup(id=GroupId("gateway"), kind=ResourceGroupKind.PROTECTION,
                              resources=tuple(routers))
            )  # fmt: skip
    if paired and rng.random() < 0.4:
        parts.clashing.add("switch")


def _draw_controllers(parts: _Parts) -> None:
    """An aggregate of controllers, some on compute hosts, of which a minimum must work."""
    rng = parts.rng
    if rng.random() < 0.4:
        return
    count = rng.randint(3, 5)
    least = rng.randint(1, count - 1)
    plane = parts.add("plane", ResourceKind.VIRTUAL_CLUSTER)
    behind = rng.random() < 0.4
    names = []
    for number in range(count):
        name = parts.add(f"ctl{number}", ResourceKind.STORAGE_CONTROLLER)
        names.append(name)
        parts.bind(plane, name, DependencyKind.AGGREGATION, least)
        if behind:
            switches = parts.targets["switches"]
            parts.bind(name, switches[number % len(switches)], LINKED)
    parts.targets["controllers"] = names
    if rng.random() < 0.5:
        parts.clashing.add("storage_controller")
        has_peers = rng.random() < 0.7
        for first, second in pairwise(names):
            # Peers cover for each other; a controller with a link needs the one at its end.
            parts.bind(first, second, PEERS if has_peers else LINKED)


def _draw_storage(parts: _Parts) -> None:
    """A shared storage for the VMs of all hosts, on nodes of which a minimum must work."""
    rng = parts.rng
    if rng.random() < 0.5:
        return
    store = parts.add("store", ResourceKind.VIRTUAL_SHARED_STORAGE)
    count = rng.randint(3, 5)
    nodes = [parts.add(f"node{number}", ResourceKind.HOST_OS) for number in range(count)]
    for node in nodes:
        parts.bind(store, node, DependencyKind.AGGREGATION, rng.choice([1, 2]))
    for host in parts.hosts:
        parts.bind(f"k-{host.id}", store, DependencyKind.VM_SUPPORTING_STORAGE)
    parts.targets["nodes"] = nodes


def _draw_vms(parts: _Parts) -> None:
    """At most two fifths of the capacity is used, also when all tenants have scaled."""
    rng = parts.rng
    left = sum(host.capacity[ResourceName("vms")] for host in parts.hosts) * 2 // 5
    used: dict[HostId, int] = {}
    for number in range(rng.randint(1, 4)):
        size = min(left, rng.randint(1, 4))
        if size < 1:
            break
        tenant = TenantId(f"t{number}")
        names = [VmId(f"{tenant}-{count}") for count in range(size)]
        with_room = [
            host.id
            for host in parts.hosts
            if used.get(host.id, 0) < host.capacity[ResourceName("vms")]
        ]
        size = min(size, len(with_room))
        names = names[:size]
        where = rng.sample(with_room, size)
        together = size > 1 and rng.random() < 0.25
        if together and used.get(where[0], 0) + 2 <= 3:
            where[1] = where[0]
        else:
            together = False
        for name, host in zip(names, where, strict=True):
            used[host] = used.get(host, 0) + 1
            parts.vms.append(Vm(id=name, vcpus=1, memory_mib=1024, host=host, tenant=tenant))
        more = rng.choice([0, 0, 1])
        left -= size + more
        apart = names[1:] if together else names
        groups = _anti_affinity(rng, tenant, apart)
        if together:
            _keep_together(parts, tenant, names[:2])
        parts.tenants.append(
            Tenant(id=tenant, sla=Sla(vms_min=1, vms_max=size + more, cooldown_s=10_000),
                   anti_affinity=groups)
        )  # fmt: skip


def _keep_together(parts: _Parts, tenant: TenantId, names: list[VmId]) -> None:
    """Name two VMs as resources of an affinity group."""
    ids = []
    for name in names:
        ids.append(ResourceId(f"vm-{name}"))
        parts.resources.append(Resource(id=ids[-1], kind=ResourceKind.VIRTUAL_SERVER, vm=name))
    parts.groups.append(
        ResourceGroup(id=GroupId(f"near-{tenant}"), kind=ResourceGroupKind.AFFINITY,
                      resources=tuple(ids))
    )  # fmt: skip


def _anti_affinity(
    rng: Random, tenant: TenantId, names: list[VmId]
) -> tuple[AntiAffinityGroup, ...]:
    """Return groups of which a VM can be in two."""
    if rng.random() < 0.2:
        return ()
    if len(names) < 3 or rng.random() < 0.6:
        return (AntiAffinityGroup(id=GroupId(f"{tenant}-all"), vms=tuple(names)),)
    cut = rng.randint(1, len(names) - 2)
    return (
        AntiAffinityGroup(id=GroupId(f"{tenant}-left"), vms=tuple(names[: cut + 1])),
        AntiAffinityGroup(id=GroupId(f"{tenant}-right"), vms=tuple(names[cut:])),
    )


def _catalog(parts: _Parts) -> Catalog:
    described: list[ComponentDescription] = []
    for component in dict.fromkeys(resource.kind.value for resource in parts.resources):
        for version in ("v1", "v2", "v3"):
            step = Recipe(duration_s=10, check_script="check")
            needs: tuple[ComponentRequirement, ...] = ()
            if component in parts.clashing:
                kinds = (LINKED, PEERS)
                needs = tuple(
                    ComponentRequirement(
                        component=ComponentId(component), versions=(version,), along=kind
                    )
                    for kind in kinds
                )
            described.append(
                ComponentDescription(
                    component=ComponentId(component), version=version, upgrade=step, needs=needs
                )
            )
    return Catalog(descriptions=tuple(described))


def _draw_requests(parts: _Parts) -> tuple[UpgradeRequest, ...]:
    rng = parts.rng
    kinds = list(parts.targets)
    requests = []
    for order in range(rng.choice([1, 1, 2])):
        chosen = rng.sample(kinds, rng.randint(1, min(3, len(kinds))))
        if order == 0 and rng.random() < 0.5 and "kernels" not in chosen:
            chosen[0] = "kernels"
        sets = []
        for kind in dict.fromkeys(chosen):
            ids = parts.targets[kind]
            lenient = rng.random() < 0.6
            change = RequestedChange(
                does=ChangeKind.UPGRADE,
                resources=tuple(ids),
                version=f"v{order + 2}",
                undo_threshold=rng.randint(0, len(ids)) if lenient else None,
            )
            sets.append(
                ChangeSet(
                    id=SetId(f"{kind}-{order}"),
                    changes=(change,),
                    attempts_max=rng.randint(1, 3),
                    bake_s=rng.choice([0, 0, 30]),
                    priority=rng.choice([0, 0, 1]),
                )
            )
        requests.append(UpgradeRequest(id=RequestId(f"r{order}"), sets=tuple(sets)))
    return tuple(requests)


def _draw_failures(parts: _Parts, requests: tuple[UpgradeRequest, ...]) -> UpgradeSimulation:
    rng = parts.rng
    candidates = [resource.id for resource in parts.resources if resource.vm is None]
    failures = tuple(
        InjectedFailure(
            resource=rng.choice(candidates),
            times=rng.choice([None, 1, 2]),
            reverting=rng.random() < 0.1,
            unreachable=rng.random() < 0.1,
            unhealthy=rng.random() < 0.4,
            undoing=rng.random() < 0.2,
            refused=rng.random() < 0.2,
        )
        for _ in range(rng.choice([0, 0, 1, 2, 3]))
    )
    moves = tuple(
        InjectedMoveFailure(
            vm=rng.choice(parts.vms).id if rng.random() < 0.5 and parts.vms else None,
            source=rng.choice(parts.hosts).id if rng.random() < 0.5 else None,
            target=rng.choice(parts.hosts).id if rng.random() < 0.5 else None,
            times=rng.choice([None, 1, 3]),
        )
        for _ in range(rng.choice([0, 0, 1, 2]))
    )
    moves = tuple(move for move in moves if (move.vm, move.source, move.target) != (None,) * 3)

    def rate(most: float) -> float:
        return rng.random() * most if rng.random() < 0.3 else 0.0

    return UpgradeSimulation(
        events=_draw_events(parts, requests),
        failures=failures,
        move_failures=moves,
        failure_rate=rate(0.3),
        revert_failure_rate=rate(0.05),
        undo_failure_rate=rate(0.2),
        check_failure_rate=rate(0.3),
        move_failure_rate=rate(0.3),
        refusal_rate=rate(0.2),
        jitter=rng.choice([0.0, 0.2]),
    )


def _draw_events(
    parts: _Parts, requests: tuple[UpgradeRequest, ...]
) -> tuple[ScheduledCampaignEvent, ...]:
    rng = parts.rng
    events = []
    if rng.random() < 0.3:  # a host fails and comes back
        host, at_s = rng.choice(parts.hosts).id, rng.randint(1, 200)
        events.append(ScheduledCampaignEvent(at_s=at_s, host_fails=host))
        events.append(ScheduledCampaignEvent(at_s=at_s + rng.randint(1, 300), host_recovers=host))
    for _ in range(rng.choice([0, 0, 1, 2]) if parts.tenants else 0):
        step = ScalingStep(tenant=rng.choice(parts.tenants).id, vms=rng.choice([-1, 1]))
        events.append(ScheduledCampaignEvent(at_s=rng.randint(1, 300), scaling=(step,)))
    if rng.random() < 0.15:
        set_ = rng.choice([set_.id for request in requests for set_ in request.sets])
        command = UpgradeCommand(order=rng.choice([CommandKind.UNDO, CommandKind.CANCEL]), set=set_)
        events.append(ScheduledCampaignEvent(at_s=rng.randint(1, 300), command=command))
    return tuple(events)
