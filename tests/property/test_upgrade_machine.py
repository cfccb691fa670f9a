"""The laws of an upgrade, whatever tenants, hosts, engines and administrators do meanwhile."""

from __future__ import annotations

from dataclasses import replace
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
from equipoise.model.resource import DependencyKind, Presence, ResourceGroup, ResourceGroupKind
from equipoise.model.upgrade.catalog import Catalog, ComponentId, Need
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
from equipoise.model.upgrade.request import Order
from equipoise.model.upgrade.settings import PAPER, Mixing, Readings, UpgradeSettings
from equipoise.model.upgrade.work import Batch, Errand, Task
from equipoise.upgrade import Coordinator
from equipoise.upgrade.graph.bonds import presence
from equipoise.upgrade.moves.gate import refusal
from equipoise.upgrade.requests.talk import talk
from equipoise.upgrade.state import State
from upgrade_worlds import (
    CATALOG,
    STRICT,
    Stage,
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

NEW_KERNEL = Need(
    component=ComponentId("hypervisor"),
    versions=("v2", "v3"),
    along=DependencyKind.COMMUNICATION,
)
BUILT = Catalog(
    descriptions=tuple(
        one.but(needs=(NEW_KERNEL,)) if one.component == "switch" and one.version != "v1" else one
        for one in CATALOG.descriptions
    )
)
"""New switches understand new hypervisors only."""
CATALOGS = {"strict": STRICT, "apart": STRICT, "built": BUILT}


def _but_caches(coordinator: Coordinator) -> State:
    """All that is known, without what is only kept to be quick."""
    return replace(coordinator.state, grouping=None)


class Upgrades(RuleBasedStateMachine):
    """A small cluster under upgrade."""

    stage: Stage

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
        """Every host could take a VM of every tenant, and no tenant has more VMs than hosts stay
        when one fails and one is out: all that was promised can be kept without an upgrade."""
        self.chance = Random(seed)
        self.grown: set[str] = set()
        self.failing = 0.0
        self.requests = 1
        most = hosts - 2
        vms, tenants = [], []
        for place, size in enumerate(sizes):
            name = f"t{place}"
            here = [f"{name}-{n}" for n in range(min(size, most))]
            spots = self.chance.sample(range(1, hosts + 1), len(here))
            vms += [a_vm(vm, spot, name) for vm, spot in zip(here, spots, strict=True)]
            tenants.append(a_tenant(name, here, most=most))
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
        if shape == "built":  # switches that only a later request asks for, and that build on this
            nets = []
        self.guarded = 0 if guarded is None else guarded[0]
        groups = self._groups(*guarded) if guarded is not None else []
        self.stage = Stage(
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
                    vms=Mixing.DIVIDED if divided else Mixing.FREE,
                    vm_move_s=5,
                    # Looking at one side alone does turn tenants away, as its docstring says.
                    readings=PAPER.but(sides_alone=False) if literal else Readings(),
                ),
            ),
            fails=self._fails,
        )
        self.stage.watch.append(self._judge)

    def _groups(self, least: int, chosen: bool) -> list[ResourceGroup]:
        """The first four hosts stand in for one another; perhaps two of them are assigned."""
        able = self.targets[:4]
        if not chosen:
            return [protects("guarded", able, in_service_min=least)]
        return [
            protects("able", able, kind=ResourceGroupKind.POTENTIAL_PROTECTION),
            protects("guarded", able[:2], within="able", in_service_min=least),
        ]

    def _fails(self, task: Task) -> str:
        if task.errand not in (Errand.APPLY, Errand.REVERT):
            return ""
        if self.chance.random() >= self.failing:
            return ""
        return "lost" if self.chance.random() < 0.1 else "by chance"

    # What others do

    def _scale_out(self, tenant: str) -> None:
        if tenant not in self.grown:
            self.grown.add(tenant)
            self.stage.scale(tenant, +1)

    @rule(data=st.data())
    def scale_out(self, data: st.DataObject) -> None:
        self._scale_out(data.draw(st.sampled_from(self._tenants())))

    @rule(data=st.data())
    def scale_in(self, data: st.DataObject) -> None:
        self.stage.scale(data.draw(st.sampled_from(self._tenants())), -1)

    @precondition(lambda self: not self.stage.down)
    @rule(data=st.data())
    def host_fails(self, data: st.DataObject) -> None:
        self.stage.fail_host(data.draw(st.sampled_from(list(self.stage.coordinator.state.places))))

    @precondition(lambda self: self.stage.down)
    @rule()
    def host_recovers(self) -> None:
        self.stage.recover_host(next(iter(self.stage.down)))

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
        self.stage.ask(a_request(a_set(name, change, attempts_max=2), name=name))

    @rule(data=st.data(), order=st.sampled_from(list(Order)))
    def command(self, data: st.DataObject, order: Order) -> None:
        sets = list(self.stage.coordinator.state.standings)
        if sets:
            self.stage.command(order, data.draw(st.sampled_from(sets)), priority=1)

    @rule(seed=st.integers(0, 2**32))
    def iterate(self, seed: int) -> None:
        """Go to the end of an iteration; tenants grow and a host fails in the middle of it."""
        chance = Random(seed)
        for _ in range(400):
            if chance.random() < 0.05:
                self._scale_out(chance.choice(self._tenants()))
            before = self.stage.coordinator.state.iteration
            if not self.stage.step() or self.stage.coordinator.state.iteration > before:
                break

    @rule()
    def crash(self) -> None:
        """A coordinator that knows the journal alone is the coordinator that crashed."""
        again = Coordinator()
        for event in self.stage.journal.events():
            again.handle(event)
        assert again.decide(self.stage.now_ms) == self.stage.coordinator.decide(self.stage.now_ms)
        assert again.alarm_ms() == self.stage.coordinator.alarm_ms()
        assert _but_caches(again) == _but_caches(self.stage.coordinator), "the state is identical"
        self.stage.coordinator = again
        self.stage.answer_again()

    def _tenants(self) -> list[str]:
        return list(self.stage.coordinator.state.tenants)

    # What must hold

    def _judge(self, event: Event) -> None:
        state = self.stage.coordinator.state
        match event:
            case IterationEnded():
                self.grown = set()
            case ScalingAnswered(refused=refused):
                assert not refused or self._is_too_small(), "demand within the SLA was not placed"
            case VmsRestarted(unplaced=unplaced):
                assert not unplaced or self._is_too_small(), "VMs of one failed host have no place"
            case VmBatchStarted(batch=batch):
                groups = [state.seats[move.vm].group for move in batch.moves]
                assert len(groups) == len(set(groups)), "two VMs of a group are disturbed at once"
                assert not refusal(state, batch.moves), "moves that the gate does not let pass"
            case BatchDecided(z=z):
                assert z >= 0
            case VmBatchDecided(v=v):
                assert v >= 0
            case BatchStarted(batch=batch):
                out = {task.resource for task in batch.tasks if task.errand is Errand.APPLY}
                assert not {"s1", "s2"} <= out, "both peers are out of service"
                busy = [one for one in out if one[0] == "k" and self._is_used(one)]
                assert not busy, "a host with VMs is changed"
                self._judge_group(batch)
            case TaskFinished(errand=Errand.APPLY, resource=resource):
                part = state.parts[resource]
                for work in part.levels[0].works:
                    assert part.components.get(work.component) == work.before, "changed twice"

    def _judge_group(self, batch: Batch) -> None:
        """So many of the group are in service beside the batch, unless something is taken back."""
        works = [task for task in batch.tasks if task.errand is Errand.APPLY]
        out = {task.resource for task in works} & set(self.targets[:4])
        if not self.guarded or not out or any(work.undoing for one in works for work in one.works):
            return
        state = self.stage.coordinator.state
        serving = [
            one
            for n, one in enumerate(self.targets[:4], 1)
            if one not in out
            and (part := state.parts[ResourceId(one)]).active
            and part.operational
            and state.places[HostId(f"h{n}")].up
        ]
        assert len(serving) >= self.guarded, "more of a protection group are out than it can spare"

    def _is_too_small(self) -> bool:
        """Whether failed attempts have cost so many hosts that nobody could keep the promises."""
        state = self.stage.coordinator.state
        able = [
            host
            for n, host in enumerate(state.places, 1)
            if state.places[host].up and state.parts[ResourceId(f"k{n}")].operational
        ]
        needed = max(one.sla.vms_max for one in state.tenants.values()) + 1
        alone = not all(state.parts[ResourceId(one)].operational for one in ("s1", "s2"))
        return alone or len(able) + len(self.stage.down) <= needed

    def _is_used(self, resource: str) -> bool:
        state = self.stage.coordinator.state
        host = state.parts[ResourceId(resource)].resource.host
        return host is not None and bool(state.residents.get(host))

    @invariant()
    def vms_are_where_they_may_be(self) -> None:
        state = self.stage.coordinator.state
        for host, vms in state.residents.items():
            assert len(vms) <= state.places[host].places
            groups = [state.seats[vm].group for vm in vms]
            assert len(groups) == len(set(groups)), "two VMs of a group on one host"
            assert not vms or state.places[host].up

    @invariant()
    def nobody_is_lost(self) -> None:
        state = self.stage.coordinator.state
        for tenant, size in state.sizes.items():
            assert size == sum(seat.tenant == tenant for seat in state.seats.values())
        assert set(state.parts) >= {ResourceId(one) for one in self.targets}

    @invariant()
    def incompatible_versions_do_not_talk(self) -> None:
        state = self.stage.coordinator.state
        for bond in state.bonds:
            one, other = (
                state.parts[end] for end in (bond.dependency.dependent, bond.dependency.sponsor)
            )
            in_service = all(end.present and end.active and end.operational for end in (one, other))
            if in_service and presence(state, bond) in (Presence.CURRENT, Presence.CURRENT_FUTURE):
                mixed = dict(one.components), dict(other.components)
                assert talk(state, bond.dependency, *mixed), "they do not understand each other"

    def teardown(self) -> None:
        """Once load falls and machines are well, every set comes to its end."""
        if not hasattr(self, "stage"):
            return
        self.failing = 0.0
        for host in list(self.stage.down):
            self.stage.recover_host(host)
        self.stage.run()
        for tenant in self._tenants():
            self.stage.scale(tenant, -10)
        for set_ in list(self.stage.coordinator.state.standings):
            self.stage.command(Order.RESUME, set_)
        self.stage.run()
        state = self.stage.coordinator.state
        assert set(self.stage.outcomes().values()) <= {"applied", "undone", "cancelled", "refused"}
        for standing in state.standings.values():
            self._check_end(standing.id)
        assert all(not part.levels or not part.operational for part in state.parts.values())

    def _check_end(self, name: str) -> None:
        """What a set leads to is there if it was applied, and not if it was undone."""
        state = self.stage.coordinator.state
        standing = state.standings[name]  # type: ignore[index]
        for change, targets in zip(standing.set.changes, standing.targets, strict=True):
            for id_ in targets:
                part = state.parts[id_]
                component = change.component or part.main
                done = [work for work in part.applied if work.component == component]
                if not part.operational or standing.outcome in ("cancelled", "refused"):
                    continue
                if standing.outcome == "undone":
                    assert all(work.set != name for work in done)
                elif done and done[-1].set == name:
                    assert part.components.get(component) == done[-1].after


Upgrades.TestCase.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
TestUpgrades = Upgrades.TestCase
