"""The laws of an upgrade, for all actions of tenants, hosts, engines and administrators."""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.campaign import (
    PAPER_READINGS,
    PaperReadings,
    UpgradeSettings,
    VmCompatibility,
)
from equipoise.model.upgrade.catalog import Catalog, ComponentId, ComponentRequirement
from equipoise.model.upgrade.event import (
    BatchDecided,
    BatchStarted,
    IterationEnded,
    ScalingAnswered,
    TaskFinished,
    VmBatchDecided,
    VmBatchStarted,
    VmsRestarted,
)
from equipoise.model.upgrade.infrastructure import (
    DependencyKind,
    DependencyPresence,
    ResourceGroup,
    ResourceGroupKind,
)
from equipoise.model.upgrade.request import CommandKind
from equipoise.model.upgrade.work import TaskBatch, TaskKind, UpgradeTask
from equipoise.upgrade import Coordinator
from equipoise.upgrade.graph.dependencies import presence
from equipoise.upgrade.requests.compatibility import are_compatible
from equipoise.upgrade.vms.gate import refusal_reason
from upgrade_clusters import (
    CATALOG,
    STRICT,
    UpgradeHarness,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_storage,
    a_tenant,
    a_vm,
    binds,
    boxes,
    hypervisors,
    protects,
    replaced,
    supported,
    switches,
    upgrade_of,
)

NEW_KERNEL = ComponentRequirement(
    component=ComponentId("hypervisor"),
    versions=("v2", "v3"),
    along=DependencyKind.COMMUNICATION,
)
BUILT = Catalog(
    descriptions=tuple(
        described.but(needs=(NEW_KERNEL,))
        if described.component == "switch" and described.version != "v1"
        else described
        for described in CATALOG.descriptions
    )
)
"""New switches are compatible with new hypervisors only."""
CATALOGS = {"strict": STRICT, "apart": STRICT, "built": BUILT}


