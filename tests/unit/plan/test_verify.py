from __future__ import annotations

from collections.abc import Iterable

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.model.action import EnterMaintenance, Migrate, PowerOff
from equipoise.model.plan import Step, Violation
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, StayOff, StayWithin
from equipoise.model.snapshot import Snapshot
from equipoise.plan import Moment, Phase, Refusal, VerifiedPlan, verify

H1, H2, H3, V1, V2 = HostId("h1"), HostId("h2"), HostId("h3"), VmId("v1"), VmId("v2")


def move(vm: str, source: str, target: str) -> Migrate:
    return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))


ON_ONE_HOST = "not so: host(v1) /= host(v2), with host(v1) = {0}, host(v2) = {0}"
RUNS_ON_H2 = (
    "VM-host must not: none of the VMs runs on one of these hosts; not so: host(v1) /: ns, "
    "with ns = {h2}, host(v1) = h2"
)
RUNS_ON_H3 = (
    "VM-host must: those of the VMs that run, run on these hosts only; not so: host(v1) : ns, "
    "with ns = {h2}, host(v1) = h3"
)
TOGETHER_ON_H2 = (
    f"VM-VM anti-affinity: no two of the VMs run on one host; {ON_ONE_HOST.format('h2')}"
)


def cluster(*rules: Rule) -> Snapshot:
    return a_cluster(
        a_host("h1"), a_host("h2"), a_host("h3"), vms=[a_vm("v1", "h1"), a_vm("v2", "h2")],
        rules=rules,
    )  # fmt: skip


def complaints(snapshot: Snapshot, *steps: Step) -> list[tuple[str, int, str]]:
    verdict = verify(snapshot, a_plan(*steps))
    if isinstance(verdict, VerifiedPlan):
        return []
    return [(one.constraint, one.at_ms, one.detail) for one in verdict.violations]


def test_an_empty_plan_passes() -> None:
    assert complaints(cluster()) == []


def test_ends_come_before_starts_at_one_instant() -> None:
    away = a_step("a", move("v1", "h1", "h2"), 0, 1000)
    assert complaints(cluster(), away, a_step("b", PowerOff(host=H1), 1000, 2000)) == []
    assert complaints(cluster(), away, a_step("b", PowerOff(host=H1), 999, 2000)) == [
        ("host_life", 999, "h1 is still part of step a"),
        ("host_empty", 999, "h1 still has v1"),
    ]


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([a_step("a", move("v1", "h1", "h2"), 5, 5)], "it ends before it has begun"),
        (
            [a_step("a", move("v1", "h1", "h2")), a_step("a", move("v2", "h2", "h1"))],
            "another step has the same id",
        ),
        (
            [a_step("a", move("v1", "h1", "h2"), 0, 10, "b")],
            "it waits for b, which is not in the plan",
        ),
        (
            [
                a_step("a", move("v1", "h1", "h2"), 0, 10),
                a_step("b", move("v2", "h2", "h3"), 9, 20, "a"),
            ],
            "it starts before a, which it waits for, ends",
        ),
    ],
)
def test_the_form_must_be_right(steps: list[Step], text: str) -> None:
    assert [detail for _, _, detail in complaints(cluster(), *steps)] == [text]


def test_a_stale_plan_is_refused() -> None:
    verdict = verify(cluster(), a_plan(base_version=3))
    assert isinstance(verdict, Refusal)
    assert verdict.violations[0].constraint == "fresh"
    assert "observe again" in verdict.violations[0].detail


def test_all_faults_are_listed_and_what_follows_from_a_fault_is_not() -> None:
    found = complaints(
        cluster(),
        a_step("a", move("v1", "h2", "h3"), 0, 10),
        a_step("b", EnterMaintenance(host=H1), 10, 20, "a"),
        a_step("c", move("v2", "h2", "h2"), 0, 10),
    )
    assert found == [
        ("vm_life", 0, "v1 is on h1, not on h2"),
        ("vm_life", 0, "v2 is already on h2"),
    ]


APART = RuleId("apart")


