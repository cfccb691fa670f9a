"""Units by chance, taken through a change by the coordinator and the simulated engine."""

from __future__ import annotations

from collections.abc import Callable, Collection

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.control.upgrading import UpgradeLoop
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import ResourceId
from equipoise.model.resource import Dependency, DependencyKind, Presence, Resource, ResourceKind
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import Campaign, Failing, Moment, UpgradeStory
from equipoise.model.upgrade.catalog import Catalog, ComponentId, Description, Recipe
from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.request import (
    Change,
    ChangeKind,
    ChangeSet,
    Command,
    Order,
    Request,
    RequestId,
    SetId,
)
from equipoise.model.upgrade.settings import UpgradeSettings
from equipoise.model.upgrade.work import Batch, Errand
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from upgrade_units import units
from upgrade_worlds import protects

TOGETHER = (DependencyKind.CONTAINER, DependencyKind.COMPOSITION)


def campaign_of(
    graph: ResourceGraph,
    *,
    remote_links: bool,
    other: Collection[ResourceId] = (),
    both: bool = False,
) -> Campaign:
    """Every resource of a graph is upgraded at once; aggregates it lies under stay as they are.

    ``other`` are changed by a set of their own, ``t``; or by ``both``.
    """
    dependents = dict.fromkeys(edge.dependent for edge in graph.edges)
    beside = [one for one in dependents if one not in graph.vertices]
    kinds = [ResourceKind.SWITCH] * len(graph.vertices)
    kinds += [ResourceKind.VIRTUAL_SHARED_STORAGE] * len(beside)
    changed = tuple(graph.vertices)
    own = [one for one in changed if both or one not in other]
    shares = {"s": own, "t": list(other)}
    sets = tuple(
        ChangeSet(
            id=SetId(name),
            changes=(Change(does=ChangeKind.UPGRADE, resources=tuple(those), version="new"),),
        )
        for name, those in shares.items()
        if those
    )
    switch = ComponentId("switch")
    return Campaign(
        name="unit",
        cluster=Inventory(
            name="unit",
            hosts=(),
            vms=(),
            resources=tuple(
                Resource(id=one, kind=kind, version="old")
                for one, kind in zip([*changed, *beside], kinds, strict=True)
            ),
            dependencies=tuple(
                Dependency(
                    dependent=edge.dependent,
                    sponsor=edge.sponsor,
                    kind=edge.kind,
                    presence=Presence.CURRENT_FUTURE,
                    incompatible=edge.incompatible,
                )
                for edge in graph.edges
            ),
        ),
        catalog=Catalog(
            descriptions=(
                Description(component=switch, version="new", upgrade=Recipe(duration_s=10)),
            )
        ),
        requests=(Request(id=RequestId("r"), sets=sets),),
        settings=UpgradeSettings(remote_links=remote_links, failover_hosts=0),
    )


class Watch:
    """Who is in service with which version, as the events tell it."""

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

    def see(self, event: object) -> None:
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

    def _started(self, batch: Batch) -> None:
        works = [one for one in batch.tasks if one.errand in (Errand.APPLY, Errand.REVERT)]
        self.worked_on = {one.resource for one in works}
        self.undoing = {one.resource for one in works if one.works and one.works[0].undoing}
        self.links = {}
        # Links are answered by the resource alone: whatever goes off goes off first.
        for one in batch.tasks:
            pair = frozenset((one.resource, str(one.link_to)))
            if one.errand is Errand.LINK_OFF:
                self.cut.add(pair)
            elif one.errand is Errand.LINK_ON:
                self.links.setdefault(one.resource, []).append(pair)

    def _done(self, event: past.TaskFinished) -> None:
        one = event.resource
        match event.errand:
            case Errand.APPLY if one not in self.undoing:
                self.new.add(one)
            case Errand.APPLY | Errand.REVERT:
                self.new.discard(one)
            case Errand.DEACTIVATE:
                self.off.add(one)
            case Errand.ACTIVATE:
                self.off.discard(one)
                self.worked_on.discard(one)
            case Errand.LINK_ON:
                self.cut.difference_update(self.links.get(one, ()))
            case _:
                pass

    def talking(self) -> list[tuple[str, str]]:
        """Pairs in service that do not understand each other."""
        out = self.off | self.worked_on | self.isolated
        return [
            (edge.dependent, edge.sponsor)
            for edge in self.graph.edges
            if edge.incompatible and edge.kind not in TOGETHER
            and len({edge.dependent, edge.sponsor} & self.new) == 1
            and not {edge.dependent, edge.sponsor} & out
            and frozenset((edge.dependent, edge.sponsor)) not in self.cut
        ]  # fmt: skip


def watched(
    graph: ResourceGraph, campaign: Campaign, judge: Callable[[Watch], None] = lambda _: None
) -> Watch:
    """Run a campaign. At no time do versions that clash talk, and in the end nobody is kept off."""
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    watch = Watch(graph)
    for event in journal.events():
        watch.see(event)
        assert not watch.talking(), event
        if isinstance(event, past.TaskFinished) and event.errand is Errand.APPLY:
            judge(watch)
    sets = [one.id for request in campaign.requests for one in request.sets]
    assert sorted(watch.outcomes) == sorted(sets), "every set comes to its end"
    if past.SetOutcome.CANCELLED not in watch.outcomes.values():
        assert not watch.off - watch.isolated
    return watch


