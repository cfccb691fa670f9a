"""Our deciders as targets: what they are shown, and what is held against them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.adapters.targets.scheduler import Scheduler, SchedulerEntry
from equipoise.control.ports import Decider
from equipoise.fuzz.campaign import CampaignLimits, FuzzCampaign
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.registry import find_scheduler
from equipoise.fuzz.schedulers.deciders import (
    BALANCE,
    POWER,
    DeciderScheduler,
    decider_snapshot,
    rule_of,
)
from equipoise.fuzz.trial import Trial, TrialOutcome, TrialVerdict, judge
from equipoise.model.action import Migrate
from equipoise.model.host import HostState, RequestedHostState
from equipoise.model.plan import Intent, Proposal, Purpose
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm
from equipoise.plan.verify import replay_violations
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Requirement

SIZE = {"memory_gib": 4, "cpu_ghz": 4}
HOSTS = [a_host(name, capacity=SIZE) for name in ("g", "h", "k")]


def taking(name: str, host: str, **more: Any) -> Vm:
    return a_vm(name, host, consumption={"memory_gib": 2, "cpu_ghz": 1}, **more)


VMS = [taking("a", "g"), taking("b", "h")]


def asked(name: str, *, continuous: bool = False, **about: Any) -> Trial:
    given = {
        key: frozenset(value) if isinstance(value, list) else value for key, value in about.items()
    }
    demand = Requirement(library_constraints()[name], name, given, continuous)
    return Trial(demand, a_cluster(*HOSTS, vms=VMS), ())


def refused_constraint(verdict: TrialVerdict) -> str:
    """The constraint at the end of the message of a crash."""
    return verdict.message.rpartition(": ")[2]


def wanting(vm: str, source: str, target: str) -> Callable[[], tuple[Decider]]:
    """A decider that wants one move, whatever the rules."""
    move = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))

    class Stubborn:
        def propose(self, snapshot: Snapshot) -> Proposal:
            intent = Intent(id=StepId("s"), action=move, duration_ms=1000)
            return Proposal(decider="mine", purpose=Purpose.BALANCE, intents=(intent,))

    return lambda: (Stubborn(),)


@pytest.mark.parametrize("known", [BALANCE, POWER], ids=lambda entry: entry.name)
def test_they_are_registered_and_make_plans_of_their_own(known: SchedulerEntry) -> None:
    assert find_scheduler(known.name) is known
    assert known.question == "plan"
    assert not known.missing()


def test_sizes_demands_and_requests_are_derived_from_drawn_resources() -> None:
    hosts = [
        a_host("g", capacity={"memory_gib": 6, "cpu_ghz": 3}, labels={"request": "maintenance"}),
        a_host("h", capacity=SIZE, state=HostState.STANDBY, labels={"request": "standby"}),
        a_host("k", capacity=SIZE, labels={"request": "none"}),
    ]
    vms = [taking("a", "g", labels={"demand_mhz": "2000"}), a_vm("b", "k")]
    demand = asked("KeepApart", vs=["a", "b"]).demand
    shown = decider_snapshot(Trial(demand, a_cluster(*hosts, vms=vms), ()))
    g, h, k = shown.hosts.values()
    assert (g.memory_mib, g.cpu_mhz) == (6144, 3000)
    assert [host.requested for host in (g, h, k)] == [RequestedHostState.MAINTENANCE, None, None]
    a, b = shown.vms.values()
    assert (a.memory.reservation_mib, a.cpu.reservation_mhz, a.demand.cpu_mhz) == (2048, 1000, 2000)
    assert (b.memory.reservation_mib, b.cpu.reservation_mhz, b.demand.cpu_mhz) == (0, 0, 0)
    assert shown.settings.rules == (rule_of(asked("KeepApart", vs=["a", "b"])),)


@pytest.mark.parametrize(
    ("trial", "kind"),
    [
        (asked("KeepApart", vs=["a", "b"]), KeepApart),
        (asked("KeepTogether", vs=["a", "b"], continuous=True), KeepTogether),
        (asked("MustRunOn", vs=["a"], ns=["g"]), StayWithin),
        (asked("MustNotRunOn", vs=["a"], ns=["h"]), StayOff),
        (asked("KeepApart", vs=["a"]), Satisfy),  # as a rule of its own it would be refused
        (asked("MustRunOn", vs=["a"], ns=[]), Satisfy),
        (asked("Lonely", vs=["a"]), Satisfy),
    ],
)
def test_a_constraint_is_the_rule_that_an_operator_would_write(trial: Trial, kind: Any) -> None:
    rule = rule_of(trial)
    assert isinstance(rule, kind)
    assert rule.hard
    assert rule.continuous == trial.demand.continuous


def test_a_fit_by_sizes_is_a_fit_by_resources() -> None:
    """Deciders read sizes, the judge reads resources: both must agree."""
    home, roomy = library_constraints()["Spread"], 0
    for trial in Generator(home, "Spread", BALANCE.options, seed=3).block(range(60)).trials:
        shown = decider_snapshot(trial)
        for vm in [vm for vm in trial.initial.vms.values() if vm.host is not None][:2]:
            for host in trial.initial.hosts:
                move = Migrate(vm=vm.id, source=HostId(str(vm.host)), target=host)
                plan = a_plan(a_step("s", move, 0, 1000))
                if not replay_violations(shown, plan, ()):
                    roomy += 1
                    assert not replay_violations(trial.initial, plan, ())
    assert roomy > 50


def test_a_proposal_that_the_gate_refuses_is_a_decider_that_has_broken() -> None:
    apart = asked("KeepApart", vs=["a", "b"])
    found = judge(DeciderScheduler(wanting("a", "g", "h")), apart)
    assert found.outcome is TrialOutcome.CRASH
    assert (found.code, refused_constraint(found)) == ("scheduler-crashed", "rule trial")
    found = judge(DeciderScheduler(wanting("a", "h", "k")), apart)
    assert (found.code, refused_constraint(found)) == ("scheduler-crashed", "vm_life")


def test_without_the_gate_its_plan_is_judged_by_the_specification() -> None:
    apart = asked("KeepApart", vs=["a", "b"])
    found = judge(DeciderScheduler(wanting("a", "g", "h"), gate="off"), apart)
    assert (found.outcome, found.harm) == (TrialOutcome.UNDER, "introduced")
    assert (
        judge(DeciderScheduler(wanting("a", "g", "k"), gate="off"), apart).outcome
        is TrialOutcome.AGREE
    )


def test_a_decider_may_leave_an_initial_violation() -> None:
    together = asked("KeepTogether", vs=["a", "b"])
    assert judge(DeciderScheduler(lambda: ()), together).outcome is TrialOutcome.UNSUPPORTED
    assert judge(BALANCE.make(gate="on"), together).outcome is TrialOutcome.AGREE
    always = asked("KeepTogether", vs=["a", "b"], continuous=True)
    assert judge(BALANCE.make(gate="on"), always).outcome is TrialOutcome.UNSUPPORTED


def test_a_plan_is_not_taken() -> None:
    trial = asked("KeepApart", vs=["a", "b"])
    move = Migrate(vm=VmId("a"), source=HostId("g"), target=HostId("k"))
    given = Trial(trial.demand, trial.initial, (a_step("s", move, 0, 1000),))
    assert judge(DeciderScheduler(lambda: ()), given).outcome is TrialOutcome.UNSUPPORTED


@pytest.mark.parametrize(
    "scheduler",
    [
        BALANCE.make(gate="off"),
        POWER.make(beside="balance", gate="on"),
        POWER.make(beside="none", gate="off"),
    ],
    ids=["balance", "power beside balance", "power"],
)
def test_a_campaign_finds_nothing_and_much_is_done(scheduler: Scheduler) -> None:
    names = ("KeepApart", "Fence", "Gather", "Failover", "MinOnline", "Lonely", "MaxConcurrent")
    limits = CampaignLimits(tests=210)
    report = FuzzCampaign("ours", scheduler, names, BALANCE.options, 7, limits).run()
    assert report.findings == []
    assert report.outcomes[TrialOutcome.AGREE] > 110


def test_labels_of_older_versions_are_still_read() -> None:
    hosts = [a_host("g", capacity=SIZE, labels={"wish": "maintenance"})]
    vms = [taking("a", "g", labels={"asks_mhz": "2000"})]
    demand = asked("Lonely", vs=["a"]).demand
    state = decider_snapshot(Trial(demand, a_cluster(*hosts, vms=vms), ()))
    assert state.hosts[HostId("g")].requested is RequestedHostState.MAINTENANCE
    assert state.vms[VmId("a")].demand.cpu_mhz == 2000
