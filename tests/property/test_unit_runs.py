"""Random units, changed by the coordinator and the simulated engine."""

from __future__ import annotations

from collections.abc import Callable, Collection

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import (
    InjectedFailure,
    ScheduledCampaignEvent,
    UpgradeCampaign,
    UpgradeSettings,
    UpgradeSimulation,
)
from equipoise.model.upgrade.catalog import Catalog, ComponentDescription, ComponentId, Recipe
from equipoise.model.upgrade.graph import ResourceGraph
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
    CommandKind,
    RequestedChange,
    RequestId,
    SetId,
    UpgradeCommand,
    UpgradeRequest,
)
from equipoise.model.upgrade.work import TaskBatch, TaskKind
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from upgrade_clusters import protects
from upgrade_units import units

TOGETHER = (DependencyKind.CONTAINER, DependencyKind.COMPOSITION)


def campaign_of(
    graph: ResourceGraph,
    *,
    remote_links: bool,
    other: Collection[ResourceId] = (),
    both: bool = False,
) -> UpgradeCampaign:
    """Upgrade every resource of a graph at once; aggregates above it do not change.

    A second set ``t`` changes ``other``; with ``both`` the first set changes them as well.
    """
    dependents = dict.fromkeys(edge.dependent for edge in graph.edges)
    aggregates = [id_ for id_ in dependents if id_ not in graph.vertices]
    kinds = [ResourceKind.SWITCH] * len(graph.vertices)
    kinds += [ResourceKind.VIRTUAL_SHARED_STORAGE] * len(aggregates)
    changed = tuple(graph.vertices)
    own = [id_ for id_ in changed if both or id_ not in other]
    shares = {"s": own, "t": list(other)}
    sets = tuple(
        ChangeSet(
            id=SetId(name),
            changes=(
                RequestedChange(does=ChangeKind.UPGRADE, resources=tuple(targets), version="new"),
            ),
        )
        for name, targets in shares.items()
        if targets
    )
    switch = ComponentId("switch")
    return UpgradeCampaign(
        name="unit",
        cluster=Inventory(
            name="unit",
            hosts=(),
            vms=(),
            resources=tuple(
                Resource(id=id_, kind=kind, version="old")
                for id_, kind in zip([*changed, *aggregates], kinds, strict=True)
            ),
            dependencies=tuple(
                Dependency(
                    dependent=edge.dependent,
                    sponsor=edge.sponsor,
                    kind=edge.kind,
                    presence=DependencyPresence.CURRENT_FUTURE,
                    incompatible=edge.incompatible,
                )
                for edge in graph.edges
            ),
        ),
        catalog=Catalog(
            descriptions=(
                ComponentDescription(
                    component=switch, version="new", upgrade=Recipe(duration_s=10)
                ),
            )
        ),
        requests=(UpgradeRequest(id=RequestId("r"), sets=sets),),
        settings=UpgradeSettings(remote_links=remote_links, failover_hosts=0),
    )


