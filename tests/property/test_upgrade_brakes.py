"""Brakes of random upgrade sets: no batch exceeds them, and approvals lead to the end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.model.upgrade.event import BatchDecided, IterationEnded
from equipoise.model.upgrade.request import CommandKind
from upgrade_clusters import (
    UpgradeHarness,
    a_campaign,
    a_host,
    a_request,
    a_set,
    hypervisors,
    upgrade_of,
)

numbers = st.none() | st.integers(1, 12)


@settings(max_examples=60, deadline=None)
@given(
    hosts=st.integers(1, 12),
    canary=numbers,
    batch_max=numbers,
    percents=st.lists(st.integers(1, 99), unique=True, max_size=3).map(sorted),
)
def test_batches_stay_below_the_brakes_and_approvals_complete_the_set(
    hosts: int, canary: int | None, batch_max: int | None, percents: list[int]
) -> None:
    names = [f"k{n}" for n in range(1, hosts + 1)]
    change_set = a_set(
        "all",
        upgrade_of(names),
        canary=canary,
        batch_max=batch_max,
        checkpoints_pct=tuple(percents),
    )
    campaign = a_campaign(
        a_request(change_set),
        hosts=[a_host(n, 2) for n in range(1, hosts + 1)],
        resources=hypervisors(hosts),
    )
    harness = UpgradeHarness(campaign)
    marks = {mark for percent in percents if (mark := -(-hosts * percent // 100)) < hosts}
    marks |= {canary} if canary is not None and canary < hosts else set()
    harness.run()
    for mark in sorted(marks):
        done = sum(harness.version(name) == "v2" for name in names)
        assert done == mark, "the set stops at each mark and never beyond it"
        assert harness.events(IterationEnded)[-1].codes == ("waits-for-approval",)
        harness.command(CommandKind.APPROVE, "all")
        harness.run()
    assert harness.outcomes() == {"all": "applied"}
    largest = max(len(event.batch) for event in harness.events(BatchDecided))
    assert largest <= (batch_max or hosts)
