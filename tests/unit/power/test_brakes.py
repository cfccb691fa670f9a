"""The brakes: for each reason why a host is left as it is, a case, its code and its sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import a_cluster, a_step, a_vm
from equipoise.model.action import Migrate
from equipoise.model.change import transition
from equipoise.model.estimate import Estimates
from equipoise.model.event import ActionStarted, RolesFound, SlotsFilled
from equipoise.model.host import HostWish, PowerFigures
from equipoise.model.policy import BalancePolicy, VmOverride
from equipoise.model.policy.power import PowerAutomation, PowerOverride, PowerPolicy
from equipoise.model.quantity import HostId, ProcessorId, RoleId, RuleId, SlotId, TeamId, VmId
from equipoise.model.roles.layout import Role, RoleLayout, RolePreference, Slot, Team
from equipoise.model.rule import Satisfy, StayWithin
from equipoise.model.snapshot import DemandFrame, LastSwitch, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import MemorySettings, Vm, VmState
from equipoise.power.advice import Code, PowerAdvice, Told
from equipoise.power.advise import advise_power
from power_worlds import EAGER, known, wants

NOW_MS = 10_000_000
H0, H1 = HostId("h0"), HostId("h1")
STILL = BalancePolicy(rules_only=True)


def pair(policy: PowerPolicy = EAGER, *vms: Vm, **fields: Any) -> Snapshot:
    """Two hosts that are on and alike; the first would sleep."""
    state = a_cluster(known("h0"), known("h1"), vms=vms, power=policy, balance=STILL, **fields)
    return replace(state, at_ms=NOW_MS)


def advised(state: Snapshot) -> PowerAdvice:
    return advise_power(state, Estimates())


def told(state: Snapshot, host: HostId = H0) -> Told:
    (found,) = [one for one in advised(state).told if one.host == host]
    return found


def check(state: Snapshot, code: Code, words: str, host: HostId = H0) -> None:
    found = told(state, host)
    assert found.code is code, found
    assert words in found.sentence


def switched(state: Snapshot, host: HostId, *, on: bool, failed: bool, ago_s: int) -> Snapshot:
    last = LastSwitch(NOW_MS - 1000 * ago_s, on, failed)
    return replace(state, switches=FrozenMap({host: last}))


def test_without_brakes_the_first_of_two_idle_hosts_sleeps() -> None:
    found = advised(pair())
    assert [one.host for one in found.sleeps] == ["h0"]
    assert found.sleeps[0].gain["watts"] == 95
    check(pair(), Code.MINIMUM, "at least 1 host must be on", H1)


@pytest.mark.parametrize(
    ("override", "code", "words"),
    [
        (PowerOverride.STAYS_ON, Code.STAYS_ON, "stays on"),
        (PowerOverride.LEFT_ALONE, Code.LEFT_ALONE, "left alone"),
    ],
)
def test_an_override_keeps_a_host_on(override: PowerOverride, code: Code, words: str) -> None:
    state = pair(EAGER.but(hosts={"h0": override}))
    check(state, code, words)
    assert [one.host for one in advised(state).sleeps] == ["h1"]


def test_who_is_to_become_something_else_is_left_to_that() -> None:
    state = pair()
    wished = state.hosts[H0].but(requested=HostWish.MAINTENANCE)
    state = replace(state, hosts=FrozenMap({**state.hosts, H0: wished}))
    check(state, Code.REQUESTED, "it is to go into maintenance anyway")


def test_who_draws_nobody_knows_what_stays_on() -> None:
    state = pair()
    unknown = state.hosts[H0].but(power=PowerFigures())
    state = replace(state, hosts=FrozenMap({**state.hosts, H0: unknown}))
    check(state, Code.NO_FIGURES, "no power figures")


def test_who_failed_to_wake_stays_on_unless_somebody_vouches_for_it() -> None:
    state = switched(pair(), H0, on=True, failed=True, ago_s=9000)
    check(state, Code.WAKE_FAILED, "failed to wake the last time")
    full = pair(EAGER.but(hosts={"h0": PowerOverride.FULL}))
    vouched = switched(full, H0, on=True, failed=True, ago_s=9000)
    assert [one.host for one in advised(vouched).sleeps] == ["h0"]


def test_who_failed_to_fall_asleep_may_try_again() -> None:
    state = switched(pair(), H0, on=False, failed=True, ago_s=10)
    assert [one.host for one in advised(state).sleeps] == ["h0"]


@pytest.mark.parametrize("ago_s", [0, 1799, 1800])
def test_after_a_wake_nobody_sleeps_for_a_while(ago_s: int) -> None:
    policy = EAGER.but(cooldown_s=1800)
    state = switched(pair(policy), H1, on=True, failed=False, ago_s=ago_s)
    if ago_s < 1800:
        check(state, Code.COOLDOWN, f"h1 was woken {ago_s} s ago, and for 1800 s nobody sleeps")
    else:
        assert advised(state).sleeps


def test_a_wake_that_failed_is_no_reason_to_wait() -> None:
    state = switched(pair(EAGER.but(cooldown_s=1800)), H1, on=True, failed=True, ago_s=1)
    assert [one.host for one in advised(state).sleeps] == ["h0"]


def test_at_threshold_one_nobody_sleeps() -> None:
    check(pair(EAGER.but(threshold=1)), Code.THRESHOLD, "nobody is put to sleep")


def test_where_power_management_is_off_nobody_sleeps() -> None:
    check(pair(EAGER.but(automation=PowerAutomation.OFF)), Code.OFF, "by the power policy")


@pytest.mark.parametrize("seen_s", [None, 599, 600])
def test_demand_is_observed_for_some_time_first(seen_s: int | None) -> None:
    state = pair(EAGER.but(observe_s=600))
    if seen_s is not None:
        frame = DemandFrame(NOW_MS - 1000 * seen_s, FrozenMap({}))
        state = replace(state, history=(frame,))
    if seen_s == 600:
        assert advised(state).sleeps
    else:
        check(state, Code.OBSERVING, f"observed for {seen_s or 0} s, and 600 s are wanted first")


def test_who_takes_part_in_something_under_way_stays_on() -> None:
    state = pair(EAGER, wants("v0", "h0", 100))
    step = a_step("m", Migrate(vm=VmId("v0"), source=H0, target=H1))
    state = transition.apply(state, ActionStarted(at_ms=NOW_MS, step=step, attempt=1))
    assert told(state).code is told(state, H1).code is Code.IN_USE
    assert not advised(state).sleeps


def test_a_vm_that_sleeps_keeps_its_host_on() -> None:
    state = pair(EAGER, a_vm("v0", "h0", state=VmState.SLEEPING))
    check(state, Code.STUCK, "v0 sleeps there")


def test_a_vm_that_is_never_moved_keeps_its_host_on() -> None:
    state = pair(EAGER, wants("v0", "h0", 100))
    never = STILL.but(vms={"v0": VmOverride.OFF})
    state = replace(state, settings=state.settings.but(balance=never))
    check(state, Code.STUCK, "v0 cannot leave: the policy says that it is never moved")


def test_an_agent_sleeps_with_its_host() -> None:
    state = pair(EAGER, wants("v0", "h0", 100, agent=True))
    (sleep,) = advised(state).sleeps
    assert (sleep.host, sleep.going) == ("h0", ())


def test_whose_vms_fit_nowhere_else_stays_on() -> None:
    state = pair(EAGER, wants("v0", "h0", 1700), wants("v1", "h1", 1700))
    check(state, Code.NO_ROOM, "v0")


def test_whose_vms_may_go_nowhere_else_stays_on() -> None:
    rule = StayWithin(id=RuleId("r"), vms=(VmId("v0"),), hosts=(H0,), hard=True, continuous=False)
    state = pair(EAGER.but(hosts_on_min=0), wants("v0", "h0", 100), rules=(rule,))
    check(state, Code.NO_ROOM, "v0")


def test_while_somebody_has_too_much_to_do_nobody_sleeps() -> None:
    state = pair(EAGER, wants("v0", "h0", 100), wants("v1", "h1", 3900))
    check(state, Code.BUSY, "81%")


def test_if_everybody_has_enough_to_do_nobody_sleeps() -> None:
    state = pair(EAGER, wants("v0", "h0", 1900), wants("v1", "h1", 1900))
    check(state, Code.NOT_LOW, "45% or more of its CPU")


def test_a_rule_of_the_library_keeps_a_host_on() -> None:
    rule = Satisfy(
        id=RuleId("m"),
        constraint="MinOnline",
        arguments={"ns": ("h0", "h1"), "nb": 2},
        hard=True,
        continuous=False,
    )
    check(pair(EAGER, rules=(rule,)), Code.RULE, "rule m would be broken")


def test_what_may_be_lost_keeps_a_host_on() -> None:
    rule = Satisfy(
        id=RuleId("f"),
        constraint="Failover",
        arguments={"nb": 1, "id": "memory"},
        hard=True,
        continuous=False,
    )
    kept = MemorySettings(reservation_mib=512)
    vms = a_vm("v0", "h0", memory=kept), a_vm("v1", "h1", memory=kept)
    check(pair(EAGER, *vms, rules=(rule,)), Code.RULE, "")


@pytest.mark.parametrize(("threshold", "sleeps"), [(3, False), (5, True)])
def test_what_is_not_worth_its_cost_is_left(threshold: int, sleeps: bool) -> None:
    """It is worth some 208 times its cost."""
    stays = {"h1": PowerOverride.STAYS_ON}
    policy = EAGER.but(benefit_times=300, threshold=threshold, hosts=stays)
    state = pair(policy, wants("v0", "h0", 100, memory_mib=16000))
    if sleeps:
        (sleep,) = advised(state).sleeps
        assert sleep.priority == 4
    else:
        check(state, Code.NOT_WORTH_IT, "208 times its cost, and 300 times is wanted")


def test_one_pass_moves_only_so_many_vms_but_empties_one_host() -> None:
    hosts = [known(f"h{n}") for n in range(4)]
    vms = [wants(f"v{n}{k}", f"h{n}", 50) for n in range(4) for k in range(2)]
    policy = EAGER.but(moves_per_pass=1)
    state = a_cluster(*hosts, vms=vms, power=policy, balance=STILL)
    assert [one.host for one in advised(state).sleeps] == ["h0"]
    assert told(state, H1) == Told(H1, Code.LATER, "1 moves are enough for one pass")


# Who sleeps, and is not woken


def asleep(policy: PowerPolicy = EAGER, **fields: Any) -> Snapshot:
    hosts = known("h0"), known("h1", **{"asleep": True} | fields)
    return a_cluster(*hosts, power=policy, balance=STILL)


def test_who_sleeps_and_is_not_needed_is_said_so() -> None:
    check(asleep(), Code.NOT_NEEDED, "nobody needs it", H1)


def test_who_is_left_alone_is_not_woken_either() -> None:
    policy = EAGER.but(hosts={"h1": PowerOverride.LEFT_ALONE}, hosts_on_min=2)
    check(asleep(policy), Code.LEFT_ALONE, "left alone", H1)
    assert not advised(asleep(policy)).wakes


def test_who_stays_on_is_woken_like_others() -> None:
    policy = EAGER.but(hosts={"h1": PowerOverride.STAYS_ON}, hosts_on_min=2)
    (wake,) = advised(asleep(policy)).wakes
    assert (wake.host, wake.code, wake.priority) == ("h1", Code.WAKE_MINIMUM, 1)
    assert "1 hosts are on, and at least 2 must be" in wake.reason


def test_who_is_to_sleep_is_not_woken() -> None:
    state = asleep(EAGER.but(hosts_on_min=2), requested=HostWish.STANDBY)
    check(state, Code.REQUESTED, "it is to be in standby", H1)


def test_all_wake_where_power_management_is_off() -> None:
    (wake,) = advised(asleep(EAGER.but(automation=PowerAutomation.OFF))).wakes
    assert (wake.code, wake.automatic) == (Code.WAKE_WINDOW, True)


def a_pair_with_roles() -> Snapshot:
    team = Team(
        id=TeamId("g"), hosts=(H0, H1), slots=(Slot(id=SlotId("s")),),
        preferences=(RolePreference(role=RoleId("x"), slots=(SlotId("s"),)),),
    )  # fmt: skip
    layout = RoleLayout(roles=(Role(id=RoleId("x")),), groups=(team,))
    return pair(EAGER.but(hosts_on_min=0), layout=layout)


def test_a_host_that_carries_a_role_is_not_put_to_sleep_but_a_spare_is() -> None:
    state = a_pair_with_roles()
    filled = SlotsFilled(at_ms=NOW_MS, group=TeamId("g"), slots={SlotId("s"): ProcessorId("h0")})
    runs = RolesFound(at_ms=NOW_MS, processor=ProcessorId("h0"), held=((TeamId("g"), RoleId("x")),))
    advice = advised(transition.replay(state, (filled, runs)))
    told = {one.host: one for one in advice.told}
    assert told[H0].code is Code.ROLES
    assert told[H0].sentence.startswith("it carries x: they can go elsewhere")
    assert [one.host for one in advice.sleeps] == [H1]


def test_the_last_host_of_a_role_stays_on_and_is_told_so() -> None:
    state = a_pair_with_roles()
    layout = state.settings.layout
    assert layout is not None
    alone = layout.but(groups=(layout.groups[0].but(hosts=(H0,)),))
    state = replace(state, settings=state.settings.but(layout=alone))
    told = {one.host: one for one in advised(state).told}
    assert told[H0].code is Code.ROLES
    assert told[H0].sentence == "x of g would be lost"