@settings(max_examples=60)
@given(units(most=7), st.booleans())
def test_a_unit_gets_through_and_versions_that_clash_never_talk(
    graph: ResourceGraph, links: bool
) -> None:
    watch = watched(graph, campaign_of(graph, remote_links=links))
    if watch.outcome is not past.SetOutcome.REFUSED:
        assert watch.outcome is past.SetOutcome.APPLIED
        assert watch.new == set(graph.vertices)
        assert not watch.cut


@settings(max_examples=60)
@given(units(most=7), st.booleans(), st.data())
def test_a_unit_leaves_as_many_of_a_protection_group_in_service_as_it_needs(
    graph: ResourceGraph, links: bool, data: st.DataObject
) -> None:
    members = data.draw(st.sets(st.sampled_from(sorted(graph.vertices)), min_size=2))
    least = data.draw(st.integers(1, len(members)))
    group = protects("g", sorted(members), in_service_min=least)
    campaign = campaign_of(graph, remote_links=links)
    campaign = campaign.but(cluster=campaign.cluster.but(groups=(group,)))

    def judge(watch: Watch) -> None:
        if watch.worked_on:
            assert len(members - watch.off - watch.worked_on) >= least

    watch = watched(graph, campaign, judge)
    assert watch.outcome in (past.SetOutcome.APPLIED, past.SetOutcome.REFUSED)
    if least == len(members):
        assert watch.outcome is past.SetOutcome.REFUSED


@settings(max_examples=80)
@given(units(most=6), st.booleans(), st.integers(1, 2), st.sampled_from([1, None]), st.data())
def test_nor_do_they_when_an_attempt_fails_and_the_unit_is_undone_half_way(
    graph: ResourceGraph, links: bool, attempts: int, times: int | None, data: st.DataObject
) -> None:
    fails = Failing(resource=data.draw(st.sampled_from(sorted(graph.vertices))), times=times)
    campaign = campaign_of(graph, remote_links=links)
    request = campaign.requests[0]
    sets = (request.sets[0].but(attempts_max=attempts),)
    watch = watched(
        graph,
        campaign.but(requests=(request.but(sets=sets),), story=UpgradeStory(failing=(fails,))),
    )
    if watch.outcome is past.SetOutcome.UNDONE:
        assert not watch.new - watch.isolated
    elif watch.outcome is past.SetOutcome.APPLIED:
        assert watch.new == set(graph.vertices)


@st.composite
def shared_units(draw: st.DrawFn) -> tuple[ResourceGraph, list[ResourceId]]:
    """A unit, and those of its resources that a second set is about."""
    graph = draw(units(most=6))
    names = sorted(graph.vertices)
    other = draw(st.sets(st.sampled_from(names), min_size=1, max_size=len(names) - 1))
    return graph, sorted(other)


def ends_in_one_piece(watch: Watch, campaign: Campaign) -> None:
    """What a set leads to is there if it was applied, and nothing else is."""
    sets = {one.id: set(one.changes[0].resources) for one in campaign.requests[0].sets}
    ends = {name: own - watch.isolated for name, own in sets.items()}
    kept: set[ResourceId] = set()
    for name, outcome in watch.outcomes.items():
        if outcome is past.SetOutcome.APPLIED:
            assert ends[SetId(name)] <= watch.new, name
        if outcome in (past.SetOutcome.APPLIED, past.SetOutcome.CANCELLED):
            kept |= ends[SetId(name)]
    assert watch.new - watch.isolated <= kept


@settings(max_examples=100)
@given(
    shared_units(),
    st.booleans(),
    st.booleans(),
    st.integers(1, 2),
    st.sampled_from([1, None]),
    st.data(),
)
def test_nor_when_one_of_two_sets_that_share_a_unit_is_undone(
    shared: tuple[ResourceGraph, list[ResourceId]],
    links: bool,
    both: bool,
    attempts: int,
    times: int | None,
    data: st.DataObject,
) -> None:
    graph, other = shared
    fails = Failing(resource=data.draw(st.sampled_from(sorted(graph.vertices))), times=times)
    campaign = campaign_of(graph, remote_links=links, other=other, both=both)
    request = campaign.requests[0]
    sets = tuple(one.but(attempts_max=attempts) for one in request.sets)
    watch = watched(
        graph,
        campaign.but(requests=(request.but(sets=sets),), story=UpgradeStory(failing=(fails,))),
    )
    ends_in_one_piece(watch, campaign)


@settings(max_examples=100)
@given(
    shared_units(),
    st.booleans(),
    st.booleans(),
    st.integers(2, 4),
    st.sampled_from(["cancel", "undo"]),
    st.sampled_from(["s", "t"]),
)
def test_nor_when_an_administrator_ends_one_of_two_sets_that_share_a_unit(
    shared: tuple[ResourceGraph, list[ResourceId]],
    links: bool,
    both: bool,
    iteration: int,
    order: str,
    which: str,
) -> None:
    graph, other = shared
    command = Command(order=Order(order), set=SetId(which))
    moment = Moment(iteration=iteration, command=command)
    campaign = campaign_of(graph, remote_links=links, other=other, both=both)
    watch = watched(graph, campaign.but(story=UpgradeStory(moments=(moment,))))
    ends_in_one_piece(watch, campaign)


@settings(max_examples=60)
@given(units(most=6), st.booleans(), st.integers(2, 4), st.sampled_from(["cancel", "undo"]))
def test_nor_when_an_administrator_cancels_or_undoes_it_half_way(
    graph: ResourceGraph, links: bool, iteration: int, order: str
) -> None:
    command = Command(order=Order(order), set=SetId("s"))
    moment = Moment(iteration=iteration, command=command)
    campaign = campaign_of(graph, remote_links=links)
    watched(graph, campaign.but(story=UpgradeStory(moments=(moment,))))
