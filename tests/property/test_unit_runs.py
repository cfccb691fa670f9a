"""Units by chance, taken through a change by the coordinator and the simulated engine."""

from __future__ import annotations

from hypothesis import given, settings

from equipoise.control.upgrading import UpgradeLoop
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import ResourceId
from equipoise.model.resource import Dependency, DependencyKind, Presence, Resource, ResourceKind
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.catalog import Catalog, ComponentId, Description, Recipe
from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.request import Change, ChangeKind, ChangeSet, Request, RequestId, SetId
from equipoise.model.upgrade.settings import UpgradeSettings
from equipoise.model.upgrade.work import Errand
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from upgrade_units import units

TOGETHER = (DependencyKind.CONTAINER, DependencyKind.COMPOSITION)


def campaign_of(graph: ResourceGraph, *, remote_links: bool) -> Campaign:
    """Every resource of a graph is upgraded at once; aggregates it lies under stay as they are."""
    dependents = dict.fromkeys(edge.dependent for edge in graph.edges)
    beside = [one for one in dependents if one not in graph.vertices]
    kinds = [ResourceKind.SWITCH] * len(graph.vertices)
    kinds += [ResourceKind.VIRTUAL_SHARED_STORAGE] * len(beside)
    changed = tuple(graph.vertices)
    change = Change(does=ChangeKind.UPGRADE, resources=changed, version="new")
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
        requests=(Request(id=RequestId("r"), sets=(ChangeSet(id=SetId("s"), changes=(change,)),)),),
        settings=UpgradeSettings(remote_links=remote_links, failover_hosts=0),
    )


class Watch:
    """Who is in service with which version, as the engine's answers tell it."""

    def __init__(self, graph: ResourceGraph) -> None:
        self.graph = graph
        self.off: set[ResourceId] = set()
        self.new: set[ResourceId] = set()
        self.cut: set[frozenset[str]] = set()
        self.worked_on: set[ResourceId] = set()
        self.links: dict[ResourceId, list[frozenset[str]]] = {}

    def see(self, event: object) -> None:
        match event:
            case past.BatchStarted():
                tasks = event.batch.tasks
                self.worked_on = {one.resource for one in tasks if one.errand is Errand.APPLY}
                # Links are answered by the resource alone: whatever goes off goes off first.
                for one in tasks:
                    if one.errand is Errand.LINK_OFF:
                        self.cut.add(frozenset((one.resource, str(one.link_to))))
                self.links = {}
                for one in tasks:
                    if one.errand is Errand.LINK_ON:
                        pair = frozenset((one.resource, str(one.link_to)))
                        self.links.setdefault(one.resource, []).append(pair)
            case past.TaskFinished():
                self._done(event)
            case past.BatchEnded():
                self.worked_on = set()
            case _:
                pass

    def _done(self, event: past.TaskFinished) -> None:
        match event.errand:
            case Errand.APPLY:
                self.new.add(event.resource)
            case Errand.DEACTIVATE:
                self.off.add(event.resource)
            case Errand.ACTIVATE:
                self.off.discard(event.resource)
                self.worked_on.discard(event.resource)
            case Errand.LINK_ON:
                self.cut.difference_update(self.links.get(event.resource, ()))
            case _:
                pass

    def talking(self) -> list[tuple[str, str]]:
        """Pairs in service that do not understand each other."""
        out = self.off | self.worked_on
        return [
            (edge.dependent, edge.sponsor)
            for edge in self.graph.edges
            if edge.incompatible and edge.kind not in TOGETHER
            and len({edge.dependent, edge.sponsor} & self.new) == 1
            and not {edge.dependent, edge.sponsor} & out
            and frozenset((edge.dependent, edge.sponsor)) not in self.cut
        ]  # fmt: skip


def run(graph: ResourceGraph, *, remote_links: bool) -> None:
    campaign = campaign_of(graph, remote_links=remote_links)
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    watch = Watch(graph)
    ended = None
    for event in journal.events():
        watch.see(event)
        assert not watch.talking(), event
        ended = event if isinstance(event, past.SetEnded) else ended
    assert ended is not None
    if ended.outcome is past.SetOutcome.REFUSED:
        return
    assert ended.outcome is past.SetOutcome.APPLIED
    assert watch.new == set(graph.vertices)
    assert not watch.off
    assert not watch.cut


@settings(max_examples=60)
@given(units(most=7))
def test_a_unit_gets_through_and_versions_that_clash_never_talk(graph: ResourceGraph) -> None:
    run(graph, remote_links=False)


@settings(max_examples=60)
@given(units(most=7))
def test_links_from_afar_keep_versions_apart_as_well(graph: ResourceGraph) -> None:
    run(graph, remote_links=True)
