"""Rolling upgrade with a fixed batch size, as most clouds do it: the baseline to compare with.

All work on a host is one unit; a resource that is on no host is a unit of its own. Units of one
kind are upgraded in random order, a batch at a time, whether other resources depend on them or not.
The VMs of a batch move at once to any hosts with capacity, upgraded or not; then the hosts of the
batch are upgraded at the same time. No host is reserved for tenants that scale out, and
dependencies are ignored, except that two VMs of one anti-affinity group do not share a host. A
rolling upgrade never waits: a VM without a host, or whose host depends only on resources that are
out of service, is down meanwhile. VMs leave a storage before it is replaced, a batch at a time,
too. A resource whose task fails stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from equipoise.errors import InvalidInput
from equipoise.model.event import Event, HostFailed, HostRecovered
from equipoise.model.quantity import HostId, ResourceId, VmId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.catalog import ComponentId, ComponentOperation, Recipe
from equipoise.model.upgrade.infrastructure import Resource
from equipoise.model.upgrade.request import ChangeKind, RequestedChange, SetId, UpgradeRequest
from equipoise.model.upgrade.work import (
    BatchId,
    TaskBatch,
    UpgradeTask,
    VertexId,
    VmBatch,
    VmMove,
    WorkItem,
)
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.sim.upgrade.rolling_cluster import OutageSpread, RollingPlacement
from equipoise.upgrade.state import initial_state

_WORK_OF_CHANGE = {
    ChangeKind.ADD: ComponentOperation.INSTALL,
    ChangeKind.REMOVE: ComponentOperation.REMOVE,
    ChangeKind.UPGRADE: ComponentOperation.UPGRADE,
}


@dataclass(slots=True)
class RollingUnit:
    """A host, or a resource that is on none, with the work on it."""

    kind: str
    """Units of one kind are upgraded together, in the order in which the kinds are requested."""
    host: HostId | None
    tasks: list[UpgradeTask] = field(default_factory=list)
    out_of_service: dict[ResourceId, None] = field(default_factory=dict)
    """Resources that are out of service during the upgrade, without those that are new."""
    replaces: tuple[ResourceId, ResourceId] | None = None
    """The resource that is replaced when the unit is done, and its replacement."""
    supports: ResourceId | None = None
    """A resource of the unit that supports VMs and is removed: the VMs leave it before."""


def rolling_units(campaign: UpgradeCampaign, request: UpgradeRequest) -> list[RollingUnit]:
    """Return the units of a request; raise ``InvalidInput`` if it changes only dependencies."""
    known = {resource.id: resource for resource in campaign.cluster.resources}
    units: dict[str, RollingUnit] = {}
    for set_ in request.sets:
        for change in set_.changes:
            if change.dependencies and not (change.resources or change.new):
                raise _refused(campaign, "change of dependencies by themselves")
            for resource in (*change.new, *_targets(campaign, known, change)):
                _add_task(campaign, units, set_.id, change, resource)
            known |= {resource.id: resource for resource in change.new}
            if change.replaces is not None and change.new:
                _add_removal(campaign, units, set_.id, known[change.replaces], change.new[0])
    return list(units.values())


def _targets(
    campaign: UpgradeCampaign, known: dict[ResourceId, Resource], change: RequestedChange
) -> list[Resource]:
    for id_ in change.resources:
        if id_ not in known:
            raise _refused(campaign, f"{change.does} of {id_}, which is not among its resources")
    return [known[id_] for id_ in change.resources]


def _add_task(
    campaign: UpgradeCampaign,
    units: dict[str, RollingUnit],
    set_: SetId,
    change: RequestedChange,
    resource: Resource,
) -> None:
    name = f"host {resource.host}" if resource.host is not None else resource.id
    kind = "host" if resource.host is not None else resource.kind.value
    unit = units.setdefault(name, RollingUnit(kind, resource.host))
    work = _work(campaign, resource, change, set_)
    vertex = VertexId(resource.host or resource.id)
    unit.tasks.append(
        UpgradeTask(resource=resource.id, vertex=vertex, works=(work,), host=resource.host)
    )
    if resource not in change.new:
        unit.out_of_service[resource.id] = None


def _add_removal(
    campaign: UpgradeCampaign,
    units: dict[str, RollingUnit],
    set_: SetId,
    old: Resource,
    new: Resource,
) -> None:
    """Add the removal of a replaced resource, as a later kind: its replacement comes first."""
    units[new.id].replaces = (old.id, new.id)
    removal = RequestedChange(does=ChangeKind.REMOVE, resources=(old.id,))
    _add_task(campaign, units, set_, removal, old)
    units[old.id].kind, units[old.id].supports = f"{old.kind.value} that is replaced", old.id


def _work(
    campaign: UpgradeCampaign, resource: Resource, change: RequestedChange, set_: SetId
) -> WorkItem:
    component = ComponentId(change.component or resource.component or resource.kind.value)
    operation = _WORK_OF_CHANGE[change.does]
    after = None if operation is ComponentOperation.REMOVE else change.version or resource.version
    before = None if operation is ComponentOperation.INSTALL else resource.version
    descriptions = {
        (description.component, description.version): description
        for description in campaign.catalog.descriptions
    }
    description = descriptions.get((component, after or before or ""))
    recipe = getattr(description, operation.value, None) or Recipe()
    return WorkItem(
        set=set_, component=component, does=operation, before=before, after=after, recipe=recipe
    )


def _refused(campaign: UpgradeCampaign, what: str) -> InvalidInput:
    return InvalidInput.of(
        campaign.name,
        f"a rolling upgrade does not support the {what}",
        key="requests",
        cure="compare campaigns that change resources, such as nabi-case-a",
        code="rolling-unsupported",
    )


def run_rolling_upgrade(campaign: UpgradeCampaign, size: int, seed: int) -> list[Event]:
    """Run a campaign in batches of ``size`` units and return all events."""
    # The size is part of the seed, so that runs of several sizes are independent.
    return _RollingRun(campaign, size, Random(f"{seed} rolling {size}")).run()


def count_rolling_units(campaign: UpgradeCampaign) -> int:
    """Count the units of a campaign; raise ``InvalidInput`` if it cannot be rolled."""
    return sum(len(rolling_units(campaign, request)) for request in campaign.requests)


class _RollingRun:
    """One run of a campaign."""

    def __init__(self, campaign: UpgradeCampaign, size: int, rng: Random) -> None:
        self.campaign = campaign
        self.size = size
        self.rng = rng
        self.waiting: list[RollingUnit] = []
        self.outage_spread = OutageSpread(campaign)
        self.placement = RollingPlacement(initial_state(campaign), rng)
        self.engine = SimulatedEngine(campaign)
        self.events: list[Event] = []
        self.now_ms = 0
        self.targets: dict[VmId, HostId] = {}
        self.stopped: dict[HostId, tuple[VmId, ...]] = {}

    def run(self) -> list[Event]:
        """Upgrade batch after batch and return all events."""
        self._record(past.CampaignStarted(at_ms=0, campaign=self.campaign))
        for request in self.campaign.requests:
            self._record(past.UpgradeRequested(at_ms=0, request=request))
        number = 0
        while self.waiting:
            kind = self.waiting[0].kind
            same_kind = [unit for unit in self.waiting if unit.kind == kind]
            self.waiting = [unit for unit in self.waiting if unit.kind != kind]
            self.rng.shuffle(same_kind)
            for start in range(0, len(same_kind), self.size):
                number += 1
                self._batch(number, same_kind[start : start + self.size])
        done = past.CampaignStatus.COMPLETED
        self._record(past.CampaignEnded(at_ms=self.now_ms, status=done))
        return self.events

    def _batch(self, number: int, units: Sequence[RollingUnit]) -> None:
        """Upgrade one batch: evacuate its hosts, stop what is cut off, change, restart."""
        self._record(past.IterationStarted(at_ms=self.now_ms, iteration=number))
        tasks = tuple(task for unit in units for task in unit.tasks)
        names = tuple(dict.fromkeys(task.vertex for task in tasks))
        hosts = [unit.host for unit in units if unit.host is not None]
        self._record(
            past.BatchDecided(at_ms=self.now_ms, iteration=number, z=len(hosts), batch=names)
        )
        self.placement.leaving = set(hosts)
        moves = self.placement.moves([host for host in hosts if host in self.placement.residents])
        if moves:
            schedule = VmBatch(id=BatchId(f"{number}/vms"), moves=moves)
            self.targets = {move.vm: move.target for move in moves}
            self._record(past.VmBatchStarted(at_ms=self.now_ms, batch=schedule))
            self._execute(schedule)
        for unit in units:
            if unit.supports is not None:
                self._convert(number, self.outage_spread.supported(unit.supports))
        out_of_service = [resource for unit in units for resource in unit.out_of_service]
        self._stop_vms(sorted({*hosts, *self.outage_spread.hosts(out_of_service)}))
        batch = TaskBatch(id=BatchId(str(number)), stages=(tasks,))
        self._record(past.BatchStarted(at_ms=self.now_ms, batch=batch))
        self._execute(batch)
        for unit in units:
            if unit.replaces is not None:
                self.outage_spread.replace(*unit.replaces)
        self._restart_vms()
        self.placement.leaving = set()
        self._record(past.IterationEnded(at_ms=self.now_ms, iteration=number))

    def _convert(self, number: int, hosts: set[HostId]) -> None:
        """Convert the VMs of hosts that lose a storage or a controller; they stay on their host."""
        residents = self.placement.residents
        vms = [(vm, host) for host in sorted(hosts) for vm in residents.get(host, ())]
        self.rng.shuffle(vms)
        for start in range(0, len(vms), self.size):
            batch = dict(vms[start : start + self.size])
            moves = [
                VmMove(vm=vm, source=host, target=host, converted=True)
                for vm, host in batch.items()
            ]
            schedule = VmBatch(id=BatchId(f"{number}/over-{start}"), moves=tuple(moves))
            self.targets = batch
            self._record(past.VmBatchStarted(at_ms=self.now_ms, batch=schedule))
            self._execute(schedule)

    def _stop_vms(self, hosts: Sequence[HostId]) -> None:
        """Stop the VMs that could not leave their host or that an outage cuts off."""
        for host in hosts:
            vms = tuple(self.placement.residents.get(host, ()))
            if vms:
                self.stopped[host] = vms
                self._record(past.VmsRestarted(at_ms=self.now_ms, host=host, unplaced=vms))

    def _restart_vms(self) -> None:
        """Start the stopped VMs again, on the hosts where they were."""
        for host, vms in self.stopped.items():
            residents = [vm for vm in vms if vm in self.placement.residents[host]]
            placed = dict.fromkeys(residents, host)
            self._record(past.VmsRestarted(at_ms=self.now_ms, host=host, placed=placed))
        self.stopped = {}

    def _execute(self, schedule: TaskBatch | VmBatch) -> None:
        self.engine.perform(schedule)
        ended = False
        while not ended:
            event = self.engine.next_event(None)
            assert event is not None, "the engine answers every schedule"
            self._record(event)
            ended = isinstance(event, past.BatchEnded) and event.batch == schedule.id

    def _record(self, event: Event) -> None:
        self.now_ms = max(self.now_ms, event.at_ms)
        self.events.append(event)
        self.engine.on_event(event)
        match event:
            case past.UpgradeRequested():
                self.waiting += rolling_units(self.campaign, event.request)
            case past.VmMoved():
                self.placement.put(event.vm, self.targets[event.vm])
            case past.ScalingRequested():
                self._record(self.placement.scale(event.at_ms, event.tenant, event.vms))
            case HostFailed():
                self._record(self.placement.restart_vms(event.at_ms, event.host))
            case HostRecovered():
                self.placement.down.discard(event.host)
            case _:
                pass
