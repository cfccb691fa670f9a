"""Small clusters to upgrade, and a harness that runs an upgrade step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from equipoise.model.event import Event, HostFailed, HostRecovered
from equipoise.model.host import Host
from equipoise.model.inventory import AntiAffinityGroup, Inventory, Sla, Tenant
from equipoise.model.quantity import GroupId, HostId, ResourceId, TenantId, VmId
from equipoise.model.roles.layout import RoleLayout
from equipoise.model.rule import Rule
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings, VmCompatibility
from equipoise.model.upgrade.catalog import (
    Catalog,
    ComponentDescription,
    ComponentId,
    ComponentRequirement,
    Recipe,
)
from equipoise.model.upgrade.event import (
    BatchEnded,
    CampaignStarted,
    ScalingRequested,
    TaskFailed,
    TaskFinished,
    UpgradeCommanded,
    UpgradeRequested,
    VmMoved,
    VmMoveFailed,
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
from equipoise.model.upgrade.work import TaskBatch, TaskKind, UpgradeTask, VmBatch
from equipoise.model.vm import Vm
from equipoise.roles.removal import check_removal
from equipoise.store import MemoryJournal
from equipoise.upgrade import Coordinator, instruction

E = TypeVar("E")
STEP = Recipe(duration_s=10)
COOLDOWN_S = 100_000
"""Longer than any iteration, so that each tenant scales at most once in one."""


def a_description(component: str, version: str, **more: object) -> ComponentDescription:
    recipes = {"install": STEP, "remove": STEP, "upgrade": STEP} | more
    return ComponentDescription(component=ComponentId(component), version=version, **recipes)  # type: ignore[arg-type]


def a_host(number: int, vms_max: int) -> Host:
    return Host(
        id=HostId(f"h{number}"),
        cores=8,
        mhz_per_core=1000,
        memory_mib=65536,
        capacity={"vms": vms_max},  # type: ignore[dict-item]
    )


def a_tenant(name: str, vms: Sequence[str], most: int, least: int = 0) -> Tenant:
    group = AntiAffinityGroup(id=GroupId(name), vms=tuple(VmId(vm) for vm in vms))
    return Tenant(
        id=TenantId(name),
        sla=Sla(vms_min=least, vms_max=most, cooldown_s=COOLDOWN_S),
        anti_affinity=(group,) if vms else (),
    )


def a_vm(name: str, host: int, tenant: str) -> Vm:
    return Vm(
        id=VmId(name), vcpus=1, memory_mib=1024, host=HostId(f"h{host}"), tenant=TenantId(tenant)
    )


def hypervisors(count: int) -> list[Resource]:
    return [
        Resource(
            id=ResourceId(f"k{n}"),
            kind=ResourceKind.HYPERVISOR,
            version="v1",
            host=HostId(f"h{n}"),
        )
        for n in range(1, count + 1)
    ]


def switches(count: int) -> list[Resource]:
    return [
        Resource(id=ResourceId(f"s{n}"), kind=ResourceKind.SWITCH, version="v1")
        for n in range(1, count + 1)
    ]


def binds(dependent: str, sponsor: str, kind: DependencyKind, **more: object) -> Dependency:
    return Dependency(
        dependent=ResourceId(dependent),
        sponsor=ResourceId(sponsor),
        kind=kind,
        presence=DependencyPresence.CURRENT_FUTURE,
        **more,  # type: ignore[arg-type]
    )


def protects(name: str, members: Sequence[str], **more: object) -> ResourceGroup:
    fields = {"kind": ResourceGroupKind.PROTECTION} | more
    ids = tuple(ResourceId(member) for member in members)
    return ResourceGroup(id=GroupId(name), resources=ids, **fields)  # type: ignore[arg-type]


def upgrade_of(resources: Sequence[str], version: str = "v2", **more: object) -> RequestedChange:
    return RequestedChange(
        does=ChangeKind.UPGRADE,
        resources=tuple(ResourceId(id_) for id_ in resources),
        version=version,
        **more,  # type: ignore[arg-type]
    )


def a_set(name: str, *changes: RequestedChange, **more: object) -> ChangeSet:
    return ChangeSet(id=SetId(name), changes=changes, **more)  # type: ignore[arg-type]


def a_request(*sets: ChangeSet, name: str = "r1") -> UpgradeRequest:
    return UpgradeRequest(id=RequestId(name), sets=sets)


STORED_ON = ComponentRequirement(
    component=ComponentId("osd"), along=DependencyKind.AGGREGATION, install=True
)
USED_BY = ComponentRequirement(
    component=ComponentId("client"), along=DependencyKind.VM_SUPPORTING_STORAGE, install=True
)
CATALOG = Catalog(
    descriptions=(
        *(
            a_description(component, version)
            for component in ("hypervisor", "switch", "server", "agent")
            for version in ("v1", "v2", "v3")
        ),
        a_description("vsan", "v1", constituents_min=2),
        a_description("ceph", "v1", constituents_min=2, needs=(STORED_ON, USED_BY)),
        a_description("osd", "v1"),
        a_description("client", "v1"),
    )
)


def _strict_peers(described: ComponentDescription) -> ComponentDescription:
    own = ComponentRequirement(
        component=described.component,
        versions=(described.version,),
        along=DependencyKind.PEER_STATELESS,
    )
    return described.but(needs=(own,)) if described.component == "switch" else described


STRICT = Catalog(descriptions=tuple(map(_strict_peers, CATALOG.descriptions)))
"""Peer switches that are compatible with their own version only."""


def a_storage(name: str, component: str) -> Resource:
    return Resource(
        id=ResourceId(name),
        kind=ResourceKind.VIRTUAL_SHARED_STORAGE,
        component=component,  # type: ignore[arg-type]
        version="v1",
    )


def supported(store: str, kernels: Sequence[str]) -> list[Dependency]:
    """Return a storage on all hosts and on servers of its own, used by the VMs of all hosts."""
    built = [binds(store, member, DependencyKind.AGGREGATION) for member in (*BOXES, *kernels)]
    return built + [
        binds(member, store, DependencyKind.VM_SUPPORTING_STORAGE) for member in kernels
    ]


BOXES = ("box1", "box2", "box3")


def boxes() -> list[Resource]:
    return [Resource(id=ResourceId(name), kind=ResourceKind.SERVER, version="v1") for name in BOXES]


def replaced(store: str, kernels: Sequence[str]) -> list[RequestedChange]:
    """Return the changes that replace a storage by a new one on the separate servers."""
    ids = [ResourceId(name) for name in kernels]
    new = a_storage("new-store", "ceph")

    def add(component: str, targets: Sequence[ResourceId]) -> RequestedChange:
        return RequestedChange(
            does=ChangeKind.ADD,
            component=ComponentId(component),
            version="v1",
            resources=tuple(targets),
            undo_threshold=0,
        )

    return [
        add("osd", [ResourceId(name) for name in BOXES]),
        add("client", ids),
        RequestedChange(
            does=ChangeKind.ADD, new=(new,), replaces=ResourceId(store), undo_threshold=0
        ),
    ]


def a_campaign(  # noqa: PLR0913
    *requests: UpgradeRequest,
    hosts: Sequence[Host],
    vms: Sequence[Vm] = (),
    tenants: Sequence[Tenant] = (),
    resources: Sequence[Resource] = (),
    dependencies: Sequence[Dependency] = (),
    catalog: Catalog = CATALOG,
    settings: UpgradeSettings | None = None,
    rules: Sequence[Rule] = (),
    groups: Sequence[ResourceGroup] = (),
    layout: RoleLayout | None = None,
) -> UpgradeCampaign:
    return UpgradeCampaign(
        name="small",
        cluster=Inventory(
            hosts=tuple(hosts),
            vms=tuple(vms),
            tenants=tuple(tenants),
            resources=tuple(resources),
            dependencies=tuple(dependencies),
            rules=tuple(rules),
            groups=tuple(groups),
            layout=layout,
        ),
        catalog=catalog,
        requests=requests,
        settings=settings or UpgradeSettings(vm_move_s=5),
    )


DIVIDED = UpgradeSettings(vms=VmCompatibility.DIVIDED, vm_move_s=5)


def never(_: UpgradeTask) -> str:
    return ""


@dataclass
class UpgradeHarness:
    """A coordinator with its journal and an engine that finishes tasks one event at a time."""

    campaign: UpgradeCampaign
    fails: Callable[[UpgradeTask], str] = never
    """Returns why a task fails; empty: it succeeds. ``lost``: the result is unknown."""
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    coordinator: Coordinator = field(default_factory=lambda: Coordinator(check_removal))
    now_ms: int = 0
    down: set[str] = field(default_factory=set)
    open: list[Event] = field(default_factory=list)
    watch: list[Callable[[Event], None]] = field(default_factory=list)
    all_answers: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.record(CampaignStarted(at_ms=0, campaign=self.campaign))
        for request in self.campaign.requests:
            self.ask(request)

    def ask(self, request: UpgradeRequest) -> None:
        self.record(UpgradeRequested(at_ms=self.now_ms, request=request))

    def command(self, order: CommandKind, set_: str | None = None, priority: int = 0) -> None:
        command = UpgradeCommand(
            order=order, set=None if set_ is None else SetId(set_), priority=priority
        )
        self.record(UpgradeCommanded(at_ms=self.now_ms, command=command))

    def scale(self, tenant: str, vms: int) -> None:
        self.record(ScalingRequested(at_ms=self.now_ms, tenant=TenantId(tenant), vms=vms))
        self.settle()

    def fail_host(self, host: str) -> None:
        self.down.add(host)
        self.record(HostFailed(at_ms=self.now_ms, host=HostId(host)))
        self.settle()

    def recover_host(self, host: str) -> None:
        self.down.discard(host)
        self.record(HostRecovered(at_ms=self.now_ms, host=HostId(host)))
        self.settle()

    def settle(self) -> None:
        """Let the coordinator answer scaling requests and host failures only."""
        state = self.coordinator.state
        while (
            state.cluster.vms_to_restart or state.cluster.pending_scaling
        ) and not state.iteration.ended:
            self.decide()

    def record(self, event: Event) -> None:
        self.journal.append([event])
        self.now_ms = max(self.now_ms, event.at_ms)
        for watch in self.watch:
            watch(event)
        self.coordinator.handle(event)
        schedule = instruction(event)
        if schedule is not None:
            self.all_answers = list(self._answers(schedule))
            self.open = list(self.all_answers)

    def next_repeated_answer(self) -> None:
        """Repeat all reports, like an engine that receives the open schedule again."""
        if self.coordinator.state.iteration.open_batch is not None:
            self.open = list(self.all_answers)

    def decide(self) -> Event | None:
        decided = self.coordinator.decide(self.now_ms)
        if decided is not None:
            self.record(decided)
        return decided

    def step(self) -> bool:
        """Do one step: a decision, a report of the engine, or a wait. Return False at the end."""
        if self.decide() is not None:
            return True
        if self.open:
            self.record(self.open.pop(0))
            return True
        alarm_ms = self.coordinator.alarm_ms()
        if alarm_ms is None or self.coordinator.ended:
            return False
        self.now_ms = max(self.now_ms, alarm_ms)
        return True

    def run(self, steps: int = 20_000) -> None:
        """Run until the campaign waits for an outside event, or has ended."""
        while self.step():
            steps -= 1
            assert steps, "the campaign does not end"

    def _answers(self, schedule: TaskBatch | VmBatch) -> Iterator[Event]:
        self.now_ms += 1000
        at_ms, id_ = self.now_ms, schedule.id
        if isinstance(schedule, VmBatch):
            for move in schedule.moves:
                if {move.source, move.target} & self.down:
                    yield VmMoveFailed(at_ms=at_ms, batch=id_, vm=move.vm, reason="host down")
                else:
                    yield VmMoved(at_ms=at_ms, batch=id_, vm=move.vm)
        else:
            yield from self._tasks(schedule, at_ms)
        yield BatchEnded(at_ms=at_ms, batch=id_)

    def _tasks(self, batch: TaskBatch, at_ms: int) -> Iterator[Event]:
        failed: set[str] = set()
        for task in batch.tasks:
            if task.vertex in failed:
                continue
            why = "host down" if task.host in self.down else self.fails(task)
            if why:
                failed.add(task.vertex)
                done = len(task.works) // 2 if task.kind is TaskKind.APPLY else 0
                yield TaskFailed(
                    at_ms=at_ms, batch=batch.id, resource=task.resource, kind=task.kind,
                    done=done, unreachable=why in ("lost", "host down"), reason=why,
                )  # fmt: skip
            else:
                yield TaskFinished(
                    at_ms=at_ms, batch=batch.id, resource=task.resource, kind=task.kind
                )

    # Results

    def version(self, resource: str) -> str | None:
        resource_state = self.coordinator.state.resources.states[ResourceId(resource)]
        return resource_state.components.get(resource_state.own_component)

    def outcomes(self) -> dict[str, str]:
        return {
            status.id: status.outcome.value if status.outcome is not None else status.progress.value
            for status in self.coordinator.state.requests.set_status.values()
        }

    def events(self, kind: type[E]) -> list[E]:
        return [event for event in self.journal.events() if isinstance(event, kind)]