class ServiceLog:
    """The resources in service and their versions, computed from the events."""

    def __init__(self, graph: ResourceGraph) -> None:
        self.graph = graph
        self.off: set[ResourceId] = set()
        self.new: set[ResourceId] = set()
        self.cut: set[frozenset[str]] = set()
        self.isolated: set[ResourceId] = set()
        self.worked_on: set[ResourceId] = set()
        self.undoing: set[ResourceId] = set()
        self.links: dict[ResourceId, list[frozenset[str]]] = {}
        self.outcome: past.SetOutcome | None = None
        self.outcomes: dict[str, past.SetOutcome] = {}

    def apply(self, event: object) -> None:
        match event:
            case past.BatchStarted():
                self._started(event.batch)
            case past.TaskFinished():
                self._done(event)
            case past.BatchEnded():
                self.worked_on = set()
            case past.ResourceIsolated():
                self.isolated.add(event.resource)
            case past.ResourceReleased():
                self.isolated.discard(event.resource)
            case past.SetEnded():
                self.outcome = event.outcome
                self.outcomes[event.set] = event.outcome
            case _:
                pass

    def _started(self, batch: TaskBatch) -> None:
        works = [task for task in batch.tasks if task.kind in (TaskKind.APPLY, TaskKind.REVERT)]
        self.worked_on = {task.resource for task in works}
        self.undoing = {task.resource for task in works if task.works and task.works[0].undoing}
        self.links = {}
        # One report covers all links of a resource. Links are switched off first.
        for task in batch.tasks:
            pair = frozenset((task.resource, str(task.link_to)))
            if task.kind is TaskKind.LINK_OFF:
                self.cut.add(pair)
            elif task.kind is TaskKind.LINK_ON:
                self.links.setdefault(task.resource, []).append(pair)

    def _done(self, event: past.TaskFinished) -> None:
        resource = event.resource
        match event.kind:
            case TaskKind.APPLY if resource not in self.undoing:
                self.new.add(resource)
            case TaskKind.APPLY | TaskKind.REVERT:
                self.new.discard(resource)
            case TaskKind.DEACTIVATE:
                self.off.add(resource)
            case TaskKind.ACTIVATE:
                self.off.discard(resource)
                self.worked_on.discard(resource)
            case TaskKind.LINK_ON:
                self.cut.difference_update(self.links.get(resource, ()))
            case _:
                pass

    def conflicts(self) -> list[tuple[str, str]]:
        """Return pairs of incompatible resources in service."""
        out = self.off | self.worked_on | self.isolated
        return [
            (edge.dependent, edge.sponsor)
            for edge in self.graph.edges
            if edge.incompatible and edge.kind not in TOGETHER
            and len({edge.dependent, edge.sponsor} & self.new) == 1
            and not {edge.dependent, edge.sponsor} & out
            and frozenset((edge.dependent, edge.sponsor)) not in self.cut
        ]  # fmt: skip


def run_and_check(
    graph: ResourceGraph,
    campaign: UpgradeCampaign,
    check: Callable[[ServiceLog], None] = lambda _: None,
) -> ServiceLog:
    """Run a campaign. Incompatible versions never communicate, and none stays deactivated."""
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    log = ServiceLog(graph)
    for event in journal.events():
        log.apply(event)
        assert not log.conflicts(), event
        if isinstance(event, past.TaskFinished) and event.kind is TaskKind.APPLY:
            check(log)
    sets = [set_.id for request in campaign.requests for set_ in request.sets]
    assert sorted(log.outcomes) == sorted(sets), "every set comes to its end"
    if past.SetOutcome.CANCELLED not in log.outcomes.values():
        assert not log.off - log.isolated
    return log


@settings(max_examples=60)
@given(units(most=7), st.booleans())
def test_a_unit_completes_without_incompatible_communication(
    graph: ResourceGraph, links: bool
) -> None:
    log = run_and_check(graph, campaign_of(graph, remote_links=links))
    if log.outcome is not past.SetOutcome.REFUSED:
        assert log.outcome is past.SetOutcome.APPLIED
        assert log.new == set(graph.vertices)
        assert not log.cut


@settings(max_examples=60)
@given(units(most=7), st.booleans(), st.data())
def test_a_unit_keeps_the_minimum_of_a_protection_group_in_service(
    graph: ResourceGraph, links: bool, data: st.DataObject
) -> None:
    members = data.draw(st.sets(st.sampled_from(sorted(graph.vertices)), min_size=2))
    minimum = data.draw(st.integers(1, len(members)))
    group = protects("g", sorted(members), in_service_min=minimum)
    campaign = campaign_of(graph, remote_links=links)
    campaign = campaign.but(cluster=campaign.cluster.but(groups=(group,)))

    def check(log: ServiceLog) -> None:
        if log.worked_on:
            assert len(members - log.off - log.worked_on) >= minimum

    log = run_and_check(graph, campaign, check)
    assert log.outcome in (past.SetOutcome.APPLIED, past.SetOutcome.REFUSED)
    if minimum == len(members):
        assert log.outcome is past.SetOutcome.REFUSED


