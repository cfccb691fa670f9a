from __future__ import annotations

from collections.abc import Iterable

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm, facts
from equipoise.model.action import EnterMaintenance, Migrate, PowerOff
from equipoise.model.plan import Step, Violation
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import Refusal, VerifiedPlan, verify
from equipoise.spec.moments import MomentPhase, PlanMoment

H1, H2, H3, V1, V2 = HostId("h1"), HostId("h2"), HostId("h3"), VmId("v1"), VmId("v2")


def move(vm: str, source: str, target: str) -> Migrate:
    return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))


BOTH_ON = "v1 and v2 are both on {0}"


def cluster(*rules: Rule) -> Snapshot:
    return a_cluster(
        a_host("h1"), a_host("h2"), a_host("h3"), vms=[a_vm("v1", "h1"), a_vm("v2", "h2")],
        rules=rules,
    )  # fmt: skip


def violations(snapshot: Snapshot, *steps: Step) -> list[tuple[str, int, str, str]]:
    """Return the constraint, time, code and detail of each violation of a plan."""
    verdict = verify(snapshot, a_plan(*steps))
    if isinstance(verdict, VerifiedPlan):
        return []
    return [
        (violation.constraint, violation.at_ms, violation.code, violation.detail)
        for violation in verdict.violations
    ]


def coded(snapshot: Snapshot, *steps: Step) -> list[tuple[str, int, str]]:
    return [row[:3] for row in violations(snapshot, *steps)]


def test_an_empty_plan_passes() -> None:
    assert violations(cluster()) == []


def test_ends_come_before_starts_at_one_instant() -> None:
    away = a_step("a", move("v1", "h1", "h2"), 0, 1000)
    assert violations(cluster(), away, a_step("b", PowerOff(host=H1), 1000, 2000)) == []
    assert coded(cluster(), away, a_step("b", PowerOff(host=H1), 999, 2000)) == [
        ("host_life", 999, "action-in-progress"),
        ("host_empty", 999, "host-not-empty"),
    ]


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([a_step("a", move("v1", "h1", "h2"), 5, 5)], "invalid-step"),
        (
            [a_step("a", move("v1", "h1", "h2")), a_step("a", move("v2", "h2", "h1"))],
            "duplicate-step",
        ),
        ([a_step("a", move("v1", "h1", "h2"), 0, 10, "b")], "prerequisite-missing"),
        (
            [
                a_step("a", move("v1", "h1", "h2"), 0, 10),
                a_step("b", move("v2", "h2", "h3"), 9, 20, "a"),
            ],
            "prerequisite-missing",
        ),
    ],
)
def test_the_form_of_a_plan_is_checked(steps: list[Step], code: str) -> None:
    assert [(name, found) for name, _, found in coded(cluster(), *steps)] == [("form", code)]


def test_a_stale_plan_is_refused() -> None:
    verdict = verify(cluster(), a_plan(base_version=3))
    assert isinstance(verdict, Refusal)
    (violation,) = verdict.violations
    assert (violation.constraint, violation.code) == ("fresh", "stale-plan")


def test_all_violations_are_listed_without_their_consequences() -> None:
    found = violations(
        cluster(),
        a_step("a", move("v1", "h2", "h3"), 0, 10),
        a_step("b", EnterMaintenance(host=H1), 10, 20, "a"),
        a_step("c", move("v2", "h2", "h2"), 0, 10),
    )
    assert [(*row[:3], facts(row[3])) for row in found] == [
        ("vm_life", 0, "wrong-state", ["v1", "h1", "h2"]),
        ("vm_life", 0, "wrong-state", ["v2", "h2"]),
    ]


APART = RuleId("apart")


def test_a_discrete_rule_is_judged_at_the_end_only() -> None:
    rule = KeepApart(id=APART, vms=(V1, V2))
    visit = [
        a_step("a", move("v1", "h1", "h2"), 0, 10),
        a_step("b", move("v1", "h2", "h3"), 10, 20),
    ]
    assert violations(cluster(rule), *visit) == []
    ((name, at_ms, code, detail),) = violations(cluster(rule), visit[0])
    assert (name, at_ms, code) == ("rule apart", 10, "rule-violated")
    assert detail.endswith(BOTH_ON.format("h2"))


