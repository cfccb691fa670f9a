"""Formulas of which a part has no value: they do not hold, and nobody stumbles over them."""

from __future__ import annotations

from builders import a_cluster, a_host, a_plan, a_vm
from equipoise.model.quantity import RuleId
from equipoise.model.rule import Satisfy
from equipoise.plan import Refusal, verify

NOWHERE = "Odd discrete ::= !(x : vms - [vms, vms][3]) runs(x)"


def test_a_rule_about_what_has_no_value_is_refused_and_not_stumbled_over() -> None:
    rule = Satisfy(id=RuleId("odd"), constraint="Odd")
    snapshot = a_cluster(a_host("h1"), vms=[a_vm("v1", "h1")], rules=(rule,), specification=NOWHERE)
    verdict = verify(snapshot, a_plan())
    assert not isinstance(verdict, Refusal), "it was broken before, and nobody touched it"
    continuous = snapshot.settings.but(rules=(rule.but(continuous=True),))
    odd = a_cluster(
        a_host("h1"), vms=[a_vm("v1", "h1")], rules=continuous.rules, specification=NOWHERE
    )
    verdict = verify(odd, a_plan())
    assert isinstance(verdict, Refusal)
    assert "there is no position 3" in verdict.violations[0].detail