@settings(max_examples=80)
@given(units(most=6), st.booleans(), st.integers(1, 2), st.sampled_from([1, None]), st.data())
def test_a_unit_undone_after_a_failed_attempt_has_no_incompatible_communication(
    graph: ResourceGraph, links: bool, attempts: int, times: int | None, data: st.DataObject
) -> None:
    failure = InjectedFailure(
        resource=data.draw(st.sampled_from(sorted(graph.vertices))), times=times
    )
    campaign = campaign_of(graph, remote_links=links)
    request = campaign.requests[0]
    sets = (request.sets[0].but(attempts_max=attempts),)
    log = run_and_check(
        graph,
        campaign.but(
            requests=(request.but(sets=sets),), simulation=UpgradeSimulation(failures=(failure,))
        ),
    )
    if log.outcome is past.SetOutcome.UNDONE:
        assert not log.new - log.isolated
    elif log.outcome is past.SetOutcome.APPLIED:
        assert log.new == set(graph.vertices)


@st.composite
def shared_units(draw: st.DrawFn) -> tuple[ResourceGraph, list[ResourceId]]:
    """Draw a unit, and the resources of it that a second set changes."""
    graph = draw(units(most=6))
    names = sorted(graph.vertices)
    other = draw(st.sets(st.sampled_from(names), min_size=1, max_size=len(names) - 1))
    return graph, sorted(other)


def check_results(log: ServiceLog, campaign: UpgradeCampaign) -> None:
    """Check that the results of applied sets exist, and nothing else."""
    sets = {set_.id: set(set_.changes[0].resources) for set_ in campaign.requests[0].sets}
    results = {name: own - log.isolated for name, own in sets.items()}
    kept: set[ResourceId] = set()
    for name, outcome in log.outcomes.items():
        if outcome is past.SetOutcome.APPLIED:
            assert results[SetId(name)] <= log.new, name
        if outcome in (past.SetOutcome.APPLIED, past.SetOutcome.CANCELLED):
            kept |= results[SetId(name)]
    assert log.new - log.isolated <= kept


@settings(max_examples=100)
@given(
    shared_units(),
    st.booleans(),
    st.booleans(),
    st.integers(1, 2),
    st.sampled_from([1, None]),
    st.data(),
)
def test_the_undo_of_one_of_two_sets_of_a_unit_has_no_incompatible_communication(
    shared: tuple[ResourceGraph, list[ResourceId]],
    links: bool,
    both: bool,
    attempts: int,
    times: int | None,
    data: st.DataObject,
) -> None:
    graph, other = shared
    failure = InjectedFailure(
        resource=data.draw(st.sampled_from(sorted(graph.vertices))), times=times
    )
    campaign = campaign_of(graph, remote_links=links, other=other, both=both)
    request = campaign.requests[0]
    sets = tuple(set_.but(attempts_max=attempts) for set_ in request.sets)
    log = run_and_check(
        graph,
        campaign.but(
            requests=(request.but(sets=sets),), simulation=UpgradeSimulation(failures=(failure,))
        ),
    )
    check_results(log, campaign)


@settings(max_examples=100)
@given(
    shared_units(),
    st.booleans(),
    st.booleans(),
    st.integers(2, 4),
    st.sampled_from(["cancel", "undo"]),
    st.sampled_from(["s", "t"]),
)
def test_a_command_on_one_of_two_sets_of_a_unit_has_no_incompatible_communication(
    shared: tuple[ResourceGraph, list[ResourceId]],
    links: bool,
    both: bool,
    iteration: int,
    order: str,
    which: str,
) -> None:
    graph, other = shared
    command = UpgradeCommand(order=CommandKind(order), set=SetId(which))
    moment = ScheduledCampaignEvent(iteration=iteration, command=command)
    campaign = campaign_of(graph, remote_links=links, other=other, both=both)
    log = run_and_check(graph, campaign.but(simulation=UpgradeSimulation(events=(moment,))))
    check_results(log, campaign)


@settings(max_examples=60)
@given(units(most=6), st.booleans(), st.integers(2, 4), st.sampled_from(["cancel", "undo"]))
def test_a_command_on_a_unit_has_no_incompatible_communication(
    graph: ResourceGraph, links: bool, iteration: int, order: str
) -> None:
    command = UpgradeCommand(order=CommandKind(order), set=SetId("s"))
    moment = ScheduledCampaignEvent(iteration=iteration, command=command)
    campaign = campaign_of(graph, remote_links=links)
    run_and_check(graph, campaign.but(simulation=UpgradeSimulation(events=(moment,))))
