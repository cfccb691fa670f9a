from __future__ import annotations

from builders import a_cluster, a_host, a_vm
from equipoise.model.quantity import RuleId, VmId
from equipoise.model.rule import Argument, KeepApart, Satisfy
from equipoise.model.snapshot import Snapshot
from equipoise.spec.rules import demands_of


def demanded(snapshot: Snapshot) -> list[str]:
    demands = demands_of(snapshot.settings, snapshot)
    found = [f"{one.name}{sorted(one.arguments.items())}" for one in demands.clear]
    return found + [f"{one.constraint}: {one.detail}" for one in demands.unclear]


def cluster(constraint: str, **arguments: Argument) -> Snapshot:
    rule = Satisfy(id=RuleId("r"), constraint=constraint, arguments=arguments)
    return a_cluster(a_host("h1"), vms=[a_vm("v1", "h1"), a_vm("v2")], rules=(rule,))


def test_a_rule_about_who_has_left_demands_nothing_of_him() -> None:
    assert demanded(cluster("Fence", v="gone", ns=("h1",))) == []
    assert demanded(cluster("Spread", vs=("v1", "gone"))) == ["Spread[('vs', frozenset({'v1'}))]"]
    assert demanded(cluster("Seq", vs=("v2", "gone", "v1"))) == ["Seq[('vs', ('v2', 'v1'))]"]
    assert demanded(cluster("Fence", v="v1", ns=("h1", "h9"))) == [
        "Fence[('ns', frozenset({'h1'})), ('v', 'v1')]"
    ]


def test_a_rule_that_nobody_understands_is_not_forgotten() -> None:
    assert demanded(cluster("Nothing")) == ["rule r: Nothing: there is no such constraint"]
    assert demanded(cluster("Spread")) == ["rule r: vs: is missing"]


def test_soft_rules_demand_nothing() -> None:
    soft = KeepApart(id=RuleId("r"), vms=(VmId("v1"), VmId("v2")), hard=False)
    state = a_cluster(a_host("h1"), vms=[a_vm("v1", "h1"), a_vm("v2")], rules=(soft,))
    assert demanded(state) == []