def test_a_continuous_rule_is_judged_at_every_moment() -> None:
    rule = KeepApart(id=APART, vms=(V1, V2), continuous=True)
    assert coded(
        cluster(rule),
        a_step("a", move("v1", "h1", "h2"), 0, 1234),
        a_step("b", move("v1", "h2", "h3"), 2000, 3000),
    ) == [("rule apart", 1234, "rule-violated")]


def test_a_migrating_vm_runs_on_its_source_until_the_end() -> None:
    off = StayOff(id=RuleId("r"), vms=(V1,), hosts=(H2,), continuous=True)
    ((name, at_ms, code, detail),) = violations(
        cluster(off), a_step("a", move("v1", "h1", "h2"), 5, 1000)
    )
    assert (name, at_ms, code) == ("rule r", 1000, "rule-violated")
    assert facts(detail) == ["v1", "h2", "{h2}"]


def test_a_plan_that_needs_exact_times_is_not_feasible() -> None:
    rule = KeepApart(id=APART, vms=(V1, V2), continuous=True)
    swap = [
        a_step("a", move("v1", "h1", "h2"), 0, 1000),
        a_step("b", move("v2", "h2", "h1"), 0, 1000),
    ]
    found = violations(cluster(rule), *swap)
    assert [row[:3] for row in found] == [("feasible, rule apart", 0, "rule-violated")] * 2
    assert found[0][3].endswith(BOTH_ON.format("h2"))
    assert found[1][3].endswith(BOTH_ON.format("h1"))


def test_a_continuous_rule_violated_at_the_start_is_not_charged() -> None:
    together = KeepTogether(id=RuleId("r"), vms=(V1, V2), continuous=True)
    assert violations(cluster(together)) == []


def test_an_old_violation_is_charged_only_where_it_gets_worse() -> None:
    off = StayOff(id=RuleId("r"), vms=(V1,), hosts=(H1,))
    assert violations(cluster(off), a_step("a", move("v2", "h2", "h3"))) == []
    both = StayWithin(id=RuleId("r"), vms=(V1,), hosts=(H2,))
    assert violations(cluster(both), a_step("a", move("v1", "h1", "h3"))) == []


def test_soft_rules_do_not_bind_the_gate() -> None:
    rule = KeepApart(id=APART, vms=(V1, V2), hard=False, continuous=True)
    assert violations(cluster(rule), a_step("a", move("v1", "h1", "h2"))) == []


def test_judges_see_every_moment_and_can_refuse() -> None:
    seen: list[tuple[MomentPhase, int, tuple[VmId, ...]]] = []

    def judge(moment: PlanMoment) -> Iterable[Violation]:
        seen.append((moment.phase, moment.at_ms, moment.touched.vms))
        if moment.state.vms[V1].host == H2:
            yield Violation(constraint="no", at_ms=moment.at_ms, detail="v1 on h2")

    verdict = verify(cluster(), a_plan(a_step("a", move("v1", "h1", "h2"), 5, 10)), [judge])
    assert seen == [
        (MomentPhase.INITIAL, 0, ()),
        (MomentPhase.ENDS, 5, ()),
        (MomentPhase.STARTS, 5, (V1,)),
        (MomentPhase.ENDS, 10, (V1,)),
        (MomentPhase.STARTS, 10, ()),
        (MomentPhase.FINAL, 10, (V1,)),
    ]
    assert isinstance(verdict, Refusal)
    assert {violation.at_ms for violation in verdict.violations} == {10}


def test_only_verify_makes_a_verified_plan() -> None:
    with pytest.raises(TypeError, match=r"only equipoise\.plan\.verify"):
        VerifiedPlan(a_plan(), {}, seal=object())
