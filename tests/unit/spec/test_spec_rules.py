from __future__ import annotations

from builders import a_cluster, a_host, a_vm
from equipoise.model.quantity import RuleId, VmId
from equipoise.model.rule import Argument, KeepApart, Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.rules import requirements_of


def required(snapshot: Snapshot) -> list[str]:
    requirements = requirements_of(snapshot.settings, snapshot)
    valid = [
        f"{requirement.name}{sorted(requirement.arguments.items())}"
        for requirement in requirements.valid
    ]
    return valid + [
        f"{violation.constraint}: {violation.code}: {violation.detail}"
        for violation in requirements.invalid
    ]


def cluster(constraint: str, **arguments: Argument) -> Snapshot:
    rule = Satisfy(id=RuleId("r"), constraint=constraint, arguments=arguments)
    return a_cluster(a_host("h1"), vms=[a_vm("v1", "h1"), a_vm("v2")], rules=(rule,))


def test_a_rule_requires_nothing_of_removed_vms_and_hosts() -> None:
    assert required(cluster("Fence", v="gone", ns=("h1",))) == []
    assert required(cluster("Spread", vs=("v1", "gone"))) == ["Spread[('vs', frozenset({'v1'}))]"]
    assert required(cluster("Seq", vs=("v2", "gone", "v1"))) == ["Seq[('vs', ('v2', 'v1'))]"]
    assert required(cluster("Fence", v="v1", ns=("h1", "h9"))) == [
        "Fence[('ns', frozenset({'h1'})), ('v', 'v1')]"
    ]


def test_an_invalid_rule_is_reported() -> None:
    for constraint, key in (("Nothing", "Nothing"), ("Spread", "vs")):
        (found,) = required(cluster(constraint))
        assert found.startswith(f"rule r: invalid-rule: {key}: ")


def test_soft_rules_require_nothing() -> None:
    soft = KeepApart(id=RuleId("r"), vms=(VmId("v1"), VmId("v2")), hard=False)
    state = a_cluster(a_host("h1"), vms=[a_vm("v1", "h1"), a_vm("v2")], rules=(soft,))
    assert required(state) == []