class UpgradeMachine(RuleBasedStateMachine):
    """A small cluster under upgrade."""

    harness: UpgradeHarness

    @initialize(
        hosts=st.integers(4, 8),
        sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
        divided=st.booleans(),
        literal=st.booleans(),
        shape=st.sampled_from(["plain", "contained", "strict", "apart", "built", "storage"]),
        guarded=st.one_of(st.none(), st.tuples(st.integers(1, 3), st.booleans())),
        seed=st.integers(0, 2**32),
    )
    def begin(  # noqa: PLR0913, PLR0917
        self,
        hosts: int,
        sizes: list[int],
        divided: bool,
        literal: bool,
        shape: str,
        guarded: tuple[int, bool] | None,
        seed: int,
    ) -> None:
        """Every host can run a VM of every tenant, and no tenant has more VMs than hosts remain
        when one fails and one is out. So all SLAs can be kept without an upgrade.
        """
        self.random = Random(seed)
        self.scaled: set[str] = set()
        self.failing = 0.0
        self.requests = 1
        most = hosts - 2
        vms, tenants = [], []
        for index, size in enumerate(sizes):
            name = f"t{index}"
            names = [f"{name}-{n}" for n in range(min(size, most))]
            spots = self.random.sample(range(1, hosts + 1), len(names))
            vms += [a_vm(vm, spot, name) for vm, spot in zip(names, spots, strict=True)]
            tenants.append(a_tenant(name, names, most=most))
        resources = hypervisors(hosts) + switches(2)
        peers = [binds("s1", "s2", DependencyKind.PEER_STATELESS)]
        links = [
            binds(f"k{n}", f"s{s}", DependencyKind.COMMUNICATION)
            for n in range(1, hosts + 1)
            for s in (1, 2)
        ]
        self.targets = [f"k{n}" for n in range(1, hosts + 1)]
        changes = [upgrade_of(self.targets, undo_threshold=max(0, hosts - 2))]
        if shape == "contained":  # one resource inside another, changed with it
            inner = hypervisors(hosts)[0].but(id=ResourceId("inner"), component="agent")
            resources.append(inner)
            links.append(binds("inner", "k1", DependencyKind.CONTAINER))
            changes.append(upgrade_of(["inner"], undo_threshold=0))
        if shape == "storage":
            resources += [a_storage("old-store", "vsan"), *boxes()]
            links += supported("old-store", self.targets)
            changes += replaced("old-store", self.targets)
        nets = [a_set("net", upgrade_of(["s1", "s2"], undo_threshold=2), attempts_max=2)]
        if shape == "apart":  # two sets about one unit
            nets = [a_set(f"net-{s}", upgrade_of([s]), attempts_max=2) for s in ("s1", "s2")]
        if shape == "built":  # only a later request changes the switches, and it needs this one
            nets = []
        self.guarded = 0 if guarded is None else guarded[0]
        groups = self._groups(*guarded) if guarded is not None else []
        self.harness = UpgradeHarness(
            a_campaign(
                a_request(a_set("hosts", *changes, attempts_max=2), *nets),
                hosts=[a_host(n, len(sizes)) for n in range(1, hosts + 1)],
                vms=vms,
                tenants=tenants,
                resources=resources,
                dependencies=[*peers, *links],
                groups=groups,
                catalog=CATALOGS.get(shape, CATALOG),
                settings=UpgradeSettings(
                    vms=VmCompatibility.DIVIDED if divided else VmCompatibility.FREE,
                    vm_move_s=5,
                    # The reading ``sides_alone`` does refuse tenants, as its docstring says.
                    readings=PAPER_READINGS.but(sides_alone=False) if literal else PaperReadings(),
                ),
            ),
            fails=self._fails,
        )
        self.harness.watch.append(self._check_event)

    def _groups(self, least: int, chosen: bool) -> list[ResourceGroup]:
        """The first four hosts cover for each other; perhaps two of them hold the assignment."""
        members = self.targets[:4]
        if not chosen:
            return [protects("guarded", members, in_service_min=least)]
        return [
            protects("able", members, kind=ResourceGroupKind.POTENTIAL_PROTECTION),
            protects("guarded", members[:2], within="able", in_service_min=least),
        ]

    def _fails(self, task: UpgradeTask) -> str:
        if task.kind not in (TaskKind.APPLY, TaskKind.REVERT):
            return ""
        if self.random.random() >= self.failing:
            return ""
        return "lost" if self.random.random() < 0.1 else "injected"

    # Actions of the environment

    def _scale_out(self, tenant: str) -> None:
        if tenant not in self.scaled:
            self.scaled.add(tenant)
            self.harness.scale(tenant, +1)

    @rule(data=st.data())
    def scale_out(self, data: st.DataObject) -> None:
        self._scale_out(data.draw(st.sampled_from(self._tenants())))

    @rule(data=st.data())
    def scale_in(self, data: st.DataObject) -> None:
        self.harness.scale(data.draw(st.sampled_from(self._tenants())), -1)

    @precondition(lambda self: not self.harness.down)
    @rule(data=st.data())
    def host_fails(self, data: st.DataObject) -> None:
        self.harness.fail_host(
            data.draw(st.sampled_from(list(self.harness.coordinator.state.cluster.compute_hosts)))
        )

    @precondition(lambda self: self.harness.down)
    @rule()
    def host_recovers(self) -> None:
        self.harness.recover_host(next(iter(self.harness.down)))

    @rule(rate=st.sampled_from([0.0, 0.2, 0.6]))
    def actions_fail(self, rate: float) -> None:
        self.failing = rate

    @precondition(lambda self: self.requests < 3)
    @rule(what=st.sampled_from(["hosts", "switches"]))
    def new_request(self, what: str) -> None:
        self.requests += 1
        targets = self.targets if what == "hosts" else ["s1", "s2"]
        version = f"v{self.requests}"
        change = upgrade_of(targets, version, undo_threshold=0)
        name = f"more-{self.requests}"
        self.harness.ask(a_request(a_set(name, change, attempts_max=2), name=name))

    @rule(data=st.data(), order=st.sampled_from(list(CommandKind)))
    def command(self, data: st.DataObject, order: CommandKind) -> None:
        sets = list(self.harness.coordinator.state.requests.set_status)
        if sets:
            self.harness.command(order, data.draw(st.sampled_from(sets)), priority=1)

    @rule(seed=st.integers(0, 2**32))
    def iterate(self, seed: int) -> None:
        """Run to the end of an iteration; tenants scale in the middle of it."""
        random = Random(seed)
        for _ in range(400):
            if random.random() < 0.05:
                self._scale_out(random.choice(self._tenants()))
            before = self.harness.coordinator.state.iteration.number
            if not self.harness.step() or self.harness.coordinator.state.iteration.number > before:
                break

    @rule()
    def crash(self) -> None:
        """A coordinator that has only read the journal equals the coordinator that crashed."""
        again = Coordinator()
        for event in self.harness.journal.events():
            again.handle(event)
        assert again.decide(self.harness.now_ms) == self.harness.coordinator.decide(
            self.harness.now_ms
        )
        assert again.alarm_ms() == self.harness.coordinator.alarm_ms()
        assert again.state == self.harness.coordinator.state, "the state is identical"
        self.harness.coordinator = again
        self.harness.next_repeated_answer()

    def _tenants(self) -> list[str]:
        return list(self.harness.coordinator.state.cluster.tenants)

    # The laws

    def _check_event(self, event: Event) -> None:
        state = self.harness.coordinator.state
        match event:
            case IterationEnded():
                self.scaled = set()
            case ScalingAnswered(refused=refused):
                assert not refused or self._is_too_small(), "VMs within the SLA found no host"
            case VmsRestarted(unplaced=unplaced):
                assert not unplaced or self._is_too_small(), "VMs of one failed host found no host"
            case VmBatchStarted(batch=batch):
                groups = [state.cluster.placements[move.vm].group for move in batch.moves]
                assert len(groups) == len(set(groups)), "two VMs of a group are disturbed at once"
                assert not refusal_reason(state, batch.moves), "the gate refuses the moves"
            case BatchDecided(z=z):
                assert z >= 0
            case VmBatchDecided(v=v):
                assert v >= 0
            case BatchStarted(batch=batch):
                out = {task.resource for task in batch.tasks if task.kind is TaskKind.APPLY}
                assert not {"s1", "s2"} <= out, "both peers are out of service"
                busy = [name for name in out if name[0] == "k" and self._is_used(name)]
                assert not busy, "a host with VMs is changed"
                self._check_group(batch)
            case TaskFinished(kind=TaskKind.APPLY, resource=resource):
                resource_state = state.resources.states[resource]
                for work in resource_state.levels[0].works:
                    assert resource_state.components.get(work.component) == work.before, (
                        "changed twice"
                    )

    def _check_group(self, batch: TaskBatch) -> None:
        """Check that the group keeps its minimum in service, except during an undo."""
        works = [task for task in batch.tasks if task.kind is TaskKind.APPLY]
        out = {task.resource for task in works} & set(self.targets[:4])
        if (
            not self.guarded
            or not out
            or any(work.undoing for task in works for work in task.works)
        ):
            return
        state = self.harness.coordinator.state
        in_service = [
            name
            for n, name in enumerate(self.targets[:4], 1)
            if name not in out
            and (resource_state := state.resources.states[ResourceId(name)]).active
            and resource_state.operational
            and state.cluster.compute_hosts[HostId(f"h{n}")].up
        ]
        assert len(in_service) >= self.guarded, (
            "the protection group has too few members in service"
        )

    def _is_too_small(self) -> bool:
        """Return whether failed attempts have cost so many hosts that the SLAs cannot be kept."""
        state = self.harness.coordinator.state
        operational = [
            host
            for n, host in enumerate(state.cluster.compute_hosts, 1)
            if state.cluster.compute_hosts[host].up
            and state.resources.states[ResourceId(f"k{n}")].operational
        ]
        needed = max(tenant.sla.vms_max for tenant in state.cluster.tenants.values()) + 1
        alone = not all(
            state.resources.states[ResourceId(name)].operational for name in ("s1", "s2")
        )
        return alone or len(operational) + len(self.harness.down) <= needed

    def _is_used(self, resource: str) -> bool:
        state = self.harness.coordinator.state
        host = state.resources.states[ResourceId(resource)].resource.host
        return host is not None and bool(state.cluster.residents.get(host))

    @invariant()
    def vms_are_on_allowed_hosts(self) -> None:
        state = self.harness.coordinator.state
        for host, vms in state.cluster.residents.items():
            vms_max = state.cluster.compute_hosts[host].vms_max
            assert len(vms) <= vms_max
            assert state.cluster.vms_free(host) == vms_max - len(vms), "ledger and residents differ"
            groups = [state.cluster.placements[vm].group for vm in vms]
            assert len(groups) == len(set(groups)), "two VMs of a group on one host"
            assert not vms or state.cluster.compute_hosts[host].up

    @invariant()
    def no_vm_and_no_resource_is_lost(self) -> None:
        state = self.harness.coordinator.state
        for tenant, size in state.cluster.vm_counts.items():
            assert size == sum(
                placement.tenant == tenant for placement in state.cluster.placements.values()
            )
        assert set(state.resources.states) >= {ResourceId(name) for name in self.targets}

    @invariant()
    def incompatible_versions_do_not_communicate(self) -> None:
        state = self.harness.coordinator.state
        for tracked in state.resources.dependencies:
            dependent, sponsor = (
                state.resources.states[end]
                for end in (tracked.dependency.dependent, tracked.dependency.sponsor)
            )
            in_service = all(
                end.present and end.active and end.operational for end in (dependent, sponsor)
            )
            if in_service and presence(state, tracked) in (
                DependencyPresence.CURRENT,
                DependencyPresence.CURRENT_FUTURE,
            ):
                mixed = dict(dependent.components), dict(sponsor.components)
                assert are_compatible(state, tracked.dependency, *mixed), (
                    "incompatible versions are in service together"
                )

    def teardown(self) -> None:
        """After load falls and hosts recover, every set comes to its end."""
        if not hasattr(self, "harness"):
            return
        self.failing = 0.0
        for host in list(self.harness.down):
            self.harness.recover_host(host)
        self.harness.run()
        for tenant in self._tenants():
            self.harness.scale(tenant, -10)
        for set_ in list(self.harness.coordinator.state.requests.set_status):
            self.harness.command(CommandKind.RESUME, set_)
        self.harness.run()
        state = self.harness.coordinator.state
        assert set(self.harness.outcomes().values()) <= {
            "applied",
            "undone",
            "cancelled",
            "refused",
        }
        for status in state.requests.set_status.values():
            self._check_end(status.id)
        assert all(
            not resource_state.levels or not resource_state.operational
            for resource_state in state.resources.states.values()
        )

    def _check_end(self, name: str) -> None:
        """Check that the result of a set exists if it was applied, and not if it was undone."""
        state = self.harness.coordinator.state
        status = state.requests.set_status[name]  # type: ignore[index]
        for change, targets in zip(status.set.changes, status.targets, strict=True):
            for id_ in targets:
                resource_state = state.resources.states[id_]
                component = change.component or resource_state.own_component
                applied = [work for work in resource_state.applied if work.component == component]
                if not resource_state.operational or status.outcome in ("cancelled", "refused"):
                    continue
                if status.outcome == "undone":
                    assert all(work.set != name for work in applied)
                elif applied and applied[-1].set == name:
                    assert resource_state.components.get(component) == applied[-1].after


UpgradeMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
TestUpgrades = UpgradeMachine.TestCase
