"""Power, held against a plain reading of its meaning and against trying every assignment."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.balance.rebalance.assess import assess
from equipoise.balance.rules import read_rules
from equipoise.capacity.waterfill import NO_INDEX
from equipoise.model.action_durations import Estimates
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand
from equipoise.power.advice import PowerCode
from equipoise.power.packing import can_carry
from equipoise.power.propose import run_power_pass
from equipoise.power.standby import measure_unmet_demand, weigh_standby
from equipoise.power.utilisation import DemandWindow, is_lowered, is_raised
from equipoise.power.whatif_state import WhatIfState, build_whatif_state
from plain_power import PlainPower
from power_worlds import EAGER, KNOWN, clusters, is_over_cap

ESTIMATES = Estimates()


def as_it_is(state: Snapshot) -> WhatIfState:
    """Return the what-if state without balance."""
    return WhatIfState(state, assess(state, read_rules(state), ESTIMATES))


def close(one: object, other: object) -> bool:
    return bool(one == pytest.approx(other, rel=1e-9, abs=1e-9))


@given(clusters())
def test_utilisation_agrees_with_the_oracle(state: Snapshot) -> None:
    whatif, plain = as_it_is(state), PlainPower(state)
    names = [whatif.state.host_ids[row] for row in whatif.rows.tolist()]
    assert names == [host.id for host in plain.hosts()]
    windows = {
        DemandWindow.OFF: plain.off,
        DemandWindow.ON: plain.on,
        DemandWindow.WORST: plain.worst,
    }
    for span, window in windows.items():
        for name, utilisation in zip(names, whatif.utilisation(span).tolist(), strict=True):
            assert close(tuple(utilisation), plain.utilisation(name, window))
    scores = whatif.scores()
    assert close(scores.high, plain.high())
    assert close(scores.low, plain.low())
    assert scores.is_high == plain.may_wake
    assert (scores.is_low and not scores.is_high) == plain.may_power_off


@given(clusters(), st.data())
def test_packing_agrees_with_the_oracle(state: Snapshot, data: st.DataObject) -> None:
    whatif, plain = as_it_is(state), PlainPower(state)
    assume(len(whatif.state.members) and len(whatif.rows))
    unit = data.draw(st.integers(0, len(whatif.state.members) - 1))
    row = int(data.draw(st.sampled_from(whatif.rows.tolist())))
    unit_host, name = int(whatif.state.arrays.unit_host[unit]), whatif.state.host_ids[row]
    assume(unit_host != row)
    packing = whatif._packing(np.array([unit]), whatif.rows, whatif._lasting_windows())
    members = whatif.state.members[unit]
    edge = [max(plain.utilisation(name, window, *members)) for window in (plain.on, plain.off)]
    assume(all(abs(edge_case - state.settings.power.high) > 1e-9 for edge_case in edge))
    found = can_carry(whatif.state.arrays, whatif.observed, packing, row, unit)
    assert found == plain.bears(name, *members)


@given(clusters())
def test_benefit_and_cost_agree_with_the_oracle(state: Snapshot) -> None:
    """VMs that move as one are counted as one, so there are none here."""
    assume(not any(isinstance(rule, KeepTogether) for rule in state.settings.rules))
    whatif, plain = as_it_is(state), PlainPower(state)
    for row in whatif.rows.tolist():
        units, before = whatif.units_on(row), measure_unmet_demand(whatif)
        with whatif.what_if():
            packing = whatif.evacuate(row, units, whatif.rows)
            if NO_INDEX in packing.target:
                continue
            whatif.close(row)
            found = weigh_standby(whatif, ESTIMATES, row, units, before)
        evacuations = dict(zip(units.tolist(), packing.target.tolist(), strict=True))
        names = {
            whatif.state.members[unit][0]: whatif.state.host_ids[target]
            for unit, target in evacuations.items()
        }
        host = whatif.state.host_ids[row]
        expected = plain.worth(host, names, ESTIMATES)
        event(f"times: {found.ratio:.0f}")
        assert close(found.benefit, expected.benefit)
        assert close(found.cost, expected.cost)
        assert close(found.ratio, expected.ratio)


def balanced_ground(state: Snapshot) -> tuple[WhatIfState, PlainPower]:
    """The ground after balancing, and the same plainly."""
    whatif = build_whatif_state(state, ESTIMATES, seed=0, balanced=True, ahead=None)
    return whatif, PlainPower(state, dict(whatif.moves))


@given(clusters())
def test_every_evacuated_vm_has_a_target(state: Snapshot) -> None:
    found = run_power_pass(state, ESTIMATES)
    event(f"sleeps: {len(found.standbys)}")
    _, plain = balanced_ground(state)
    asleep = {standby.host for standby in found.standbys}
    evacuations: dict[VmId, HostId] = {}
    for standby in found.standbys:
        there = {vm for vm, at in plain.where.items() if at == standby.host}
        guests = {vm for vm in there if not state.vms[vm].agent}
        assert {each.vm for each in standby.evacuations} == guests
        evacuations |= {each.vm: each.target for each in standby.evacuations}
    after = PlainPower(state, plain.where, asleep)
    assert after.faults(evacuations) == []
    later = PlainPower(state, {**plain.where, **evacuations}, asleep)
    assert asleep or not evacuations
    if asleep and not is_over_cap(state):
        assert plain.may_power_off
        assert not later.may_wake
        assert is_lowered(plain.low(), later.low())


@given(clusters(words=False))
def test_each_standby_lowers_the_low_score_and_raises_no_high_score(state: Snapshot) -> None:
    assume(not is_over_cap(state))
    found = run_power_pass(state, ESTIMATES)
    _, plain = balanced_ground(state)
    where, asleep = dict(plain.where), set[HostId]()
    for standby in found.standbys:
        before = PlainPower(state, where, asleep)
        where |= {each.vm: each.target for each in standby.evacuations}
        asleep.add(standby.host)
        after = PlainPower(state, where, asleep)
        assert not is_raised(before.high(), after.high())
        assert is_lowered(before.low(), after.low())


EVENLY = [(0, 1), (1, 1), (2, 1), (3, 1), (0, 1), (1, 1)]
"""The host of each of six VMs, and by how much it is smaller than others."""


def crowded(seed: int) -> Snapshot:
    """Three or four hosts of which one might be emptied if its VMs are chosen well."""
    lot = Random(seed)
    count = lot.randint(3, 4)
    homes = [(0, 2), (0, 2), (0, 2), (1, 1), (2, 1), (1, 1)] if count == 3 else EVENLY
    hosts = [a_host(f"h{n}", cores=lot.randint(2, 3), power=KNOWN) for n in range(count)]
    vms = [
        a_vm(
            f"v{n}",
            hosts[unit_host].id,
            memory_mib=8192,
            demand=Demand(
                cpu_mhz=lot.randint(100, 1600) // many, memory_mib=lot.randint(500, 9000) // many
            ),
        )
        for n, (unit_host, many) in enumerate(homes)
    ]
    two = VmId("v0"), VmId("v1")
    apart = KeepApart(id=RuleId("r"), vms=two, hard=True, continuous=False)
    rules = (apart,) if lot.random() < 0.3 else ()
    policy, still = EAGER.but(target=0.8, tolerance=0.1), BalancePolicy(rules_only=True)
    return a_cluster(*hosts, vms=vms, rules=rules, power=policy, balance=still)


def test_first_fit_rarely_misses_an_evacuation() -> None:
    """A host is skipped for lack of capacity although some assignment of its VMs exists.

    First fit, the largest first, is not exact: it misses about one way out in a hundred.
    """
    skipped = missed = slept = 0
    for seed in range(800):
        state = crowded(seed)
        found = run_power_pass(state, ESTIMATES)
        slept += bool(found.standbys)
        nowhere = [entry.host for entry in found.skipped if entry.code is PowerCode.NO_CAPACITY]
        _, plain = balanced_ground(state)
        if not found.standbys:  # others are where they were
            skipped += len(nowhere)
            missed += sum(next(plain.ways_out(host), None) is not None for host in nowhere)
    assert skipped > 100
    assert missed <= 0.03 * skipped, (skipped, missed, slept)
