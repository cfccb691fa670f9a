"""Rolling upgrade with a fixed batch size, to compare with: what most clouds do.

Kind by kind, resources are taken in an order by chance, so many at a time, whether anybody needs
them or not. The VMs of hosts move at once to wherever they fit, on hosts that are changed or not,
then the hosts are changed side by side. Nothing is reserved for tenants that grow, and nobody asks
which VMs, or which switches, protect each other, except that two VMs of one group do not share a
host. It never waits: a VM for which there is no place, or whose host depends on what is out of
service and on nothing else, does not answer meanwhile. VMs leave a storage that is replaced before
it goes, so many at a time as well. What fails is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from equipoise.model.event import Event, HostFailed, HostRecovered
from equipoise.model.quantity import HostId, VmId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.work import Batch, BatchId, VmBatch, VmMove
from equipoise.sim.upgrading.chunks import Chunk, chunks_of
from equipoise.sim.upgrading.crowd import Crowd
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.sim.upgrading.fallout import Fallout
from equipoise.upgrade.begin import begin


def roll(campaign: Campaign, size: int, seed: int) -> list[Event]:
    """Run a campaign in batches of ``size`` hosts, or of so many of another kind.

    Gives everything that happened.
    """
    return _Rolling(campaign, size, Random(f"{seed} rolling {size}")).run()


def chunks(campaign: Campaign) -> int:
    """How many things are taken out of service; refused if a campaign cannot be rolled."""
    return sum(len(chunks_of(campaign, request)) for request in campaign.requests)


class _Rolling:
    """One run."""

    def __init__(self, campaign: Campaign, size: int, chance: Random) -> None:
        self.campaign = campaign
        self.size = size
        self.chance = chance
        self.waiting: list[Chunk] = []
        self.fallout = Fallout(campaign)
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
        number = 0
        while self.waiting:
            kind = self.waiting[0].kind
            alike = [one for one in self.waiting if one.kind == kind]
            self.waiting = [one for one in self.waiting if one.kind != kind]
            self.chance.shuffle(alike)
            for start in range(0, len(alike), self.size):
                number += 1
                self._batch(number, alike[start : start + self.size])
        done = past.CampaignStatus.COMPLETED
        self._record(past.CampaignEnded(at_ms=self.now_ms, status=done))
        return self.events

    def _batch(self, number: int, some: Sequence[Chunk]) -> None:
        self._record(past.IterationBegan(at_ms=self.now_ms, iteration=number))
        tasks = tuple(task for chunk in some for task in chunk.tasks)
        names = tuple(dict.fromkeys(task.vertex for task in tasks))
        hosts = [chunk.host for chunk in some if chunk.host is not None]
        self._record(
            past.BatchDecided(at_ms=self.now_ms, iteration=number, z=len(hosts), batch=names)
        )
        self.seating.leaving = set(hosts)
        moves = self.seating.moves([one for one in hosts if one in self.seating.residents])
        if moves:
            schedule = VmBatch(id=BatchId(f"{number}/vms"), moves=moves)
            self.targets = {move.vm: move.target for move in moves}
            self._record(past.VmBatchStarted(at_ms=self.now_ms, batch=schedule))
            self._carry_out(schedule)
        for chunk in some:
            if chunk.supports is not None:
                self._convert(number, self.fallout.supported(chunk.supports))
        out = [one for chunk in some for one in chunk.out]
        self._switch_off(sorted({*hosts, *self.fallout.hosts(out)}))
        batch = Batch(id=BatchId(str(number)), stages=(tasks,))
        self._record(past.BatchStarted(at_ms=self.now_ms, batch=batch))
        self._carry_out(batch)
        for chunk in some:
            if chunk.replaces is not None:
                self.fallout.replace(*chunk.replaces)
        self._switch_on()
        self.seating.leaving = set()
        self._record(past.IterationEnded(at_ms=self.now_ms, iteration=number))

    def _convert(self, number: int, hosts: set[HostId]) -> None:
        """VMs leave a storage or a controller that goes, so many at a time, where they are."""
        vms = [(vm, one) for one in sorted(hosts) for vm in self.seating.residents.get(one, ())]
        self.chance.shuffle(vms)
        for start in range(0, len(vms), self.size):
            some = dict(vms[start : start + self.size])
            moves = [
                VmMove(vm=vm, source=host, target=host, converted=True) for vm, host in some.items()
            ]
            schedule = VmBatch(id=BatchId(f"{number}/over-{start}"), moves=tuple(moves))
            self.targets = some
            self._record(past.VmBatchStarted(at_ms=self.now_ms, batch=schedule))
            self._carry_out(schedule)

    def _switch_off(self, hosts: Sequence[HostId]) -> None:
        """What could not leave, or is cut off, is off while others are changed ..."""
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
            case past.UpgradeRequested():
                self.waiting += chunks_of(self.campaign, event.request)
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
