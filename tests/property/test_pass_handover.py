"""The power decider reuses the balance pass of the same turn."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from builders import a_cluster, a_host, a_vm
from equipoise.balance import run_pass
from equipoise.balance.propose import BalanceDecider
from equipoise.control.arbitrate import ask_deciders
from equipoise.model.estimate import Estimates
from equipoise.model.state.snapshot import Snapshot
from equipoise.power import whatif_state
from equipoise.power.propose import PowerDecider
from power_worlds import clusters


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_the_power_proposal_is_the_same_with_and_without_a_balance_pass(snapshot: Snapshot) -> None:
    alone = PowerDecider(Estimates()).propose(snapshot)
    balance, result = BalanceDecider(Estimates()).propose_with_pass(snapshot)
    for _ in range(2):  # the result is a value: reading it does not change it
        assert PowerDecider(Estimates()).propose_from_pass(snapshot, result) == alone
    both = ask_deciders([BalanceDecider(Estimates()), PowerDecider(Estimates())], snapshot)
    assert both == [balance, alone]
    swapped = ask_deciders([PowerDecider(Estimates()), BalanceDecider(Estimates())], snapshot)
    assert swapped == [alone, balance]


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
