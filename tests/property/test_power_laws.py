"""What holds of every power advice: it passes the gate, keeps what it must, and comes to rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from equipoise.balance.run_pass import run_balance_pass
from equipoise.model.action import PowerOff, PowerOn
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState
from equipoise.model.plan import Plan, Proposal
from equipoise.model.policy.balance import Automation
from equipoise.model.policy.power import PowerAutomation, PowerOverride, PowerPolicy, PowerWindow
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import Rule, Satisfy
from equipoise.model.state.snapshot import DemandSample, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm, VmState
from equipoise.plan import VerifiedPlan, verify
from equipoise.power import PowerDecider
from equipoise.power.advice import PowerAdvice, PowerCode
from equipoise.power.propose import run_power_pass
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
    return run_power_pass(state, ESTIMATES)


def ruled(state: Snapshot, policy: PowerPolicy) -> Snapshot:
    return replace(state, settings=state.settings.but(power=policy))


def policy_of(state: Snapshot) -> PowerPolicy:
    return state.settings.power


def done(state: Snapshot) -> Snapshot:
    """The cluster after the actions of both deciders; the gate must agree."""
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
def test_proposals_pass_the_gate_and_keep_the_rules(state: Snapshot) -> None:
    found = advised(state)
    event(f"sleeps {len(found.standbys)}, wakes {len(found.wakes)}")
    after = done(state)
    hard = [rule.id for rule in state.settings.rules if rule.hard]
    broken = {rule for rule, _ in broken_rules(state, hard)}
    assert {rule for rule, _ in broken_rules(after, hard)} <= broken
    before, least = len(hosts_on(state)), policy_of(state).hosts_on_min
    requested = sum(host.requested is not None for host in state.hosts.values())
    assert len(hosts_on(after)) >= min(before, least) - requested
    for host in after.hosts.values():
        if host.state is HostState.STANDBY and state.hosts[host.id].state is HostState.ON:
            assert not guests_of(after, host.id)


@given(clusters(words=False), st.integers(1, 2), st.sampled_from(["cpu", "memory"]))
def test_the_failover_reserve_holds_after_a_proposal(state: Snapshot, nb: int, kind: str) -> None:
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
def test_every_host_is_switched_or_skipped_exactly_once(state: Snapshot) -> None:
    found = advised(state)
    said = Counter(entry.host for entry in found.skipped)
    said += Counter(standby.host for standby in found.standbys)
    said += Counter(wake.host for wake in found.wakes)
    for host in state.hosts.values():
        idle = host.state in (HostState.FAILED, HostState.MAINTENANCE)
        assert said[host.id] == (0 if idle else 1), (host.id, found)
    assert all(entry.sentence for entry in found.skipped)
    assert all(standby.reason for standby in found.standbys)
    assert all(wake.reason for wake in found.wakes)
    assert found.summary


# The brakes


@given(clusters())
def test_the_limits_of_the_policy_hold(state: Snapshot) -> None:
    found, policy = advised(state), policy_of(state)
    sleeping = {standby.host for standby in found.standbys}
    waking = {wake.host for wake in found.wakes}
    assert not (sleeping and waking)
    within_cap = not is_over_cap(state)  # otherwise the cap overrides the other limits
    if policy.threshold == 1 and within_cap:
        assert not sleeping
    for host, switch in state.switches.items():
        if switch.on and not switch.failed and sleeping and within_cap:
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


@given(clusters(), st.sampled_from([Automation.MANUAL, Automation.PARTIAL]))
def test_no_host_of_a_recommended_move_goes_into_standby(
    state: Snapshot, automation: Automation
) -> None:
    by_hand = state.settings.balance.but(automation=automation)
    state = replace(state, settings=state.settings.but(balance=by_hand))
    moves = run_balance_pass(state, ESTIMATES).advice.moves
    hosts = {host for move in moves for host in (move.source, move.target)}
    advice = advised(state)
    event(f"moves: {bool(moves)}, standbys: {bool(advice.standbys)}")
    assert hosts.isdisjoint(standby.host for standby in advice.standbys)


@given(clusters())
def test_manual_hosts_are_only_recommended(state: Snapshot) -> None:
    policy = policy_of(state)
    proposal = PowerDecider(ESTIMATES).propose(state)
    for intent in proposal.intents:
        if isinstance(intent.action, PowerOn | PowerOff):
            assert policy.hosts.get(intent.action.host) is not PowerOverride.MANUAL
    manual = ruled(state, policy.but(automation=PowerAutomation.MANUAL))
    proposal = PowerDecider(ESTIMATES).propose(manual)
    for intent in proposal.intents:
        if isinstance(intent.action, PowerOn | PowerOff):
            assert policy.hosts.get(intent.action.host) is PowerOverride.FULL
    made = {item.id for item in proposal.intents}
    assert all(made.issuperset(item.after) for item in proposal.intents)
    assert made.isdisjoint(item.id for item in proposal.advised)


def woken(state: Snapshot, names: set[HostId]) -> Snapshot:
    """The cluster with some hosts switched on, and their agents running."""
    hosts = {name: state.hosts[name].but(state=HostState.ON) for name in names}
    agents = {
        vm.id: vm.but(state=VmState.RUNNING)
        for vm in state.vms.values()
        if vm.agent and vm.host in names
    }
    return replace(
        state,
        hosts=FrozenMap({**state.hosts, **hosts}),
        vms=FrozenMap({**state.vms, **agents}),
    )


@given(clusters(), st.sampled_from(list(PowerAutomation)))
def test_a_window_holds_while_it_lasts(state: Snapshot, automation: PowerAutomation) -> None:
    assert NOW_MS == 3 * 3_600_000
    held = PowerWindow(start="02:00", end="04:00", automation=automation)
    over = PowerWindow(start="04:00", end="03:00", automation=automation)
    policy = policy_of(state)
    inside = PowerDecider(ESTIMATES).propose(ruled(state, policy.but(windows=(held,))))
    alone = PowerDecider(ESTIMATES).propose(ruled(state, policy.but(automation=automation)))
    assert inside == alone
    outside = PowerDecider(ESTIMATES).propose(ruled(state, policy.but(windows=(over,))))
    assert outside == PowerDecider(ESTIMATES).propose(state)
    if automation is PowerAutomation.OFF:
        assert not switched(inside)["off"]
        advice = advised(ruled(state, policy.but(windows=(held,))))
        left = {wake.host for wake in advice.wakes}
        rules = [rule.id for rule in state.settings.rules]
        # What is broken at every moment lets nothing pass, and agents that wake with their host may
        # break a rule.
        left |= {
            entry.host
            for entry in advice.skipped
            if entry.code is PowerCode.GATE
            and (
                any(broken_rules(state, rules))
                or any(broken_rules(woken(state, {entry.host, *left}), rules))
            )
        }
        # A wake that failed a moment ago is not repeated yet.
        left |= {entry.host for entry in advice.skipped if entry.code is PowerCode.WAKE_FAILED}
        asleep = {host.id for host in state.hosts.values() if host.state is HostState.STANDBY}
        for host in asleep - left:
            assert policy.hosts.get(host) is PowerOverride.LEFT_ALONE or (
                state.hosts[host].requested or policy.cap_watts is not None
            )


@given(clusters())
def test_no_host_goes_into_standby_while_a_host_is_busy(state: Snapshot) -> None:
    found = advised(state)
    if is_over_cap(state):
        return
    if max(found.before.high) > 1e-9:
        assert not found.standbys
    if found.standbys:
        assert max(found.before.high) <= 1e-9 < min(found.before.low)
        assert max(found.after.high) <= 1e-9
        assert sum(found.after.low) < sum(found.before.low)
    if any(wake.code is PowerCode.WAKE_BUSY for wake in found.wakes):
        assert max(found.after.high) < max(found.before.high)


# Names, repetition, rest


@given(clusters())
def test_the_advice_is_deterministic_and_independent_of_names(state: Snapshot) -> None:
    found = advised(state)
    assert advised(state) == found
    other = renamed(state)
    again = advised(other)
    assert [standby.host[1:] for standby in again.standbys] == [
        standby.host for standby in found.standbys
    ]
    assert [wake.host[1:] for wake in again.wakes] == [wake.host for wake in found.wakes]
    skipped = [(entry.host[1:], entry.code) for entry in again.skipped]
    assert skipped == [(entry.host, entry.code) for entry in found.skipped]
    assert again.after == found.after
    for first, second in zip(found.standbys, again.standbys, strict=True):
        assert [(g.vm[1:], g.target[1:]) for g in second.evacuations] == [
            (g.vm, g.target) for g in first.evacuations
        ]


def renamed(state: Snapshot) -> Snapshot:
    """The same cluster with an x before every name."""

    def name(text: str) -> str:
        return f"x{text}"

    hosts = {HostId(name(key)): host.but(id=HostId(name(key))) for key, host in state.hosts.items()}

    def guest(vm: Vm) -> Vm:
        return vm.but(
            id=VmId(name(vm.id)),
            host=None if vm.host is None else HostId(name(vm.host)),
            ft_pair=None if vm.ft_pair is None else VmId(name(vm.ft_pair)),
        )

    vms = {VmId(name(key)): guest(vm) for key, vm in state.vms.items()}
    policy = policy_of(state)
    balance = state.settings.balance
    rules: list[Rule] = []
    for rule in state.settings.rules:
        if isinstance(rule, Satisfy):
            given_ = {
                key: tuple(name(str(item)) for item in value) if isinstance(value, tuple) else value
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
            DemandSample(
                sample.at_ms,
                FrozenMap({VmId(name(vm)): each for vm, each in sample.demand.items()}),
            )
            for sample in state.history
        ),
        settings=state.settings.but(
            rules=tuple(rules),
            power=policy.but(
                hosts={name(host): override for host, override in policy.hosts.items()}
            ),
            balance=balance.but(
                hosts={name(host): override for host, override in balance.hosts.items()}
            ),
        ),
    )


def switched_since(before: Snapshot, after: Snapshot) -> tuple[set[HostId], set[HostId]]:
    """Who has fallen asleep, and who has woken."""
    return hosts_on(before) - hosts_on(after), hosts_on(after) - hosts_on(before)


@FEWER
@given(clusters(past=False))
def test_under_constant_demand_no_host_is_switched_back(
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
