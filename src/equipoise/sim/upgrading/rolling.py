"""Rolling upgrade with a fixed batch size, to compare with: what most clouds do.

Hosts are taken in an order by chance, so many at a time, whether VMs run on them or not. Their VMs
move at once to wherever they fit, on hosts that are changed or not, then the hosts are changed side
by side. Nothing is reserved for tenants that grow, and nobody asks which VMs protect each other,
except that two of one group do not share a host. It never waits: a VM for which there is no place
is off while its host is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from equipoise.errors import InvalidInput, Problem
from equipoise.model.event import Event, HostFailed, HostRecovered
from equipoise.model.quantity import HostId, VmId
from equipoise.model.resource import Resource
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.catalog import ComponentId, Doing, Recipe
from equipoise.model.upgrade.request import Change, ChangeKind
from equipoise.model.upgrade.work import (
    Batch,
    BatchId,
    Task,
    VertexId,
    VmBatch,
    Work,
)
from equipoise.sim.upgrading.crowd import Crowd
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.upgrade.begin import begin


def roll(campaign: Campaign, size: int, seed: int) -> list[Event]:
    """Run a campaign in batches of ``size`` hosts. Gives everything that happened."""
    return _Rolling(campaign, size, Random(f"{seed} rolling {size}")).run()


def tasks_by_host(campaign: Campaign) -> dict[HostId, list[Task]]:
    """What is to be done on each host; refused if something else than hosts is to be changed."""
    by_id = {one.id: one for one in campaign.cluster.resources}
    found: dict[HostId, list[Task]] = {}
    for request in campaign.requests:
        for set_ in request.sets:
            for change in set_.changes:
                for id_ in change.resources:
                    resource = by_id.get(id_)
                    if change.does is not ChangeKind.UPGRADE or resource is None:
                        raise _refused(campaign, f"{change.does} of {id_}")
                    if resource.host is None:
                        raise _refused(campaign, f"upgrade of {id_}, which is on no host")
                    work = _work(campaign, resource, change, set_.id)
                    task = Task(
                        resource=id_, vertex=VertexId(id_), works=(work,), host=resource.host
                    )
                    found.setdefault(resource.host, []).append(task)
    return found


def _refused(campaign: Campaign, what: str) -> InvalidInput:
    problem = Problem(
        key="requests",
        what=f"asks for the {what}: a rolling upgrade by hosts knows no such thing",
        cure="compare campaigns that only upgrade what is on hosts, such as nabi-case-a",
    )
    return InvalidInput(campaign.name, [problem])


def _work(campaign: Campaign, resource: Resource, change: Change, set_: str) -> Work:
    component = change.component or resource.component or resource.kind.value
    said = {(one.component, one.version): one for one in campaign.catalog.descriptions}
    known = said.get((ComponentId(component), change.version or ""))
    recipe = known.upgrade if known and known.upgrade else Recipe()
    return Work(
        set=set_,  # type: ignore[arg-type]
        component=component,  # type: ignore[arg-type]
        does=Doing.UPGRADE,
        before=resource.version,
        after=change.version,
        recipe=recipe,
    )


class _Rolling:
    """One run."""

    def __init__(self, campaign: Campaign, size: int, chance: Random) -> None:
        self.campaign = campaign
        self.size = size
        self.chance = chance
        self.tasks = tasks_by_host(campaign)
        self.seating = Crowd(begin(campaign), chance)
        self.engine = SimulatedEngine(campaign)
        self.events: list[Event] = []
        self.now_ms = 0
        self.targets: dict[VmId, HostId] = {}
        self.off: dict[HostId, tuple[VmId, ...]] = {}

    def run(self) -> list[Event]:
        """Go from batch to batch."""
        self._record(past.CampaignBegan(at_ms=0, campaign=self.campaign))
        for request in self.campaign.requests:
            self._record(past.UpgradeRequested(at_ms=0, request=request))
        hosts = list(self.tasks)
        self.chance.shuffle(hosts)
        for start in range(0, len(hosts), self.size):
            self._batch(1 + start // self.size, hosts[start : start + self.size])
        done = past.CampaignStatus.COMPLETED
        self._record(past.CampaignEnded(at_ms=self.now_ms, status=done))
        return self.events

    def _batch(self, number: int, hosts: Sequence[HostId]) -> None:
        self._record(past.IterationBegan(at_ms=self.now_ms, iteration=number))
        tasks = tuple(task for host in hosts for task in self.tasks[host])
        names = tuple(task.vertex for task in tasks)
        self._record(
            past.BatchDecided(at_ms=self.now_ms, iteration=number, z=len(hosts), batch=names)
        )
        self.seating.leaving = set(hosts)
        moves = self.seating.moves(hosts)
        if moves:
            schedule = VmBatch(id=BatchId(f"{number}/vms"), moves=moves)
            self.targets = {move.vm: move.target for move in moves}
            self._record(past.VmBatchStarted(at_ms=self.now_ms, batch=schedule))
            self._carry_out(schedule)
        self._switch_off(hosts)
        batch = Batch(id=BatchId(str(number)), stages=(tasks,))
        self._record(past.BatchStarted(at_ms=self.now_ms, batch=batch))
        self._carry_out(batch)
        self._switch_on()
        self.seating.leaving = set()
        self._record(past.IterationEnded(at_ms=self.now_ms, iteration=number))

    def _switch_off(self, hosts: Sequence[HostId]) -> None:
        """What could not leave is off while its host is changed ..."""
        for host in hosts:
            left = tuple(self.seating.residents.get(host, ()))
            if left:
                self.off[host] = left
                self._record(past.VmsRestarted(at_ms=self.now_ms, host=host, unplaced=left))

    def _switch_on(self) -> None:
        """... and starts again where it was."""
        for host, vms in self.off.items():
            there = [vm for vm in vms if vm in self.seating.residents[host]]
            placed = dict.fromkeys(there, host)
            self._record(past.VmsRestarted(at_ms=self.now_ms, host=host, placed=placed))
        self.off = {}

    def _carry_out(self, schedule: Batch | VmBatch) -> None:
        self.engine.perform(schedule)
        ended = False
        while not ended:
            event = self.engine.next_event(None)
            assert event is not None, "a schedule is always answered in the end"
            self._record(event)
            ended = isinstance(event, past.BatchEnded) and event.batch == schedule.id

    def _record(self, event: Event) -> None:
        self.now_ms = max(self.now_ms, event.at_ms)
        self.events.append(event)
        self.engine.witness(event)
        match event:
            case past.VmMoved():
                self.seating.put(event.vm, self.targets[event.vm])
            case past.ScalingAsked():
                self._record(self.seating.scaled(event.at_ms, event.tenant, event.vms))
            case HostFailed():
                self._record(self.seating.failed(event.at_ms, event.host))
            case HostRecovered():
                self.seating.down.discard(event.host)
            case _:
                pass
