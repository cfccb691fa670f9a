"""Benchmarks of upgrades: the time of decisions, the size of graphs, and whole campaigns."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from time import perf_counter

from equipoise.bench.measure import BenchmarkRow
from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.model.host import Host
from equipoise.model.inventory import AntiAffinityGroup, Inventory, Sla, Tenant
from equipoise.model.quantity import GroupId, HostId, ResourceId, ResourceName, TenantId, VmId
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings, UpgradeSimulation
from equipoise.model.upgrade.catalog import Catalog, ComponentDescription, ComponentId, Recipe
from equipoise.model.upgrade.event import (
    BatchDecided,
    BatchEnded,
    BatchStarted,
    CampaignStarted,
    IterationStarted,
    TaskFinished,
    UpgradeRequested,
    VmBatchDecided,
)
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    DependencyPresence,
    Resource,
    ResourceKind,
)
from equipoise.model.upgrade.request import (
    ChangeKind,
    ChangeSet,
    RequestedChange,
    RequestId,
    SetId,
    UpgradeRequest,
)
from equipoise.model.vm import Vm
from equipoise.report.upgrade.compare import compare_with_rolling
from equipoise.sim.builtin import builtin_campaign
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade import Coordinator
from equipoise.upgrade.graph.iteration_view import build_view
from equipoise.upgrade.summary import summarise_campaign

VMS_PER_HOST = 16
BUSY_SHARE = 0.75
"""The fraction of hosts on which VMs run."""
HOSTS_PER_RACK = 40
MIB = 1024 * 1024


def rows() -> Iterator[BenchmarkRow]:
    """Measure one iteration of a large cluster and its graphs, whole campaigns of smaller ones, and
    what tenants go through beside rolling upgrades.
    """
    yield from _one_iteration_rows(large_campaign(10_000, 100_000, 1_000))
    size = "1,000 hosts, 10,000 VMs, 100 tenants"
    yield _whole_campaign_row(large_campaign(1_000, 10_000, 100), size, "goal: under 60 s")
    full = "300 hosts without an empty one, 94 of 100 places taken, 45 tenants"
    note = "two hosts may fail: VMs make room first, then each moves once"
    yield _whole_campaign_row(large_campaign(300, 4_500, 45, busy=1.0), full, note)
    yield from _rolling_rows()


def _one_iteration_rows(campaign: UpgradeCampaign) -> Iterator[BenchmarkRow]:
    coordinator = Coordinator()
    coordinator.handle(CampaignStarted(at_ms=0, campaign=campaign))
    coordinator.handle(UpgradeRequested(at_ms=0, request=campaign.requests[0]))
    began = perf_counter()
    coordinator.handle(IterationStarted(at_ms=0, iteration=1))
    taken_up_s = perf_counter() - began
    began = perf_counter()
    decided = coordinator.decide(0)
    decided_s = perf_counter() - began
    assert isinstance(decided, BatchDecided)
    told = sum(len(group.vertices) for group in decided.eliminated)
    yield BenchmarkRow(
        "decide an iteration of 10,000 hosts, 100,000 VMs, 1,000 tenants",
        taken_up_s + decided_s,
        "",
        None,
        figures={"z": decided.z, "batch": len(decided.batch), "told_why_not": told},
        note="goal: under 5 s; with taking up the request and the reason of each who waits",
    )
    yield _first_vm_batch_row(coordinator, decided)
    gc.collect()
    began = perf_counter()
    build_view(coordinator.state)
    seconds = perf_counter() - began
    tracemalloc.start()
    view = build_view(coordinator.state)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    yield BenchmarkRow(
        "both graphs of it, with every VM",
        seconds,
        "",
        None,
        figures={
            "mib": peak / MIB,
            "vertices": len(view.graph.vertices),
            "edges": len(view.graph.edges),
        },
        note="goal: under 2 GiB",
    )


def _first_vm_batch_row(coordinator: Coordinator, decided: BatchDecided) -> BenchmarkRow:
    """Measure the choice of the VMs that move first, after the hosts of the iteration changed."""
    coordinator.handle(decided)
    started = coordinator.decide(0)
    assert isinstance(started, BatchStarted)
    coordinator.handle(started)
    batch = started.batch
    for task in batch.tasks:
        coordinator.handle(
            TaskFinished(at_ms=0, batch=batch.id, resource=task.resource, kind=task.kind)
        )
    coordinator.handle(BatchEnded(at_ms=0, batch=batch.id))
    began = perf_counter()
    chosen = coordinator.decide(0)
    seconds = perf_counter() - began
    assert isinstance(chosen, VmBatchDecided)
    figures = {"v": chosen.v, "wanted": chosen.wanted, "size": chosen.size}
    what = "choose the first VMs of it that move, and where to"
    return BenchmarkRow(what, seconds, "", None, figures=figures)


def _whole_campaign_row(campaign: UpgradeCampaign, size: str, note: str) -> BenchmarkRow:
    journal = MemoryJournal()
    began = perf_counter()
    loop = UpgradeLoop(SimulatedEngine(campaign), journal, campaign)
    loop.run()
    seconds = perf_counter() - began
    made = summarise_campaign(journal.events())
    return BenchmarkRow(
        f"a campaign of {size} that scale, in virtual time",
        seconds,
        "",
        None,
        figures={
            "iterations": len(made.iterations),
            "moves": sum(made.moves.values()),
            "moves_per_vm_max": max(made.moves.values(), default=0),
            "sla_violations": len(made.violations),
            "virtual_hours": made.duration_ms / 3_600_000,
        },
        note=note,
    )


def large_campaign(hosts: int, vms: int, tenants: int, busy: float = BUSY_SHARE) -> UpgradeCampaign:
    """Racks with two switches each, hypervisors on servers, VMs packed on three hosts of four."""
    placed = _vms(int(hosts * busy), vms // tenants, tenants)
    resources, dependencies = _infrastructure(hosts)
    names = [ResourceId(f"k{n:05d}") for n in range(hosts)]
    change = RequestedChange(
        does=ChangeKind.UPGRADE, resources=tuple(names), version="2", undo_threshold=hosts * 9 // 10
    )
    return UpgradeCampaign(
        name="large",
        cluster=Inventory(
            hosts=tuple(_host(n) for n in range(hosts)),
            vms=tuple(placed),
            tenants=_tenants(placed),
            resources=resources,
            dependencies=dependencies,
        ),
        catalog=Catalog(
            descriptions=tuple(
                ComponentDescription(
                    component=ComponentId("hypervisor"),
                    version=version,
                    upgrade=Recipe(duration_s=300),
                )
                for version in ("1", "2")
            )
        ),
        requests=(
            UpgradeRequest(
                id=RequestId("all"),
                sets=(ChangeSet(id=SetId("hypervisors"), changes=(change,), attempts_max=3),),
            ),
        ),
        settings=UpgradeSettings(failover_hosts=2, vm_move_s=20, vm_risk_s=600),
        simulation=UpgradeSimulation(failure_rate=0.01, scaling_ms_mean=3_600_000),
    )


def _host(number: int) -> Host:
    return Host(
        id=HostId(f"h{number:05d}"),
        cores=32,
        mhz_per_core=2000,
        memory_mib=262_144,
        capacity={ResourceName("vms"): VMS_PER_HOST},
    )


def _vms(used: int, each: int, tenants: int) -> list[Vm]:
    """VMs: those of one tenant on different hosts, those of all tenants spread evenly."""
    taken = [0] * used
    made: list[Vm] = []
    for owner in range(tenants):
        own: set[int] = set()
        for number in range(each):
            host = (owner * 13 + number * max(1, used // each)) % used
            while host in own or taken[host] >= VMS_PER_HOST - 1:
                host = (host + 1) % used
            own.add(host)
            taken[host] += 1
            made.append(
                Vm(
                    id=VmId(f"vm-{owner:04d}-{number:03d}"),
                    vcpus=1,
                    memory_mib=1024,
                    tenant=TenantId(f"t{owner:04d}"),
                    host=HostId(f"h{host:05d}"),
                )
            )
    return made


def _tenants(vms: list[Vm]) -> tuple[Tenant, ...]:
    own: dict[TenantId, list[VmId]] = {}
    for vm in vms:
        assert vm.tenant is not None
        own.setdefault(vm.tenant, []).append(vm.id)
    return tuple(
        Tenant(
            id=tenant,
            sla=Sla(vms_min=len(tenant_vms) // 2, vms_max=len(tenant_vms) + 10, cooldown_s=600),
            anti_affinity=(AntiAffinityGroup(id=GroupId(tenant), vms=tuple(tenant_vms)),),
        )
        for tenant, tenant_vms in own.items()
    )


def _infrastructure(hosts: int) -> tuple[tuple[Resource, ...], tuple[Dependency, ...]]:
    """A hypervisor in each server, two switches for each rack."""
    resources: list[Resource] = []
    dependencies: list[Dependency] = []

    def bind(dependent: str, sponsor: str, kind: DependencyKind) -> None:
        dependencies.append(
            Dependency(
                dependent=ResourceId(dependent),
                sponsor=ResourceId(sponsor),
                kind=kind,
                presence=DependencyPresence.CURRENT_FUTURE,
            )
        )

    for n in range(hosts):
        host, kernel, server = HostId(f"h{n:05d}"), f"k{n:05d}", f"m{n:05d}"
        for id_, kind in ((kernel, ResourceKind.HYPERVISOR), (server, ResourceKind.SERVER)):
            resources.append(Resource(id=ResourceId(id_), kind=kind, version="1", host=host))
        bind(kernel, server, DependencyKind.CONTAINER)
        for side in "ab":
            bind(server, f"s{n // HOSTS_PER_RACK:03d}{side}", DependencyKind.COMMUNICATION)
    for rack in range((hosts - 1) // HOSTS_PER_RACK + 1):
        for side in "ab":
            id_ = ResourceId(f"s{rack:03d}{side}")
            resources.append(Resource(id=id_, kind=ResourceKind.SWITCH, version="1"))
        bind(f"s{rack:03d}a", f"s{rack:03d}b", DependencyKind.PEER_STATELESS)
    return tuple(resources), tuple(dependencies)


CAMPAIGNS = ("nabi-case-a", "nabi-case-b", "nabi-ceph-ipv6")


def _rolling_rows() -> Iterator[BenchmarkRow]:
    """Run the case studies of the thesis, and its fifteen hosts, in both ways."""
    return (_rolling_row(name) for name in CAMPAIGNS)


def _rolling_row(name: str) -> BenchmarkRow:
    campaign = builtin_campaign(name)
    journal = MemoryJournal()
    began = perf_counter()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    ours, *rolling = compare_with_rolling(campaign, journal.events())
    figures = {
        "application_out_s": ours.application_s,
        "proportional": ours.proportional_s,
        "seconds": ours.duration_s,
    }
    for line in rolling:
        by = line.method.replace("rolling by ", "by_")
        figures |= {
            f"{by}_application_out_s": line.application_s,
            f"{by}_proportional": line.proportional_s,
            f"{by}_seconds": line.duration_s,
        }
    return BenchmarkRow(
        f"{name}, and as a rolling upgrade by 1 to 4",
        perf_counter() - began,
        "",
        None,
        figures=figures,
        note="goal: ours first, no application out and the lowest proportional penalty",
    )
