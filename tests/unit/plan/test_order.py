from __future__ import annotations

from builders import a_cluster, a_host, a_vm
from equipoise.model.action import Action, Migrate, PowerOff
from equipoise.model.plan import ConcurrencyLimits, Intent, Plan
from equipoise.model.quantity import HostId, PlanId, RuleId, StepId, VmId
from equipoise.model.rule import Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings
from equipoise.plan import Refusal, VerifiedPlan, order, verify
from equipoise.plan.preconditions import prerequisites


def want(name: str, action: Action, duration_ms: int = 1000, *after: str) -> Intent:
    return Intent(
        id=StepId(name),
        action=action,
        duration_ms=duration_ms,
        after=tuple(StepId(step) for step in after),
    )


def move(vm: str, source: str, target: str) -> Migrate:
    return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))


def three_big(**settings: object) -> Snapshot:
    hosts = [a_host(f"h{n}") for n in (1, 2, 3)]
    return a_cluster(
        *hosts,
        vms=[
            a_vm("v1", "h1", cpu=CpuSettings(reservation_mhz=3000)),
            a_vm("v2", "h2", cpu=CpuSettings(reservation_mhz=3000)),
        ],
        **settings,
    )


def times(plan: Plan | Refusal) -> dict[str, tuple[int, int]]:
    assert isinstance(plan, Plan)
    return {step.id: (step.start_ms, step.end_ms) for step in plan.steps}


def test_a_move_waits_for_the_capacity_that_another_frees() -> None:
    snapshot = three_big()
    plan = order(
        snapshot,
        [want("a", move("v1", "h1", "h2")), want("b", move("v2", "h2", "h3"))],
        PlanId("p"),
    )
    assert times(plan) == {"b": (0, 1000), "a": (1000, 2000)}
    assert isinstance(plan, Plan)
    assert isinstance(verify(snapshot, plan), VerifiedPlan)
    assert prerequisites(plan.steps, snapshot.placement)[StepId("a")] == ("b",)


def test_a_written_prerequisite_is_kept() -> None:
    plan = order(
        three_big(),
        [
            want("off", PowerOff(host=HostId("h1")), 500, "a"),
            want("a", move("v1", "h1", "h3"), 700),
        ],
        PlanId("p"),
    )
    assert times(plan) == {"a": (0, 700), "off": (700, 1200)}


def test_a_swap_without_capacity_is_refused() -> None:
    swap = [want("a", move("v1", "h1", "h2")), want("b", move("v2", "h2", "h1"))]
    refusal = order(three_big(), swap, PlanId("p"))
    assert isinstance(refusal, Refusal)
    assert [
        (violation.step, violation.constraint, violation.code) for violation in refusal.violations
    ] == [
        ("a", "capacity", "no-capacity"),
        ("b", "capacity", "no-capacity"),
    ]


def test_concurrency_limits_are_kept() -> None:
    hosts = [a_host(f"h{n}") for n in range(4)]
    vms = [a_vm(f"v{n}", "h0") for n in range(4)]
    wanted = [want(f"s{n}", move(f"v{n}", "h0", f"h{n % 3 + 1}")) for n in range(4)]
    for limits in (ConcurrencyLimits(actions_per_host=2), ConcurrencyLimits(actions_total=2)):
        plan = order(a_cluster(*hosts, vms=vms, limits=limits), wanted, PlanId("p"))
        assert sorted(times(plan).values()) == [(0, 1000), (0, 1000), (1000, 2000), (1000, 2000)]


def test_two_intents_of_one_id_are_refused() -> None:
    wanted = [want("a", move("v1", "h1", "h3")), want("a", move("v2", "h2", "h3"))]
    refusal = order(three_big(), wanted, PlanId("p"))
    assert isinstance(refusal, Refusal)
    assert [(violation.step, violation.code) for violation in refusal.violations] == [
        ("a", "duplicate-step")
    ]


def test_a_cycle_of_prerequisites_is_refused() -> None:
    refusal = order(
        three_big(),
        [
            want("a", move("v1", "h1", "h3"), 1000, "b"),
            want("b", PowerOff(host=HostId("h1")), 1000, "a"),
        ],
        PlanId("p"),
    )
    assert isinstance(refusal, Refusal)
    assert [(violation.step, violation.code) for violation in refusal.violations] == [
        ("a", "prerequisite-missing"),
        ("b", "prerequisite-missing"),
    ]


def test_steps_that_wait_for_fewer_open_actions_start_later() -> None:
    """Each move changes a rule over all hosts, so not all of them may overlap."""
    rule = Satisfy(
        id=RuleId("r"),
        constraint="MaxSkew",
        arguments={"vs": tuple(f"v{n}" for n in range(20)), "nb": 20},
        continuous=True,
    )
    hosts = [a_host(f"h{n}", cores=32) for n in range(40)]
    vms = [a_vm(f"v{n}", f"h{n}") for n in range(20)]
    cluster = a_cluster(*hosts, vms=vms, rules=(rule,))
    wanted = [want(f"s{n}", move(f"v{n}", f"h{n}", f"h{n + 20}")) for n in range(20)]
    assert len(times(order(cluster, wanted, PlanId("p")))) == 20
