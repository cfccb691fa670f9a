"""What a review of power decisions found: each once wrong, and the smallest case of it."""

from __future__ import annotations

from math import isfinite

from builders import a_cluster, a_step
from equipoise.control import Loop
from equipoise.control.arbitrate import arbitrate
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.estimate import Estimates
from equipoise.model.event import ActionStarted
from equipoise.model.host import Host, HostWish, PowerFigures
from equipoise.model.plan import Intent, Proposal, Purpose
from equipoise.model.policy import PowerOverride
from equipoise.model.quantity import HostId, PlanId, RuleId, StepId, VmId
from equipoise.model.rule import KeepTogether, StayWithin
from equipoise.model.snapshot import Snapshot
from equipoise.power import Power
from equipoise.power.advice import Code, PowerAdvice
from equipoise.power.advise import advise_power
from equipoise.power.reconsider import to_be_woken, too_busy
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld, Script
from power_worlds import EAGER, KNOWN, known, wants

ESTIMATES = Estimates()
H0, H1, H2, V0, V1 = HostId("h0"), HostId("h1"), HostId("h2"), VmId("v0"), VmId("v1")


def advised(state: Snapshot) -> PowerAdvice:
    return advise_power(state, ESTIMATES)


def busy(*hosts: Host, **policy: object) -> Snapshot:
    """Four VMs that need all of h0."""
    vms = [wants(f"v{n}", "h0", 1000) for n in range(4)]
    return a_cluster(known("h0"), *hosts, vms=vms, power=EAGER.but(**policy))


def test_a_target_that_has_left_does_not_end_the_loop() -> None:
    state = a_cluster(known("h0"), known("h1"), vms=[wants("v0", "h0", 0)], power=EAGER)
    gone = Migrate(vm=V0, source=H0, target=HostId("gone"))
    left = a_step("m", gone), a_step("s", PowerOff(host=H0), 1000, 2000, "m")
    assert too_busy(state, ESTIMATES, left) == ""


def test_a_wake_that_fails_at_once_is_not_tried_for_ever() -> None:
    state = busy(known("h1", asleep=True))
    names = [StepId(f"plan-{n}/power/switch-h1") for n in range(1000)]
    script = Script(durations_ms=dict.fromkeys(names, 0), failures=dict.fromkeys(names, 9))
    journal = MemoryJournal()
    loop = Loop(MemoryWorld(state, script), journal, deciders=[Power(ESTIMATES)])
    loop.run(until_ms=3_600_000)
    starts = [one.at_ms for one in journal.events() if isinstance(one, ActionStarted)]
    assert 2 <= len(starts) <= 13, "every five minutes at the most"


def test_for_a_rule_only_those_are_woken_that_it_needs() -> None:
    rule = StayWithin(id=RuleId("licence"), vms=(V0,), hosts=(H1,))
    large = [known(f"x{n}", asleep=True, cores=8) for n in range(3)]
    hosts = known("h0"), known("h1", asleep=True), *large
    found = advised(a_cluster(*hosts, vms=[wants("v0", "h0", 0)], rules=(rule,), power=EAGER))
    assert [one.host for one in found.wakes] == ["h1"]
    assert [(one.vm, one.target) for one in found.moves] == [("v0", "h1")]


def test_for_rules_too_the_cap_holds_for_all_who_are_woken_together() -> None:
    rules = (
        StayWithin(id=RuleId("r1"), vms=(V0,), hosts=(H1,)),
        StayWithin(id=RuleId("r2"), vms=(V1,), hosts=(H2,)),
    )
    hosts = known("h0"), known("h1", asleep=True), known("h2", asleep=True)
    vms = [wants("v0", "h0", 0), wants("v1", "h0", 0)]
    policy = EAGER.but(cap_watts=2 * KNOWN.most_watts + KNOWN.standby_watts)
    found = advised(a_cluster(*hosts, vms=vms, rules=rules, power=policy))
    assert len(found.wakes) == 1


def test_what_waits_to_be_approved_is_not_what_lets_others_pass() -> None:
    """Two that must stay together: one host is emptied without asking, the other is not."""
    rule = KeepTogether(id=RuleId("kt"), vms=(V0, V1))
    policy = EAGER.but(
        hosts={"h0": PowerOverride.MANUAL, "h2": PowerOverride.STAYS_ON}, hosts_on_min=1
    )
    state = a_cluster(
        known("h0"),
        known("h1"),
        known("h2"),
        vms=[wants("v0", "h0", 0), wants("v1", "h1", 0)],
        rules=(rule,),
        power=policy,
    )
    found = Power(ESTIMATES, balanced=False).propose(state)
    assert not found.intents


def test_a_host_that_has_to_be_asked_for_stands_in_nobodys_way() -> None:
    manual = {"h1": PowerOverride.MANUAL}
    larger = known("h1", asleep=True, cores=8)
    found = advised(busy(larger, known("h2", asleep=True), hosts=manual))
    assert [(one.host, one.automatic) for one in found.wakes][:1] == [("h2", True)]
    hosts = [known(f"h{n}") for n in range(3)]
    policy = EAGER.but(hosts={"h0": PowerOverride.MANUAL}, hosts_on_min=2)
    asleep = advised(a_cluster(*hosts, power=policy)).sleeps
    assert [(one.host, one.automatic) for one in asleep] == [("h1", True)]


def test_a_plan_that_is_about_to_wake_hosts_is_not_broken_off_for_that() -> None:
    state = busy(known("h1", asleep=True))
    left = (a_step("w", PowerOn(host=H1)),)
    assert to_be_woken(state, ESTIMATES, left, 0) == ""
    assert to_be_woken(state, ESTIMATES, (), 0)


def test_what_an_operator_or_a_cap_wants_is_not_broken_off_because_somebody_is_busy() -> None:
    left = (a_step("s", PowerOff(host=H1)),)
    assert too_busy(busy(known("h1")), ESTIMATES, left)
    assert not too_busy(busy(known("h1", requested=HostWish.STANDBY)), ESTIMATES, left)
    assert not too_busy(busy(known("h1"), cap_watts=1), ESTIMATES, left)


def test_what_an_empty_host_is_worth_is_a_number_for_every_machine() -> None:
    found = advised(a_cluster(known("h0"), known("h1"), power=EAGER.but(hosts_on_min=1)))
    (sleep,) = found.sleeps
    assert all(map(isfinite, sleep.gain.values()))


def test_a_host_that_saves_nothing_stays_on() -> None:
    waste = PowerFigures(idle_watts=100, peak_watts=200, standby_watts=100)
    state = a_cluster(known("h0", power=waste), known("h1", power=waste), power=EAGER)
    found = advised(state)
    assert {one.code for one in found.told} == {Code.NO_FIGURES}


def test_nobody_leaves_a_host_that_the_arbiter_keeps_on() -> None:
    move = Intent(
        id=StepId("move-v0"), action=Migrate(vm=V0, source=H0, target=H1), duration_ms=1000
    )
    off = Intent(id=StepId("off"), action=PowerOff(host=H0), duration_ms=1000, after=(move.id,))
    other = Intent(id=StepId("1"), action=Migrate(vm=V1, source=H1, target=H0), duration_ms=1000)
    found = arbitrate(
        [
            Proposal(decider="power", purpose=Purpose.SLEEP, intents=(move, off)),
            Proposal(decider="balance", purpose=Purpose.BALANCE, intents=(other,)),
        ],
        PlanId("p"),
    )
    assert [one.id for one in found.intents] == ["p/balance/1"]
    assert [one.code for one in found.dropped] == ["conflict", "useless"]
