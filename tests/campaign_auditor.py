"""An independent audit of an upgrade, from its journal alone, by the specification language.

Uses neither the state nor the graphs of the coordinator. Each instant becomes a small cluster:
VMs run on their hosts (a moving VM on both), and each resource is a machine that runs if it is in
service. The constraints are formulas of the specification language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from equipoise.model.event import Event, HostFailed, HostRecovered
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import Rule, Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    ResourceGroupKind,
)
from equipoise.model.upgrade.work import TaskBatch, TaskKind, VmBatch
from equipoise.model.vm import Vm, VmState
from equipoise.spec.rules import broken_rules

CONSTRAINTS = """
Apart(vs <: vms) discrete continuous ::=
    !(x, y : vs) x /= y & runs(x) & runs(y) --> host(x) /= host(y)
Together(vs <: vms) discrete continuous ::=
    card({host(v) . v : vs, runs(v)}) <= 1
Enough(vs <: vms, nb : int) discrete continuous ::=
    card({v . v : vs, runs(v)}) >= nb
NoneOn(vs <: vms, n : hosts) discrete continuous ::=
    !(v : vs) runs(v) --> host(v) /= n
"""
SERVICE = HostId("in-service")
NAMEABLE = frozenset(
    {
        "host-down",
        "outside-window",
        "paused-by-command",
        "resource-lost",
        "vm-not-movable",
        "waits-for-approval",
    }
)
"""The codes of waits for an event from outside that the operator can bring about."""


@dataclass
class CampaignAuditor:
    """Follows a campaign event by event."""

    findings: list[str] = field(default_factory=list)
    judged: set[object] = field(default_factory=set)
    host_of: dict[str, str | None] = field(default_factory=dict)
    moving: dict[str, str] = field(default_factory=dict)
    batches: dict[str, TaskBatch | VmBatch] = field(default_factory=dict)
    open_batch: TaskBatch | None = None
    changing: set[str] = field(default_factory=set)
    off: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    isolated: set[str] = field(default_factory=set)
    down: set[str] = field(default_factory=set)
    end: past.CampaignEnded | None = None
    last_codes: Sequence[str] = ()
    last_pause: str = ""

    def read(self, events: Iterable[Event]) -> list[str]:
        now: list[Event] = []
        for event in events:
            # The instant is judged as a whole: what leaves and what returns change together.
            if now and event.at_ms != now[-1].at_ms:
                self._judge(now)
                now = []
            self._apply(event)
            now.append(event)
        self._judge(now)
        return self.findings

    # What the events say

    def _apply(self, event: Event) -> None:
        match event:
            case past.CampaignStarted():
                self._start(event.campaign.cluster)
            case past.BatchStarted():
                self._open(event.batch)
            case past.VmBatchStarted():
                self.moving |= {move.vm: move.target for move in event.batch.moves}
                self._judge_together(event.at_ms)
                self.batches[event.batch.id] = event.batch
            case past.VmMoved():
                batch = self.batches[event.batch]
                assert isinstance(batch, VmBatch)
                move = next(move for move in batch.moves if move.vm == event.vm)
                # A VM that has restarted elsewhere is not at its source any more.
                if self.host_of.get(event.vm) == move.source and move.target not in self.down:
                    self.host_of[event.vm] = move.target
                self.moving.pop(event.vm, None)
            case past.VmMoveFailed():
                self.moving.pop(event.vm, None)
            case past.TaskFinished() | past.TaskFailed():
                self._answer(event)
            case past.BatchEnded():
                self.changing, self.open_batch = set(), None
                self.moving = {} if isinstance(self.batches[event.batch], VmBatch) else self.moving
            case _:
                self._apply_other(event)

    def _apply_other(self, event: Event) -> None:
        match event:
            case past.ResourceIsolated():
                self.isolated.add(event.resource)
            case past.ResourceReleased() | past.ResourceGivenUp():
                self._take_back(event.resource)
            case past.UpgradeCommanded() if event.command.resource is not None:
                self._take_back(event.command.resource)
            case past.CampaignEnded():
                self.end = event
            case past.IterationEnded():
                self.last_codes = event.codes
                self.last_pause = event.paused
            case _:
                self._apply_to_vms(event)

    def _take_back(self, resource: str) -> None:
        members = self._changed_with(resource)
        self.isolated -= members
        self.broken -= members

    def _apply_to_vms(self, event: Event) -> None:
        match event:
            case HostFailed():
                self.down.add(event.host)
                for vm, host in self.host_of.items():
                    if host == event.host:
                        self.host_of[vm] = None
            case HostRecovered():
                self.down.discard(event.host)
            case past.VmsRestarted():
                for vm, host in event.placed.items():
                    self.host_of[vm] = host
                    self.moving.pop(vm, None)  # its move ended with its host
            case past.ScalingAnswered():
                self._scale(event)

    def _start(self, cluster: Inventory) -> None:
        self.cluster = cluster
        self.host_of = {vm.id: vm.host for vm in cluster.vms}
        self.apart = {
            group.id: set(group.vms) for tenant in cluster.tenants for group in tenant.anti_affinity
        }
        self.joins = {
            tenant.id: tenant.anti_affinity[0].id
            for tenant in cluster.tenants
            if tenant.anti_affinity
        }
        vm_of = {resource.id: resource.vm for resource in cluster.resources}
        self.together = [
            {vm for id_ in group.resources if (vm := vm_of[id_]) is not None}
            for group in cluster.groups
            if group.kind is ResourceGroupKind.AFFINITY
        ]
        self.service_before = self._in_service()

    def _open(self, batch: TaskBatch) -> None:
        self.batches[batch.id] = batch
        self.answered: set[tuple[str, str]] = set()
        self.failed_vertices: set[str] = set()
        self.open_batch = batch
        self._start_stage()

    def _start_stage(self) -> None:
        """Mark what the first stage with an open task changes; later stages have not begun."""
        assert self.open_batch is not None
        for stage in self.open_batch.stages:
            waiting = [
                task
                for task in stage
                if (task.resource, task.kind) not in self.answered
                and task.vertex not in self.failed_vertices
            ]
            if waiting:
                self.changing |= {
                    task.resource
                    for task in waiting
                    if task.kind in (TaskKind.APPLY, TaskKind.REVERT)
                }
                return

    def _answer(self, event: past.TaskFinished | past.TaskFailed) -> None:
        id_ = event.resource
        self.answered.add((id_, event.kind))
        if isinstance(event, past.TaskFailed) and self.open_batch is not None:
            self.failed_vertices |= {
                task.vertex for task in self.open_batch.tasks if task.resource == id_
            }
        self._note_answer(event)
        if self.open_batch is not None:
            self._start_stage()

    def _note_answer(self, event: past.TaskFinished | past.TaskFailed) -> None:
        id_ = event.resource
        if isinstance(event, past.TaskFinished):
            match event.kind:
                case TaskKind.APPLY | TaskKind.REVERT:
                    self.changing.discard(id_)
                    self.broken.discard(id_)
                case TaskKind.DEACTIVATE:
                    self.off.add(id_)
                case TaskKind.ACTIVATE:
                    self.off.discard(id_)
            return
        self.changing.discard(id_)
        untouched = event.kind is TaskKind.APPLY and not (event.done or event.begun)
        if event.code != "connection-refused" and (event.unreachable or not untouched):
            self.broken.add(id_)

    def _scale(self, event: past.ScalingAnswered) -> None:
        for vm, host in event.added.items():
            self.host_of[vm] = host
            if event.tenant in self.joins:
                self.apart[self.joins[event.tenant]].add(vm)
        for vm in event.removed:
            self.host_of.pop(vm, None)
            self.moving.pop(vm, None)

    def _changed_with(self, resource: str) -> set[str]:
        """Return the resources that a container or composite joins to one."""
        members, queue = {resource}, [resource]
        for current in queue:
            for dependency in self.cluster.dependencies:
                if dependency.kind in (DependencyKind.CONTAINER, DependencyKind.COMPOSITION):
                    ends = {dependency.dependent, dependency.sponsor}
                    if current in ends and not ends <= members:
                        queue += ends - members
                        members |= ends
        return members

    # What is in service

    def _in_service(self) -> frozenset[str]:
        """Return the resources that work: they and what they need."""
        out = self.off | self.broken | self.isolated | self.changing
        out |= {resource.id for resource in self.cluster.resources if resource.host in self.down}
        grows = True
        while grows:
            more = {
                resource.id
                for resource in self.cluster.resources
                if resource.id not in out and not self._is_served(resource.id, out)
            }
            out |= more
            grows = bool(more)
        return frozenset(resource.id for resource in self.cluster.resources) - out

    def _needs(self, resource: str) -> Iterator[tuple[DependencyKind, list[Dependency]]]:
        by_kind: dict[DependencyKind, list[Dependency]] = {}
        for dependency in self.cluster.dependencies:
            if dependency.dependent == resource and not dependency.kind.is_symmetrical:
                by_kind.setdefault(dependency.kind, []).append(dependency)
        yield from by_kind.items()

    def _is_served(self, resource: str, out: set[str]) -> bool:
        for kind, dependencies in self._needs(resource):
            serving = sum(dependency.sponsor not in out for dependency in dependencies)
            least = 1
            if kind is DependencyKind.AGGREGATION:
                least = _least(dependencies)
            if serving < least:
                return False
        return True

    # The judgement

    def _judge(self, events: Sequence[Event]) -> None:
        service = self._in_service()
        acts = [event for event in events if isinstance(event, past.BatchStarted)]
        before, self.service_before = self.service_before, service
        placed = tuple(sorted((vm, str(host)) for vm, host in self.host_of.items()))
        key = placed, tuple(sorted(self.moving.items())), service, before if acts else None
        if key in self.judged:
            return
        self.judged.add(key)
        # An outage that a failing task causes is not one that the coordinator has chosen.
        failed = {event.resource for event in events if isinstance(event, past.TaskFailed)}
        rules = [*self._vm_rules(), *self._service_rules(before, service, acts, failed)]
        if not rules:
            return
        snapshot = Snapshot.of(self._cluster(service, rules))
        at_ms = events[-1].at_ms
        for rule, why in broken_rules(snapshot, {rule.id for rule in rules}):
            self.findings.append(f"{at_ms}: {rule}: {why}")

    def _judge_together(self, at_ms: int) -> None:
        """Judge where the moves lead: VMs of an affinity group on one host stay on one host."""
        for vms in self.together:
            hosts = {self.host_of.get(vm) for vm in vms}
            if len(hosts) != 1 or None in hosts:
                continue  # a failure has divided them
            targets = {vm: self.moving.get(vm, self.host_of[vm]) for vm in vms}
            rule = _rule("together", "Together", vs=tuple(sorted(vms)))
            cluster = Inventory(
                hosts=tuple(map(_host, {str(target) for target in targets.values()})),
                vms=tuple(_machine(vm, target) for vm, target in targets.items()),
                rules=(rule,),
                specification=CONSTRAINTS,
            )
            for _, why in broken_rules(Snapshot.of(cluster), {rule.id}):
                self.findings.append(f"{at_ms}: together: {why}")

    def _vm_rules(self) -> Iterator[Rule]:
        for group, vms in self.apart.items():
            named = self._named(vms)
            if len(named) > 1:
                yield _rule(f"apart:{group}", "Apart", vs=named)

    def _named(self, vms: Iterable[str]) -> tuple[str, ...]:
        present = sorted(vm for vm in vms if vm in self.host_of)
        return (*present, *(f"{vm}.arriving" for vm in present if vm in self.moving))

    def _service_rules(
        self,
        before: frozenset[str],
        service: frozenset[str],
        acts: Sequence[past.BatchStarted],
        failed: Set[str],
    ) -> Iterator[Rule]:
        """Yield what an act must keep. A failure may break it; then no act may make it worse."""
        if not acts or failed:
            return
        touched = {task.resource for act in acts for task in act.batch.tasks}
        for id_, dependencies in self._aggregates():
            members = sorted({dependency.sponsor for dependency in dependencies})
            lost = (before - service) & set(members)
            if lost and id_ not in touched:
                yield _rule(f"least:{id_}", "Enough", vs=tuple(members), nb=_least(dependencies))
        out = {resource.host for resource in self.cluster.resources if resource.id in before
               and resource.id not in service and resource.host is not None}  # fmt: skip
        for host in sorted(out):
            on_it = [vm for vm in sorted(self.host_of) if self.host_of[vm] == host]
            if on_it:
                yield _rule(f"empty:{host}", "NoneOn", vs=tuple(on_it), n=host)

    def _aggregates(self) -> Iterator[tuple[str, list[Dependency]]]:
        for resource in self.cluster.resources:
            for kind, dependencies in self._needs(resource.id):
                if kind is DependencyKind.AGGREGATION:
                    yield resource.id, dependencies

    def _cluster(self, service: frozenset[str], rules: Sequence[Rule]) -> Inventory:
        hosts = [*(host.id for host in self.cluster.hosts), SERVICE]
        vms = [_machine(vm, host) for vm, host in self.host_of.items()]
        vms += [_machine(f"{vm}.arriving", host) for vm, host in self.moving.items()
                if vm in self.host_of]  # fmt: skip
        vms += [
            _machine(resource.id, SERVICE if resource.id in service else None)
            for resource in self.cluster.resources
        ]
        return Inventory(
            hosts=tuple(map(_host, hosts)),
            vms=tuple(vms),
            rules=tuple(rules),
            specification=CONSTRAINTS,
        )


def _least(dependencies: Sequence[Dependency]) -> int:
    return max(dependency.constituents_min or 1 for dependency in dependencies)


def _rule(id_: str, constraint: str, **arguments: object) -> Rule:
    return Satisfy(id=RuleId(id_), constraint=constraint, arguments=arguments)  # type: ignore[arg-type]


def _host(name: str) -> Host:
    return Host(id=HostId(name), cores=999, mhz_per_core=9999, memory_mib=2**30)


def _machine(name: str, host: str | None) -> Vm:
    state = VmState.RUNNING if host is not None else VmState.READY
    place = None if host is None else HostId(host)
    return Vm(id=VmId(name), vcpus=1, memory_mib=1, host=place, state=state)


def audit(events: Iterable[Event]) -> tuple[list[str], str]:
    """Return the findings about a journal, and how the campaign ended.

    ``completed``, ``waits`` for a named event, ``stuck`` or ``endless``.
    """
    auditor = CampaignAuditor()
    findings = auditor.read(events)
    end = auditor.end
    if end is None or end.code == "iteration-limit":
        return findings, "endless"
    if end.status is past.CampaignStatus.COMPLETED:
        return findings, "completed"
    nameable = NAMEABLE.intersection(auditor.last_codes)
    return findings, "waits" if nameable else f"stuck: {auditor.last_pause}"
