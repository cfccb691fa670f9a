"""The power decider reuses the balance pass of the same turn."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from builders import a_cluster, a_host, a_vm
from equipoise.balance import run_pass
from equipoise.balance.propose import BalanceDecider
from equipoise.control.arbitrate import ask_deciders, keeps_hosts_on
from equipoise.control.ports import Decider
from equipoise.model.action_durations import Estimates
from equipoise.model.quantity import RuleId, VmId
from equipoise.model.rule import KeepApart
from equipoise.model.state.snapshot import Snapshot
from equipoise.power import whatif_state
from equipoise.power.propose import PowerDecider
from power_worlds import EAGER, clusters, known, wants


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_the_power_proposal_is_the_same_with_and_without_a_balance_pass(snapshot: Snapshot) -> None:
    alone = PowerDecider(Estimates()).propose(snapshot)
    balance, result = BalanceDecider(Estimates(), powered=True).propose_with_pass(snapshot)
    for _ in range(2):  # the result is a value: reading it does not change it
        assert PowerDecider(Estimates()).propose_from_pass(snapshot, result) == alone
    both = ask_deciders(
        [BalanceDecider(Estimates(), powered=True), PowerDecider(Estimates())], snapshot
    )
    if keeps_hosts_on(result, alone):
        balance = BalanceDecider(Estimates()).propose(snapshot)
    assert both == [balance, alone], "where power keeps every host on, an even load counts"
    swapped = ask_deciders(
        [PowerDecider(Estimates()), BalanceDecider(Estimates(), powered=True)], snapshot
    )
    assert swapped == [alone, balance], "in either order"


def test_a_host_that_a_rule_keeps_on_does_not_stop_the_balance() -> None:
    """Two hosts could hold everything, but three VMs must be apart: all hosts stay on."""
    apart = KeepApart(id=RuleId("apart"), vms=(VmId("a"), VmId("b"), VmId("c")))
    vms = [wants(name, f"h{n}", 100) for n, name in enumerate("abc")]
    vms += [wants(f"busy-{n}", "h0", 500) for n in range(4)]
    hosts = [known(f"h{n}") for n in range(3)]
    state = a_cluster(*hosts, vms=vms, rules=(apart,), power=EAGER)
    deciders: list[Decider] = [
        BalanceDecider(Estimates(), powered=True),
        PowerDecider(Estimates()),
    ]
    withheld, result = BalanceDecider(Estimates(), powered=True).propose_with_pass(state)
    assert result.withheld
    assert not withheld.intents
    balance, power = ask_deciders(deciders, state)
    assert not power.intents
    assert balance.intents
    assert balance == BalanceDecider(Estimates()).propose(state)
    assert ask_deciders(deciders[::-1], state) == [power, balance]


@settings(max_examples=10, deadline=None)
@given(clusters())
def test_a_pass_fits_only_the_input_it_was_run_with(snapshot: Snapshot) -> None:
    result = run_pass.run_balance_pass(snapshot, Estimates())
    assert result.fits(snapshot, Estimates(), 0)
    assert not result.fits(snapshot, Estimates(), 1)
    assert not result.fits(snapshot, Estimates(power_on_ms=1), 0)
    assert not result.fits(Snapshot.of(snapshot.inventory()), Estimates(), 0)


@pytest.mark.parametrize(("seed", "passes"), [(0, 1), (1, 2)])
def test_a_turn_runs_one_pass_unless_the_input_differs(
    monkeypatch: pytest.MonkeyPatch, seed: int, passes: int
) -> None:
    calls: list[None] = []
    original = run_pass.run_balance_pass

    def counted(*given: object, **named: object) -> run_pass.PassResult:
        calls.append(None)
        return original(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("equipoise.balance.propose.run_balance_pass", counted)
    monkeypatch.setattr(whatif_state, "run_balance_pass", counted)
    snapshot = a_cluster(a_host("g"), a_host("h"), vms=[a_vm("v", "g")])
    ask_deciders([BalanceDecider(Estimates()), PowerDecider(Estimates(), seed=seed)], snapshot)
    assert len(calls) == passes