def test_a_discrete_rule_is_judged_at_the_end_only() -> None:
    rule = KeepApart(id=APART, vms=(V1, V2))
    visit = [
        a_step("a", move("v1", "h1", "h2"), 0, 10),
        a_step("b", move("v1", "h2", "h3"), 10, 20),
    ]
    assert complaints(cluster(rule), *visit) == []
    assert complaints(cluster(rule), visit[0]) == [("rule apart", 10, TOGETHER_ON_H2)]


def test_a_continuous_rule_is_judged_at_every_moment_and_the_millisecond_is_told() -> None:
    rule = KeepApart(id=APART, vms=(V1, V2), continuous=True)
    assert complaints(
        cluster(rule),
        a_step("a", move("v1", "h1", "h2"), 0, 1234),
        a_step("b", move("v1", "h2", "h3"), 2000, 3000),
    ) == [("rule apart", 1234, TOGETHER_ON_H2)]


def test_a_migrating_vm_runs_on_its_source_until_the_end() -> None:
    off = StayOff(id=RuleId("r"), vms=(V1,), hosts=(H2,), continuous=True)
    assert complaints(cluster(off), a_step("a", move("v1", "h1", "h2"), 5, 1000)) == [
        ("rule r", 1000, RUNS_ON_H2)
    ]


def test_a_plan_that_only_works_to_the_millisecond_is_not_feasible() -> None:
    rule = KeepApart(id=APART, vms=(V1, V2), continuous=True)
    swap = [
        a_step("a", move("v1", "h1", "h2"), 0, 1000),
        a_step("b", move("v2", "h2", "h1"), 0, 1000),
    ]
    assert complaints(cluster(rule), *swap) == [
        ("feasible, rule apart", 0, f"it may come to this: {ON_ONE_HOST.format('h2')}"),
        ("feasible, rule apart", 0, f"it may come to this: {ON_ONE_HOST.format('h1')}"),
    ]


def test_a_continuous_rule_broken_at_the_start_makes_every_plan_unacceptable() -> None:
    together = KeepTogether(id=RuleId("r"), vms=(V1, V2), continuous=True)
    text = (
        "VM-VM affinity: the VMs that run, run on one host; not so: host(v1) = host(v2), "
        "with host(v1) = h1, host(v2) = h2"
    )
    assert complaints(cluster(together)) == [("rule r", 0, text)]


def test_an_old_fault_that_the_plan_does_not_touch_is_not_its_fault() -> None:
    off = StayOff(id=RuleId("r"), vms=(V1,), hosts=(H1,))
    assert complaints(cluster(off), a_step("a", move("v2", "h2", "h3"))) == []
    both = StayWithin(id=RuleId("r"), vms=(V1,), hosts=(H2,))
    assert complaints(cluster(both), a_step("a", move("v1", "h1", "h3"))) == [
        ("rule r", 1000, RUNS_ON_H3)
    ]


def test_soft_rules_do_not_bind_the_gate() -> None:
    rule = KeepApart(id=APART, vms=(V1, V2), hard=False, continuous=True)
    assert complaints(cluster(rule), a_step("a", move("v1", "h1", "h2"))) == []


def test_judges_see_every_moment_and_can_refuse() -> None:
    seen: list[tuple[Phase, int, tuple[VmId, ...]]] = []

    def judge(moment: Moment) -> Iterable[Violation]:
        seen.append((moment.phase, moment.at_ms, moment.touched.vms))
        if moment.state.vms[V1].host == H2:
            yield Violation(constraint="no", at_ms=moment.at_ms, detail="v1 on h2")

    verdict = verify(cluster(), a_plan(a_step("a", move("v1", "h1", "h2"), 5, 10)), [judge])
    assert seen == [
        (Phase.INITIAL, 0, ()),
        (Phase.ENDS, 5, ()),
        (Phase.STARTS, 5, (V1,)),
        (Phase.ENDS, 10, (V1,)),
        (Phase.STARTS, 10, ()),
        (Phase.FINAL, 10, (V1,)),
    ]
    assert isinstance(verdict, Refusal)
    assert {one.at_ms for one in verdict.violations} == {10}


def test_nobody_else_can_make_a_verified_plan() -> None:
    with pytest.raises(TypeError, match=r"only equipoise\.plan\.verify"):
        VerifiedPlan(a_plan(), {}, seal=object())
