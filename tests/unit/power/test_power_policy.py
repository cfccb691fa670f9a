"""What the power policy and the figures of a host say: windows, caps, levels, order, foresight."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from builders import a_cluster, a_host
from equipoise.balance.rebalance.assess import assess
from equipoise.balance.rules import read_rules
from equipoise.model.action_durations import Estimates
from equipoise.model.host import Host, HostReserve, PowerProfile
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.policy.power import (
    Day,
    PowerAutomation,
    PowerOverride,
    PowerPolicy,
    PowerWindow,
    StandbyPreference,
)
from equipoise.model.quantity import HostId
from equipoise.model.state.snapshot import LastPowerChange, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm
from equipoise.power.advice import PowerAdvice, PowerCode
from equipoise.power.candidates import is_automatic, order_for_standby, order_for_wake
from equipoise.power.propose import run_power_pass
from equipoise.power.standby import required_ratio
from equipoise.power.utilisation import DemandWindow
from equipoise.power.whatif_state import WhatIfState
from power_worlds import EAGER, known, wants

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
OFF = PowerAutomation.OFF
STILL = BalancePolicy(rules_only=True)


def advised(state: Snapshot, **more: Any) -> PowerAdvice:
    return run_power_pass(state, Estimates(), **more)


def whatif_of(*hosts: Host, vms: tuple[Vm, ...] = (), **policy: Any) -> WhatIfState:
    state = a_cluster(*hosts, vms=vms, power=EAGER.but(**policy))
    return WhatIfState(state, assess(state, read_rules(state), Estimates()))


# Windows


@pytest.mark.parametrize(
    ("start", "end", "hour", "holds"),
    [
        ("08:00", "18:00", 8, True),
        ("08:00", "18:00", 17.99, True),
        ("08:00", "18:00", 18, False),
        ("08:00", "18:00", 7.99, False),
        ("22:00", "06:00", 23, True),
        ("22:00", "06:00", 0, True),
        ("22:00", "06:00", 5.99, True),
        ("22:00", "06:00", 6, False),
        ("22:00", "06:00", 21.99, False),
        ("00:00", "24:00", 0, True),
        ("00:00", "24:00", 23.99, True),
        ("12:00", "12:00", 3, True),
    ],
)
def test_a_window_holds_from_its_start_to_its_end(
    start: str, end: str, hour: float, holds: bool
) -> None:
    window = PowerWindow(start=start, end=end, automation=OFF)
    for day in range(1, 9):
        assert window.holds(int(DAY_MS * day + hour * HOUR_MS)) is holds


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    window = PowerWindow(start="22:00", end="06:00", automation=OFF, days=(Day.SUNDAY,))
    assert window.holds(6 * DAY_MS + 23 * HOUR_MS)
    assert window.holds(7 * DAY_MS + 5 * HOUR_MS)
    assert not window.holds(6 * DAY_MS + 5 * HOUR_MS)
    assert not window.holds(7 * DAY_MS + 23 * HOUR_MS)
    assert not window.holds(5 * HOUR_MS + DAY_MS)


def test_the_clock_begins_on_a_monday_and_the_night_before_it_was_a_sunday() -> None:
    monday = PowerWindow(start="00:00", end="24:00", automation=OFF, days=(Day.MONDAY,))
    assert [monday.holds(DAY_MS * day) for day in range(8)] == [True, *[False] * 6, True]
    sunday = PowerWindow(start="22:00", end="06:00", automation=OFF, days=(Day.SUNDAY,))
    assert sunday.holds(0)


def test_the_first_window_that_holds_decides() -> None:
    night = PowerWindow(start="22:00", end="06:00", automation=PowerAutomation.MANUAL)
    always = PowerWindow(start="00:00", end="24:00", automation=OFF)
    policy = PowerPolicy(windows=(night, always))
    assert policy.automation_at(23 * HOUR_MS) is PowerAutomation.MANUAL
    assert policy.automation_at(12 * HOUR_MS) is OFF
    assert PowerPolicy(windows=(night,)).automation_at(12 * HOUR_MS) is PowerAutomation.FULL


@pytest.mark.parametrize("automation", list(PowerAutomation))
@pytest.mark.parametrize("override", [None, *PowerOverride])
def test_the_policy_decides_which_hosts_are_switched_without_approval(
    automation: PowerAutomation, override: PowerOverride | None
) -> None:
    overrides = {} if override is None else {HostId("h0"): override}
    policy = PowerPolicy(automation=automation, hosts=overrides)
    expected = automation is not PowerAutomation.MANUAL
    if override in (PowerOverride.MANUAL, PowerOverride.FULL):
        expected = override is PowerOverride.FULL
    assert is_automatic(policy, HostId("h0"), 0) is expected


# Caps and figures


@pytest.mark.parametrize(
    ("figures", "part"),
    [
        (PowerProfile(idle_watts=100, peak_watts=200), 1.0),
        (PowerProfile(idle_watts=100, peak_watts=200, cap_watts=200), 1.0),
        (PowerProfile(idle_watts=100, peak_watts=200, cap_watts=150), 0.5),
        (PowerProfile(idle_watts=100, peak_watts=200, cap_watts=100), 0.0),
        (PowerProfile(idle_watts=100, peak_watts=200, cap_watts=90), 0.0),
        (PowerProfile(managed=True, managed_watts=(50, 100, 200), cap_watts=150), 0.75),
        (PowerProfile(managed=True, managed_watts=(50, 100, 100, 200), cap_watts=100), 2 / 3),
        (PowerProfile(managed=True, managed_watts=(50, 50, 200), cap_watts=50), 0.5),
        (PowerProfile(idle_watts=100, peak_watts=100, cap_watts=100), 1.0),
        (PowerProfile(cap_watts=100), 1.0),
    ],
)
def test_a_power_cap_of_a_host_reduces_its_mhz(figures: PowerProfile, part: float) -> None:
    assert figures.usable_fraction == pytest.approx(part)
    host = a_host(power=figures, reserve=HostReserve(cpu_mhz=100))
    assert host.usable_cpu_mhz == max(0, int(part * 4000) - 100)


def test_a_capped_host_has_less_capacity() -> None:
    capped = PowerProfile(idle_watts=100, peak_watts=200, cap_watts=150)
    whatif = whatif_of(known("h0"), known("h1", power=capped), vms=(wants("v", "h1", 1000),))
    assert whatif.utilisation(DemandWindow.ON)[:, 0].tolist() == pytest.approx([0, 0.5])


def test_no_host_wakes_above_the_power_cap_of_the_cluster() -> None:
    """On, hosts may draw 200 W each; asleep, 5."""
    vms = [wants(f"v{n}", "h0", 1500) for n in range(3)]
    hosts = known("h0"), known("h1", asleep=True), known("h2", asleep=True)
    for cap, wakes in ((404, 0), (405, 1), (599, 1), (600, 2), (None, 2)):
        policy = EAGER.but(cap_watts=cap, hosts_on_min=2)
        found = advised(a_cluster(*hosts, vms=vms, power=policy.but(hosts_on_min=3)))
        assert len(found.wakes) == wakes, cap
        codes = [entry.code for entry in found.skipped if entry.host != "h0"]
        assert codes == [PowerCode.CAP] * (2 - wakes)


# Levels


def test_each_threshold_level_halves_the_required_ratio() -> None:
    policy = PowerPolicy(benefit_times=40)
    assert [required_ratio(policy, level) for level in (2, 3, 4, 5)] == [80, 40, 20, 10]


@pytest.mark.parametrize(
    ("times", "threshold", "priority"),
    [(100, 3, 2), (110, 3, 3), (250, 3, None), (250, 4, 4), (500, 5, 5), (500, 4, None)],
)
def test_a_larger_ratio_is_more_urgent(times: float, threshold: int, priority: int | None) -> None:
    """The sleep of this host is worth some 208 times what it costs."""
    policy = EAGER.but(
        benefit_times=times, threshold=threshold, hosts={"h1": PowerOverride.STAYS_ON}
    )
    vm = wants("v0", "h0", 100, memory_mib=16000)
    found = advised(a_cluster(known("h0"), known("h1"), vms=[vm], power=policy, balance=STILL))
    assert [standby.priority for standby in found.standbys] == (
        [] if priority is None else [priority]
    )


@pytest.mark.parametrize(("mhz", "priority"), [(860, 3), (950, 2), (1100, 1)])
@pytest.mark.parametrize("threshold", [1, 3])
def test_the_priority_of_a_wake_depends_on_the_utilisation(
    mhz: int, priority: int, threshold: int
) -> None:
    """A threshold is about sleeping only."""
    vms = [wants(f"v{n}", "h0", mhz) for n in range(4)]
    hosts = known("h0"), known("h1", asleep=True)
    found = advised(a_cluster(*hosts, vms=vms, power=EAGER.but(threshold=threshold)))
    assert [wake.priority for wake in found.wakes] == [priority]


# Order


def names(some: list[HostId]) -> str:
    return " ".join(some)


def asked(whatif: WhatIfState) -> str:
    return names(order_for_standby(whatif, list(whatif.row)))


def test_small_hosts_go_into_standby_first() -> None:
    hosts = known("a", cores=8), known("b", cores=4), known("c", cores=4, memory_mib=8192)
    assert asked(whatif_of(*hosts, order=(StandbyPreference.SIZE,))) == "c b a"


def test_inefficient_hosts_go_into_standby_first() -> None:
    watts = {"a": 200, "b": 400, "c": 300}
    hosts = [
        known(host, power=PowerProfile(idle_watts=9, peak_watts=most))
        for host, most in watts.items()
    ]
    assert asked(whatif_of(*hosts, order=(StandbyPreference.EFFICIENCY,))) == "b c a"


def test_hot_hosts_go_into_standby_first() -> None:
    hosts = known("a", temperature_c=20.0), known("b", temperature_c=40.0), known("c")
    assert asked(whatif_of(*hosts, order=(StandbyPreference.TEMPERATURE,))) == "b a c"


def test_hosts_with_little_memory_to_copy_go_into_standby_first() -> None:
    vms = wants("x", "a", 0, memory_mib=4096), wants("y", "b", 0, memory_mib=512)
    agent = wants("z", "c", 0, memory_mib=9999, agent=True)
    whatif = whatif_of(known("a"), known("b"), known("c"), vms=(*vms, agent))
    assert asked(whatif) == "c b a"


def test_preferences_count_in_their_order_and_then_the_order_of_the_file() -> None:
    hosts = known("a", cores=8, temperature_c=50.0), known("b"), known("c", temperature_c=30.0)
    hot, size = StandbyPreference.TEMPERATURE, StandbyPreference.SIZE
    assert asked(whatif_of(*hosts, order=(hot, size))) == "a c b"
    assert asked(whatif_of(*hosts, order=(size, hot))) == "c b a"
    assert asked(whatif_of(*hosts, order=())) == "a b c"


def test_large_hosts_wake_first_and_failed_hosts_last() -> None:
    hosts = (
        known("a", asleep=True),
        known("b", asleep=True, cores=8),
        known("c", asleep=True, cores=9),
    )
    state = a_cluster(*hosts, power=EAGER)
    ids = list(state.hosts)
    failed = replace(
        state, switches=FrozenMap({HostId("c"): LastPowerChange(0, on=True, failed=True)})
    )
    for snapshot, expected in ((state, "c b a"), (failed, "b a c")):
        whatif = WhatIfState(snapshot, assess(snapshot, read_rules(snapshot), Estimates()))
        assert names(order_for_wake(whatif, ids, seed=0)) == expected


def test_equal_hosts_are_ordered_by_seed_and_version() -> None:
    state = a_cluster(*[known(f"h{n}", asleep=True) for n in range(6)], power=EAGER)
    found = set()
    for seed in range(3):
        for version in range(3):
            one = replace(state, version=version)
            whatif = WhatIfState(one, assess(one, read_rules(one), Estimates()))
            order = names(order_for_wake(whatif, list(one.hosts), seed))
            assert order == names(order_for_wake(whatif, list(one.hosts), seed))
            found.add(order)
    assert len(found) > 5


# Foresight


def test_a_forecast_raises_the_expected_demand() -> None:
    vms = wants("v0", "h0", 100), wants("v1", "h1", 100)
    state = a_cluster(known("h0"), known("h1"), vms=vms, power=EAGER, balance=STILL)
    assert [standby.host for standby in advised(state).standbys] == ["h0"]
    ahead = np.array([[2000.0, 0.0], [2000.0, 0.0]])
    found = advised(state, ahead=ahead)
    assert not found.standbys
    assert found.before.low[0] == 0
    assert advised(state, ahead=np.zeros((2, 2))).standbys


def test_a_forecast_wakes_a_host_in_advance() -> None:
    vms = [wants(f"v{n}", "h0", 100) for n in range(4)]
    hosts = known("h0"), known("h1", asleep=True)
    state = a_cluster(*hosts, vms=vms, power=EAGER, balance=STILL)
    assert not advised(state).wakes
    (wake,) = advised(state, ahead=np.full((4, 2), 1000.0)).wakes
    assert (wake.host, wake.code) == ("h1", PowerCode.WAKE_BUSY)
