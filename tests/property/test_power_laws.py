"""What holds of every power advice: it passes the gate, keeps what it must, and comes to rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from equipoise.model.action import PowerOff, PowerOn
from equipoise.model.estimate import Estimates
from equipoise.model.host import HostState
from equipoise.model.plan import Plan, Proposal
from equipoise.model.policy.power import (
    PowerAutomation,
    PowerOverride,
    PowerPolicy,
    PowerWindow,
)
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import Rule, Satisfy
from equipoise.model.snapshot import DemandFrame, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm
from equipoise.plan import VerifiedPlan, verify
from equipoise.power import Power
from equipoise.power.advice import Code, PowerAdvice
from equipoise.power.advise import advise_power
from equipoise.spec.rules import broken_rules
from power_worlds import (
    NOW_MS,
    applied,
    clusters,
    guests_of,
    hosts_on,
    is_over_cap,
    observed,
    planned,
    proposals,
)

ESTIMATES = Estimates()
FEWER = settings(max_examples=60)
PASSES = 20


def advised(state: Snapshot) -> PowerAdvice:
    return advise_power(state, ESTIMATES)


def ruled(state: Snapshot, policy: PowerPolicy) -> Snapshot:
    return replace(state, settings=state.settings.but(power=policy))


def policy_of(state: Snapshot) -> PowerPolicy:
    return state.settings.power


def done(state: Snapshot) -> Snapshot:
    """The cluster once what both deciders propose has been carried out; the gate must agree."""
    some = proposals(state)
    plan = planned(state, some)
    if plan is None:
        return state
    assert isinstance(plan, Plan), plan
    verdict = verify(state, plan)
    assert isinstance(verdict, VerifiedPlan), verdict
    return applied(state, plan)


def switched(proposal: Proposal) -> dict[str, list[HostId]]:
    found: dict[str, list[HostId]] = {"on": [], "off": []}
    for intent in (*proposal.intents, *proposal.advised):
        if isinstance(intent.action, PowerOn):
            found["on"].append(intent.action.host)
        if isinstance(intent.action, PowerOff):
            found["off"].append(intent.action.host)
    return found


# The gate, and what is true afterwards


@given(clusters())
def test_all_that_is_proposed_passes_the_gate_and_keeps_what_must_be_kept(state: Snapshot) -> None:
    found = advised(state)
    event(f"sleeps {len(found.sleeps)}, wakes {len(found.wakes)}")
    after = done(state)
    hard = [rule.id for rule in state.settings.rules if rule.hard]
    broken = {rule for rule, _ in broken_rules(state, hard)}
    assert {rule for rule, _ in broken_rules(after, hard)} <= broken
    before, least = len(hosts_on(state)), policy_of(state).hosts_on_min
    wished = sum(host.requested is not None for host in state.hosts.values())
    assert len(hosts_on(after)) >= min(before, least) - wished
    for host in after.hosts.values():
        if host.state is HostState.STANDBY and state.hosts[host.id].state is HostState.ON:
            assert not guests_of(after, host.id)


@given(clusters(words=False), st.integers(1, 2), st.sampled_from(["cpu", "memory"]))
def test_what_may_be_lost_can_start_again_afterwards(state: Snapshot, nb: int, kind: str) -> None:
    rule = Satisfy(
        id=RuleId("spare"),
        constraint="Failover",
        arguments={"nb": nb, "id": kind},
        continuous=False,
        hard=True,
    )
    state = replace(state, settings=state.settings.but(rules=(*state.settings.rules, rule)))
    assume(not list(broken_rules(state, [rule.id])))
    after = done(state)
    event(f"slept: {len(hosts_on(state) - hosts_on(after))}")
    assert not list(broken_rules(after, [rule.id]))


@given(clusters())
def test_every_host_is_switched_or_told_why_not_exactly_once(state: Snapshot) -> None:
    found = advised(state)
    said = Counter(one.host for one in found.told)
    said += Counter(one.host for one in found.sleeps)
    said += Counter(one.host for one in found.wakes)
    for host in state.hosts.values():
        idle = host.state in (HostState.FAILED, HostState.MAINTENANCE)
        assert said[host.id] == (0 if idle else 1), (host.id, found)
    assert all(one.sentence for one in found.told)
    assert all(one.reason for one in found.sleeps)
    assert all(one.reason for one in found.wakes)
    assert found.summary


# The brakes


@given(clusters())
def test_the_brakes_hold(state: Snapshot) -> None:
    found, policy = advised(state), policy_of(state)
    sleeping = {one.host for one in found.sleeps}
    waking = {one.host for one in found.wakes}
    assert not (sleeping and waking)
    wished = not is_over_cap(state)  # otherwise hosts sleep whatever else is wanted
    if policy.threshold == 1 and wished:
        assert not sleeping
    for host, switch in state.switches.items():
        if switch.on and not switch.failed and sleeping and wished:
            assert state.at_ms - switch.ended_ms >= 1000 * policy.cooldown_s
        vouched = policy.hosts.get(host) is PowerOverride.FULL
        if switch.on and switch.failed and not vouched:
            assert host not in sleeping
    for host, override in policy.hosts.items():
        if override is PowerOverride.STAYS_ON:
            assert host not in sleeping
        if override is PowerOverride.LEFT_ALONE:
            assert host not in sleeping | waking
    asleep = [host for host in sleeping if not state.hosts[host].power.known]
    assert not asleep


@given(clusters())
def test_who_is_manual_is_only_advised(state: Snapshot) -> None:
    policy = policy_of(state)
    proposal = Power(ESTIMATES).propose(state)
    for intent in proposal.intents:
        if isinstance(intent.action, PowerOn | PowerOff):
            assert policy.hosts.get(intent.action.host) is not PowerOverride.MANUAL
    manual = ruled(state, policy.but(automation=PowerAutomation.MANUAL))
    proposal = Power(ESTIMATES).propose(manual)
    for intent in proposal.intents:
        if isinstance(intent.action, PowerOn | PowerOff):
            assert policy.hosts.get(intent.action.host) is PowerOverride.FULL
    made = {one.id for one in proposal.intents}
    assert all(made.issuperset(one.after) for one in proposal.intents)
    assert made.isdisjoint(one.id for one in proposal.advised)


@given(clusters(), st.sampled_from(list(PowerAutomation)))
def test_a_window_holds_while_it_lasts(state: Snapshot, automation: PowerAutomation) -> None:
    assert NOW_MS == 3 * 3_600_000
    held = PowerWindow(start="02:00", end="04:00", automation=automation)
    over = PowerWindow(start="04:00", end="03:00", automation=automation)
    policy = policy_of(state)
    inside = Power(ESTIMATES).propose(ruled(state, policy.but(windows=(held,))))
    alone = Power(ESTIMATES).propose(ruled(state, policy.but(automation=automation)))
    assert inside == alone
    outside = Power(ESTIMATES).propose(ruled(state, policy.but(windows=(over,))))
    assert outside == Power(ESTIMATES).propose(state)
    if automation is PowerAutomation.OFF:
        assert not switched(inside)["off"]
        advice = advised(ruled(state, policy.but(windows=(held,))))
        left = {one.host for one in advice.wakes}
        rules = [one.id for one in state.settings.rules]
        if any(broken_rules(state, rules)):  # and what is broken at every moment lets nothing pass
            left |= {one.host for one in advice.told if one.code is Code.GATE}
        asleep = {host.id for host in state.hosts.values() if host.state is HostState.STANDBY}
        for host in asleep - left:
            assert policy.hosts.get(host) is PowerOverride.LEFT_ALONE or (
                state.hosts[host].requested or policy.cap_watts is not None
            )


@given(clusters())
def test_nobody_sleeps_while_somebody_has_too_much_to_do(state: Snapshot) -> None:
    found = advised(state)
    if is_over_cap(state):
        return
    if max(found.before.high) > 1e-9:
        assert not found.sleeps
    if found.sleeps:
        assert max(found.before.high) <= 1e-9 < min(found.before.low)
        assert max(found.after.high) <= 1e-9
        assert sum(found.after.low) < sum(found.before.low)
    if any(one.code is Code.WAKE_BUSY for one in found.wakes):
        assert max(found.after.high) < max(found.before.high)


# Names, repetition, rest


@given(clusters())
def test_the_same_is_said_again_and_under_other_names(state: Snapshot) -> None:
    found = advised(state)
    assert advised(state) == found
    other = renamed(state)
    again = advised(other)
    assert [one.host[1:] for one in again.sleeps] == [one.host for one in found.sleeps]
    assert [one.host[1:] for one in again.wakes] == [one.host for one in found.wakes]
    told = [(one.host[1:], one.code) for one in again.told]
    assert told == [(one.host, one.code) for one in found.told]
    assert again.after == found.after
    for one, two in zip(found.sleeps, again.sleeps, strict=True):
        assert [(g.vm[1:], g.target[1:]) for g in two.going] == [
            (g.vm, g.target) for g in one.going
        ]


def renamed(state: Snapshot) -> Snapshot:
    """The same cluster with an x before every name."""

    def name(one: str) -> str:
        return f"x{one}"

    hosts = {HostId(name(one)): host.but(id=HostId(name(one))) for one, host in state.hosts.items()}

    def guest(vm: Vm) -> Vm:
        return vm.but(
            id=VmId(name(vm.id)),
            host=None if vm.host is None else HostId(name(vm.host)),
            ft_pair=None if vm.ft_pair is None else VmId(name(vm.ft_pair)),
        )

    vms = {VmId(name(one)): guest(vm) for one, vm in state.vms.items()}
    policy = policy_of(state)
    balance = state.settings.balance
    rules: list[Rule] = []
    for rule in state.settings.rules:
        if isinstance(rule, Satisfy):
            given_ = {
                key: tuple(name(str(one)) for one in value) if isinstance(value, tuple) else value
                for key, value in rule.arguments.items()
            }
            rules.append(rule.but(arguments=given_))
            continue
        fields = {"vms": tuple(name(vm) for vm in rule.vms)}
        if hasattr(rule, "hosts"):
            fields["hosts"] = tuple(name(host) for host in rule.hosts)
        rules.append(rule.but(**fields))
    return replace(
        state,
        hosts=FrozenMap(hosts),
        vms=FrozenMap(vms),
        switches=FrozenMap({HostId(name(h)): s for h, s in state.switches.items()}),
        history=tuple(
            DemandFrame(
                one.at_ms, FrozenMap({VmId(name(vm)): each for vm, each in one.demand.items()})
            )
            for one in state.history
        ),
        settings=state.settings.but(
            rules=tuple(rules),
            power=policy.but(hosts={name(host): one for host, one in policy.hosts.items()}),
            balance=balance.but(hosts={name(host): one for host, one in balance.hosts.items()}),
        ),
    )


def switched_since(before: Snapshot, after: Snapshot) -> tuple[set[HostId], set[HostId]]:
    """Who has fallen asleep, and who has woken."""
    return hosts_on(before) - hosts_on(after), hosts_on(after) - hosts_on(before)


@FEWER
@given(clusters(past=False))
def test_under_constant_demand_nobody_is_switched_back_and_all_comes_to_rest(
    state: Snapshot,
) -> None:
    state = ruled(state, policy_of(state).but(cooldown_s=0))
    state = observed(state, state.at_ms)
    slept, woken, quiet = set[HostId](), set[HostId](), 0
    for _ in range(PASSES):
        after = done(state)
        asleep, awake = switched_since(state, after)
        assert not awake & slept
        assert not asleep & woken
        slept |= asleep
        woken |= awake
        quiet = 0 if asleep or awake else quiet + 1
        if quiet == 3:
            break
        state = observed(after, after.at_ms + 300_000)
    event(f"slept {len(slept)}, woken {len(woken)}, both {len(slept & woken)}")
    assert quiet == 3
