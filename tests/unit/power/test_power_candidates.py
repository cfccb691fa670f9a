"""Standby and wake candidates: for each reason why a host is skipped, a case and its code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import a_cluster, a_step, a_vm, figures
from equipoise.model.action import Migrate
from equipoise.model.action_durations import Estimates
from equipoise.model.event import ActionStarted, RolesFound, SlotsFilled
from equipoise.model.host import PowerProfile, RequestedHostState
from equipoise.model.policy.balance import BalancePolicy, VmOverride
from equipoise.model.policy.power import PowerAutomation, PowerOverride, PowerPolicy
from equipoise.model.quantity import HostId, ProcessorId, RoleGroupId, RoleId, RuleId, SlotId, VmId
from equipoise.model.roles.layout import Role, RoleGroup, RoleLayout, RolePreference, Slot
from equipoise.model.rule import Satisfy, StayWithin
from equipoise.model.state import transition
from equipoise.model.state.snapshot import DemandSample, LastPowerChange, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import MemorySettings, Vm, VmState
from equipoise.power.advice import PowerAdvice, PowerCode, SkippedHost
from equipoise.power.propose import run_power_pass
from power_worlds import EAGER, known, wants

NOW_MS = 10_000_000
H0, H1 = HostId("h0"), HostId("h1")
STILL = BalancePolicy(rules_only=True)


def pair(policy: PowerPolicy = EAGER, *vms: Vm, **fields: Any) -> Snapshot:
    """Return two equal hosts that are on; the first would go into standby."""
    state = a_cluster(known("h0"), known("h1"), vms=vms, power=policy, balance=STILL, **fields)
    return replace(state, at_ms=NOW_MS)


def advised(state: Snapshot) -> PowerAdvice:
    return run_power_pass(state, Estimates())


def skipped(state: Snapshot, host: HostId = H0) -> SkippedHost:
    (found,) = [entry for entry in advised(state).skipped if entry.host == host]
    return found


def check(state: Snapshot, code: PowerCode, words: str, host: HostId = H0) -> None:
    found = skipped(state, host)
    assert found.code is code, found
    assert words in found.sentence


def switched(state: Snapshot, host: HostId, *, on: bool, failed: bool, ago_s: int) -> Snapshot:
    last = LastPowerChange(NOW_MS - 1000 * ago_s, on, failed)
    return replace(state, switches=FrozenMap({host: last}))


def test_without_limits_the_first_of_two_idle_hosts_goes_into_standby() -> None:
    found = advised(pair())
    assert [standby.host for standby in found.standbys] == ["h0"]
    assert found.standbys[0].gain["watts"] == 95
    check(pair(), PowerCode.MINIMUM, "1 host", H1)


@pytest.mark.parametrize(
    ("override", "code", "words"),
    [
        (PowerOverride.STAYS_ON, PowerCode.STAYS_ON, ""),
        (PowerOverride.LEFT_ALONE, PowerCode.LEFT_ALONE, ""),
    ],
)
def test_an_override_keeps_a_host_on(override: PowerOverride, code: PowerCode, words: str) -> None:
    state = pair(EAGER.but(hosts={"h0": override}))
    check(state, code, words)
    assert [standby.host for standby in advised(state).standbys] == ["h1"]


def test_a_host_with_a_requested_state_is_skipped() -> None:
    state = pair()
    changed = state.hosts[H0].but(requested=RequestedHostState.MAINTENANCE)
    state = replace(state, hosts=FrozenMap({**state.hosts, H0: changed}))
    check(state, PowerCode.REQUESTED, "maintenance")


def test_a_host_without_power_figures_stays_on() -> None:
    state = pair()
    unknown = state.hosts[H0].but(power=PowerProfile())
    state = replace(state, hosts=FrozenMap({**state.hosts, H0: unknown}))
    check(state, PowerCode.NO_FIGURES, "")


def test_a_host_whose_wake_failed_stays_on_unless_its_override_is_full() -> None:
    state = switched(pair(), H0, on=True, failed=True, ago_s=9000)
    check(state, PowerCode.WAKE_FAILED, "")
    full = pair(EAGER.but(hosts={"h0": PowerOverride.FULL}))
    vouched = switched(full, H0, on=True, failed=True, ago_s=9000)
    assert [standby.host for standby in advised(vouched).standbys] == ["h0"]


def test_a_host_whose_standby_failed_is_tried_again() -> None:
    state = switched(pair(), H0, on=False, failed=True, ago_s=10)
    assert [standby.host for standby in advised(state).standbys] == ["h0"]


@pytest.mark.parametrize("ago_s", [0, 1799, 1800])
def test_no_host_goes_into_standby_during_the_cooldown(ago_s: int) -> None:
    policy = EAGER.but(cooldown_s=1800)
    state = switched(pair(policy), H1, on=True, failed=False, ago_s=ago_s)
    if ago_s < 1800:
        check(state, PowerCode.COOLDOWN, f"{ago_s} s ago")
    else:
        assert advised(state).standbys


def test_a_failed_wake_starts_no_cooldown() -> None:
    state = switched(pair(EAGER.but(cooldown_s=1800)), H1, on=True, failed=True, ago_s=1)
    assert [standby.host for standby in advised(state).standbys] == ["h0"]


def test_threshold_one_forbids_standby() -> None:
    check(pair(EAGER.but(threshold=1)), PowerCode.THRESHOLD, "")


def test_a_policy_that_is_off_forbids_standby() -> None:
    check(pair(EAGER.but(automation=PowerAutomation.OFF)), PowerCode.POLICY_OFF, "")


@pytest.mark.parametrize("seen_s", [None, 599, 600])
def test_demand_is_observed_before_standby(seen_s: int | None) -> None:
    state = pair(EAGER.but(observe_s=600))
    if seen_s is not None:
        frame = DemandSample(NOW_MS - 1000 * seen_s, FrozenMap({}))
        state = replace(state, history=(frame,))
    if seen_s == 600:
        assert advised(state).standbys
    else:
        check(state, PowerCode.OBSERVING, f" {seen_s or 0} s of the required 600 s")


def test_a_host_of_a_running_action_stays_on() -> None:
    state = pair(EAGER, wants("v0", "h0", 100))
    step = a_step("m", Migrate(vm=VmId("v0"), source=H0, target=H1))
    state = transition.apply(state, ActionStarted(at_ms=NOW_MS, step=step, attempt=1))
    assert skipped(state).code is skipped(state, H1).code is PowerCode.IN_USE
    assert not advised(state).standbys


def test_a_sleeping_vm_keeps_its_host_on() -> None:
    state = pair(EAGER, a_vm("v0", "h0", state=VmState.SLEEPING))
    check(state, PowerCode.PINNED, "v0")


def test_a_pinned_vm_keeps_its_host_on() -> None:
    state = pair(EAGER, wants("v0", "h0", 100))
    never = STILL.but(vms={"v0": VmOverride.OFF})
    state = replace(state, settings=state.settings.but(balance=never))
    check(state, PowerCode.PINNED, "v0")


def test_an_agent_goes_into_standby_with_its_host() -> None:
    state = pair(EAGER, wants("v0", "h0", 100, agent=True))
    (sleep,) = advised(state).standbys
    assert (sleep.host, sleep.evacuations) == ("h0", ())


def test_a_host_whose_vms_fit_on_no_other_host_stays_on() -> None:
    state = pair(EAGER, wants("v0", "h0", 1700), wants("v1", "h1", 1700))
    check(state, PowerCode.NO_CAPACITY, "v0")


def test_a_host_whose_vms_are_allowed_on_no_other_host_stays_on() -> None:
    rule = StayWithin(id=RuleId("r"), vms=(VmId("v0"),), hosts=(H0,), hard=True, continuous=False)
    state = pair(EAGER.but(hosts_on_min=0), wants("v0", "h0", 100), rules=(rule,))
    check(state, PowerCode.NO_CAPACITY, "v0")


def test_a_busy_host_prevents_standby() -> None:
    state = pair(EAGER, wants("v0", "h0", 100), wants("v1", "h1", 3900))
    check(state, PowerCode.BUSY, "81%")


def test_without_an_under_used_host_no_host_goes_into_standby() -> None:
    state = pair(EAGER, wants("v0", "h0", 1900), wants("v1", "h1", 1900))
    check(state, PowerCode.NOT_LOW, "45% of its CPU")


def test_a_rule_of_the_library_keeps_a_host_on() -> None:
    rule = Satisfy(
        id=RuleId("m"),
        constraint="MinOnline",
        arguments={"ns": ("h0", "h1"), "nb": 2},
        hard=True,
        continuous=False,
    )
    check(pair(EAGER, rules=(rule,)), PowerCode.RULE, "rule m")


def test_a_failover_reserve_keeps_a_host_on() -> None:
    rule = Satisfy(
        id=RuleId("f"),
        constraint="Failover",
        arguments={"nb": 1, "id": "memory"},
        hard=True,
        continuous=False,
    )
    kept = MemorySettings(reservation_mib=512)
    vms = a_vm("v0", "h0", memory=kept), a_vm("v1", "h1", memory=kept)
    check(pair(EAGER, *vms, rules=(rule,)), PowerCode.RULE, "")


@pytest.mark.parametrize(("threshold", "standbys"), [(3, False), (5, True)])
def test_a_standby_that_does_not_pay_is_skipped(threshold: int, standbys: bool) -> None:
    """The benefit is 208 times the cost."""
    stays = {"h1": PowerOverride.STAYS_ON}
    policy = EAGER.but(benefit_times=300, threshold=threshold, hosts=stays)
    state = pair(policy, wants("v0", "h0", 100, memory_mib=16000))
    if standbys:
        (sleep,) = advised(state).standbys
        assert sleep.priority == 4
    else:
        check(state, PowerCode.COST_EXCEEDS_BENEFIT, "208 times the cost; 300 times")


def managed_trio(mhz: int, saving_min: float = 0.6) -> Snapshot:
    """Return three hosts that save power by themselves: the curve rises faster near full load."""
    power = PowerProfile(managed=True, managed_watts=(90, 140, 190, 290, 420), standby_watts=10)
    hosts = [known(f"h{n}", power=power) for n in range(3)]
    vms = [wants(f"v{n}", f"h{n}", mhz) for n in range(3)]
    policy = EAGER.but(saving_min=saving_min)
    return replace(a_cluster(*hosts, vms=vms, power=policy, balance=STILL), at_ms=NOW_MS)


def test_a_standby_that_costs_other_hosts_almost_as_much_power_is_skipped() -> None:
    # 3 hosts at 40 % draw 3 * 170 W, 2 at 60 % 2 * 230 W and 10 W: 40 W of 80 W are saved.
    busy = managed_trio(1600)
    assert skipped(busy).code is PowerCode.SAVING
    assert "40 W" in skipped(busy).sentence
    assert [standby.host for standby in advised(managed_trio(1600, 0.45)).standbys] == ["h0"]
    # 3 hosts at 20 % draw 3 * 130 W, 2 at 30 % 2 * 150 W and 10 W: all of the 80 W are saved.
    assert [standby.host for standby in advised(managed_trio(800)).standbys][:1] == ["h0"]


def test_one_pass_respects_the_move_limit_but_evacuates_one_host() -> None:
    hosts = [known(f"h{n}") for n in range(4)]
    vms = [wants(f"v{n}{k}", f"h{n}", 50) for n in range(4) for k in range(2)]
    policy = EAGER.but(moves_per_pass=1)
    state = a_cluster(*hosts, vms=vms, power=policy, balance=STILL)
    assert [standby.host for standby in advised(state).standbys] == ["h0"]
    check(state, PowerCode.MOVE_LIMIT, "1", H1)


# Hosts in standby that do not wake


def asleep(policy: PowerPolicy = EAGER, **fields: Any) -> Snapshot:
    hosts = known("h0"), known("h1", **{"asleep": True} | fields)
    return a_cluster(*hosts, power=policy, balance=STILL)


def test_a_standby_host_that_is_not_needed_is_reported() -> None:
    check(asleep(), PowerCode.NOT_NEEDED, "", H1)


def test_an_excluded_host_is_not_woken() -> None:
    policy = EAGER.but(hosts={"h1": PowerOverride.LEFT_ALONE}, hosts_on_min=2)
    check(asleep(policy), PowerCode.LEFT_ALONE, "", H1)
    assert not advised(asleep(policy)).wakes


def test_a_host_that_stays_on_is_woken() -> None:
    policy = EAGER.but(hosts={"h1": PowerOverride.STAYS_ON}, hosts_on_min=2)
    (wake,) = advised(asleep(policy)).wakes
    assert (wake.host, wake.code, wake.priority) == ("h1", PowerCode.WAKE_MINIMUM, 1)
    assert 2 in figures(wake.reason)


def test_a_host_with_standby_requested_is_not_woken() -> None:
    state = asleep(EAGER.but(hosts_on_min=2), requested=RequestedHostState.STANDBY)
    check(state, PowerCode.REQUESTED, "standby", H1)


def test_a_policy_that_is_off_wakes_all_hosts() -> None:
    (wake,) = advised(asleep(EAGER.but(automation=PowerAutomation.OFF))).wakes
    assert (wake.code, wake.automatic) == (PowerCode.WAKE_WINDOW, True)


def a_pair_with_roles() -> Snapshot:
    team = RoleGroup(
        id=RoleGroupId("g"), hosts=(H0, H1), slots=(Slot(id=SlotId("s")),),
        preferences=(RolePreference(role=RoleId("x"), slots=(SlotId("s"),)),),
    )  # fmt: skip
    layout = RoleLayout(roles=(Role(id=RoleId("x")),), groups=(team,))
    return pair(EAGER.but(hosts_on_min=0), layout=layout)


def test_a_host_with_a_role_stays_on_and_a_spare_goes_into_standby() -> None:
    state = a_pair_with_roles()
    filled = SlotsFilled(
        at_ms=NOW_MS, group=RoleGroupId("g"), slots={SlotId("s"): ProcessorId("h0")}
    )
    runs = RolesFound(
        at_ms=NOW_MS, processor=ProcessorId("h0"), held=((RoleGroupId("g"), RoleId("x")),)
    )
    advice = advised(transition.replay(state, (filled, runs)))
    skipped = {entry.host: entry for entry in advice.skipped}
    assert skipped[H0].code is PowerCode.ROLES
    assert "x" in skipped[H0].sentence
    assert [standby.host for standby in advice.standbys] == [H1]


def test_the_last_host_of_a_role_stays_on() -> None:
    state = a_pair_with_roles()
    layout = state.settings.layout
    assert layout is not None
    alone = layout.but(groups=(layout.groups[0].but(hosts=(H0,)),))
    state = replace(state, settings=state.settings.but(layout=alone))
    skipped = {entry.host: entry for entry in advised(state).skipped}
    assert skipped[H0].code is PowerCode.ROLES
    assert "x of g" in skipped[H0].sentence
