"""Power beside balance: what balance has thought of the same snapshot is not thought again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from builders import a_cluster, a_host, a_vm
from equipoise.balance import advise as thinking
from equipoise.balance.propose import Balance
from equipoise.model.estimate import Estimates
from equipoise.model.snapshot import Snapshot
from equipoise.power.propose import Power
from power_worlds import clusters


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_power_decides_the_same_whether_balance_was_asked_before_or_not(snapshot: Snapshot) -> None:
    thinking._LEFT.clear()
    alone = Power(Estimates()).propose(snapshot)
    before = Balance(Estimates()).propose(snapshot)
    assert Power(Estimates()).propose(snapshot) == alone
    assert Balance(Estimates()).propose(snapshot) == before
    assert Power(Estimates()).propose(snapshot) == alone


@settings(max_examples=10, deadline=None)
@given(clusters())
def test_a_pass_that_was_left_is_given_once_and_only_for_what_it_was_made_for(
    snapshot: Snapshot,
) -> None:
    done = thinking.advise(snapshot, Estimates())
    thinking.leave(done, Estimates(), 0)
    assert thinking.left_or_made(snapshot, Estimates()) is done
    assert thinking.left_or_made(snapshot, Estimates()) is not done
    other = Snapshot.of(snapshot.inventory())
    for wanted, seed in ((snapshot, 1), (other, 0)):
        thinking.leave(done, Estimates(), 0)
        found = thinking.left_or_made(wanted, Estimates(), seed=seed)
        assert found is not done
        assert found.snapshot is wanted


def test_a_pass_is_made_once_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[None] = []
    advise = thinking.advise

    def counted(*given: object, **named: object) -> thinking.Pass:
        made.append(None)
        return advise(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(thinking, "advise", counted)
    monkeypatch.setattr("equipoise.balance.propose.advise", counted)
    snapshot = a_cluster(a_host("g"), a_host("h"), vms=[a_vm("v", "g")])
    Balance(Estimates()).propose(snapshot)
    thinking.left_or_made(snapshot, Estimates())
    assert len(made) == 1
