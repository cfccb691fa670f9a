"""How many hosts a unit takes out of service, and how many spare ones that calls for."""

from __future__ import annotations

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.resource import DependencyKind, Presence, ResourceKind
from equipoise.model.upgrade.graph import Edge, Modification, ResourceGraph, Vertex
from equipoise.model.upgrade.work import Method, UnitId, UpgradeUnit
from equipoise.model.value import FrozenMap
from equipoise.upgrade.methods import spare_hosts, unit_of, universes
from upgrade_units import AGGREGATION, LINK, PEER, STORAGE, Wire, named, wired

HOSTS = range(1, 7)


def degraded(wires: list[Wire], *, remote_links: bool = False) -> UpgradeUnit:
    graph = wired(8, wires, hosts=HOSTS)
    unit = unit_of(graph, UnitId("u"), list(graph.vertices), remote_links=remote_links)
    assert unit is not None
    return unit


def two_sponsors(kind: DependencyKind, *, clash: bool = True) -> list[Wire]:
    needs: list[Wire] = [(one, two, kind, True) for one in HOSTS for two in (7, 8)]
    return [(7, 8, PEER, clash), *needs]


def test_split_mode_costs_half_of_the_hosts() -> None:
    unit = degraded(two_sponsors(STORAGE))
    assert unit.method is Method.SPLIT
    assert unit.degraded_hosts == 3


def test_modified_split_costs_all_hosts_of_the_unit() -> None:
    unit = degraded(two_sponsors(LINK))
    assert unit.method is Method.MODIFIED_SPLIT
    assert unit.degraded_hosts == 6


def test_links_managed_from_afar_keep_no_host_off() -> None:
    unit = degraded(two_sponsors(LINK, clash=False), remote_links=True)
    assert unit.method is Method.MODIFIED_SPLIT_LINKS
    assert unit.degraded_hosts is None


def test_a_host_outside_the_unit_counts_if_nobody_stands_in_for_what_it_needs() -> None:
    needs: list[Wire] = [(1, 7, LINK, False), (2, 7, LINK, False), (2, 8, LINK, False)]
    graph = wired(8, [(7, 8, PEER, True), *needs], hosts=HOSTS)
    unit = unit_of(graph, UnitId("u"), [named(7), named(8)], remote_links=False)
    assert unit is not None
    assert unit.method is Method.SPLIT
    assert unit.degraded_hosts == 1


def test_an_aggregate_works_while_enough_constituents_do() -> None:
    wires: list[Wire] = [(7, 8, PEER, True), (6, 7, AGGREGATION, False), (6, 8, AGGREGATION, False)]
    for least, worst in ((1, None), (2, 1)):
        graph = wired(8, wires, hosts=HOSTS, least=least)
        unit = unit_of(graph, UnitId("u"), [named(7), named(8)], remote_links=False)
        assert unit is not None
        assert unit.degraded_hosts == worst


def test_the_largest_unit_and_the_new_side_decide_on_spare_hosts() -> None:
    split, modified = degraded(two_sponsors(STORAGE)), degraded(two_sponsors(LINK))
    assert spare_hosts([]) == 0
    assert spare_hosts([split, modified]) == 6
    assert spare_hosts([split], failover_new=1) == 4


def replaced_storage() -> ResourceGraph:
    """Nine storage hosts carry the old storage, five of them the new one; ten hosts compute."""
    old, new = ResourceId("vsan"), ResourceId("ceph")
    vertices = {
        named(one): Vertex(named(one), ResourceKind.SERVER, host=HostId(f"h{one}"))
        for one in range(1, 16)
    }
    kind = ResourceKind.VIRTUAL_SHARED_STORAGE
    vertices[old] = Vertex(old, kind, Modification.REMOVE, related=new, constituents_min=3)
    vertices[new] = Vertex(new, kind, Modification.ADD, related=old, constituents_min=5)
    edges = [Edge(old, named(one), AGGREGATION, Presence.CURRENT) for one in range(1, 10)]
    edges += [Edge(new, named(one), AGGREGATION, Presence.FUTURE) for one in range(1, 6)]
    support = DependencyKind.VM_SUPPORTING_STORAGE
    edges += [Edge(named(one), old, support, Presence.CURRENT) for one in range(6, 16)]
    edges += [Edge(named(one), new, support, Presence.FUTURE) for one in range(6, 16)]
    return ResourceGraph(FrozenMap(vertices), tuple(edges))


def test_a_replaced_storage_needs_room_for_both() -> None:
    graph = replaced_storage()
    (universe,) = universes(graph)
    assert (universe.old, universe.new) == ("vsan", "ceph")
    assert len(universe.supported) == 10
    assert universe.needed == 8
    used = [HostId(f"h{one}") for one in (7, 8, 9)]
    assert universe.missing(graph, frozenset(used[:1])) == 0
    assert universe.missing(graph, frozenset(used)) == 2


def test_what_is_upgraded_in_place_is_no_second_universe() -> None:
    assert list(universes(wired(3, [(1, 2, STORAGE, False)]))) == []
