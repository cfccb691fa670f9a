"""Attempts are bounded for each resource and purpose, over all iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId, VmId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import (
    InjectedFailure,
    InjectedMoveFailure,
    ScheduledCampaignEvent,
    UpgradeCampaign,
    UpgradeSettings,
    UpgradeSimulation,
)
from equipoise.model.upgrade.request import CommandKind, UpgradeCommand
from equipoise.model.upgrade.work import TaskKind
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from upgrade_clusters import (
    UpgradeHarness,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    hypervisors,
    upgrade_of,
)

SETTINGS = UpgradeSettings(vm_move_s=5, failover_hosts=0, iterations_max=60)


def campaign(
    hosts: int, vms: Sequence[tuple[str, int]] = (), undo_threshold: int | None = None
) -> UpgradeCampaign:
    """Upgrade the hypervisors of all hosts; the VMs belong to one tenant."""
    names = [f"k{n}" for n in range(1, hosts + 1)]
    tenant = a_tenant("t", [name for name, _ in vms], most=len(vms))
    return a_campaign(
        a_request(a_set("s", upgrade_of(names, undo_threshold=undo_threshold))),
        hosts=[a_host(n, 4) for n in range(1, hosts + 1)],
        vms=[a_vm(name, host, "t") for name, host in vms],
        tenants=[tenant],
        resources=hypervisors(hosts),
        settings=SETTINGS,
    )


def with_attempts(campaign_: UpgradeCampaign, attempts_max: int) -> UpgradeCampaign:
    (request,) = campaign_.requests
    sets = tuple(set_.but(attempts_max=attempts_max) for set_ in request.sets)
    return campaign_.but(requests=(request.but(sets=sets),))


def run(campaign_: UpgradeCampaign, **simulation: object) -> list[Event]:
    made = campaign_.but(simulation=UpgradeSimulation(**simulation))  # type: ignore[arg-type]
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(made), journal, made).run()
    return list(journal.events())


def tasks(events: Sequence[Event], resource: str, kind: TaskKind) -> int:
    return sum(
        task.resource == resource and task.kind is kind
        for event in events
        if isinstance(event, past.BatchStarted)
        for task in event.batch.tasks
    )


def ended(events: Sequence[Event]) -> past.SetEnded:
    (end,) = [event for event in events if isinstance(event, past.SetEnded)]
    return end


@pytest.mark.parametrize("attempts_max", [1, 2, 4])
@pytest.mark.parametrize("threshold", [None, 2])
def test_a_failing_health_check_uses_up_the_attempts(
    attempts_max: int, threshold: int | None
) -> None:
    """Each attempt succeeds and fails its check: the success must not start the count again."""
    made = with_attempts(campaign(3, undo_threshold=threshold), attempts_max)
    made = _with_checks(made)
    events = run(made, failures=(InjectedFailure(resource=ResourceId("k1"), unhealthy=True),))
    assert tasks(events, "k1", TaskKind.APPLY) == attempts_max
    assert tasks(events, "k1", TaskKind.REVERT) == attempts_max
    outcome = past.SetOutcome.UNDONE if threshold is None else past.SetOutcome.APPLIED
    assert ended(events).outcome is outcome


def _with_checks(made: UpgradeCampaign) -> UpgradeCampaign:
    descriptions = tuple(
        described.but(upgrade=described.upgrade.but(check_script="check"))
        if described.upgrade is not None
        else described
        for described in made.catalog.descriptions
    )
    return made.but(catalog=made.catalog.but(descriptions=descriptions))


def test_a_passed_check_starts_the_count_again() -> None:
    """Liveness: a resource that failed once in one set may fail once in the next one."""
    made = with_attempts(campaign(1), 2)
    again = a_request(a_set("s2", upgrade_of(["k1"], "v3"), attempts_max=2), name="r2")
    made = made.but(requests=(*made.requests, again))
    events = run(made, failures=(InjectedFailure(resource=ResourceId("k1"), attempts=(1, 3)),))
    assert tasks(events, "k1", TaskKind.APPLY) == 4
    outcomes = [event.outcome for event in events if isinstance(event, past.SetEnded)]
    assert outcomes == [past.SetOutcome.APPLIED] * 2


def test_an_undo_that_fails_for_ever_ends() -> None:
    made = with_attempts(campaign(3), 2)
    failures = (
        InjectedFailure(resource=ResourceId("k3")),
        InjectedFailure(resource=ResourceId("k1"), undoing=True),
    )
    events = run(made, failures=failures)
    assert ended(events).outcome is past.SetOutcome.UNDONE
    assert max(e.iteration for e in events if isinstance(e, past.IterationStarted)) < 20


def moves(events: Sequence[Event], vm: str) -> Counter[str]:
    return Counter(
        move.target
        for event in events
        if isinstance(event, past.VmBatchStarted)
        for move in event.batch.moves
        if move.vm == vm
    )


@pytest.mark.parametrize("threshold", [None, 3])
def test_a_vm_that_cannot_move_tries_other_hosts_and_then_its_host_is_left(
    threshold: int | None,
) -> None:
    made = campaign(4, [("a", 1)], undo_threshold=threshold)
    events = run(made, move_failures=(InjectedMoveFailure(vm=VmId("a")),))
    tried = moves(events, "a")
    assert sum(tried.values()) == SETTINGS.move_attempts_max
    assert len(tried) == SETTINGS.move_attempts_max, "each attempt goes to another host"
    (given_up,) = [event for event in events if isinstance(event, past.ResourceGivenUp)]
    assert (given_up.resource, given_up.code) == ("k1", "vm-not-movable")
    for named in ("a", "h1", "3 moves"):
        assert named in given_up.reason
    outcome = past.SetOutcome.UNDONE if threshold is None else past.SetOutcome.APPLIED
    assert ended(events).outcome is outcome


def test_a_move_that_fails_to_one_host_succeeds_to_another() -> None:
    made = campaign(4, [("a", 1)])
    events = run(made, move_failures=(InjectedMoveFailure(target=HostId("h4")),))
    assert ended(events).outcome is past.SetOutcome.APPLIED
    assert moves(events, "a")["h4"] <= 1


def test_an_undo_waits_for_a_vm_that_cannot_leave_and_names_it() -> None:
    """The VM arrives on a changed host, cannot leave it, and then the set must be undone."""
    made = with_attempts(campaign(3, [("a", 1)]), 1)
    undo = ScheduledCampaignEvent(
        iteration=2, command=UpgradeCommand(order=CommandKind.UNDO, set=made.requests[0].sets[0].id)
    )
    events = run(
        made,
        events=(undo,),
        move_failures=(
            InjectedMoveFailure(source=HostId("h2")),
            InjectedMoveFailure(source=HostId("h3")),
        ),
    )
    (end,) = [event for event in events if isinstance(event, past.CampaignEnded)]
    paused = [event for event in events if isinstance(event, past.IterationEnded) and event.paused]
    assert end.status is past.CampaignStatus.PAUSED
    assert "vm-not-movable" in paused[-1].codes
    assert "VM a" in paused[-1].paused


@pytest.mark.parametrize(("times", "outcome"), [(3, "applied"), (4, "undone")])
def test_a_refused_connection_is_tried_again_with_longer_waits(times: int, outcome: str) -> None:
    made = campaign(1)
    events = run(
        made, failures=(InjectedFailure(resource=ResourceId("k1"), times=times, refused=True),)
    )
    starts_s = [event.at_ms // 1000 for event in events if isinstance(event, past.BatchStarted)]
    # Each wait is twice the one before. The recorded time has the duration of the work as well.
    waits = [later - earlier for earlier, later in pairwise(starts_s)]
    assert waits[:3] == [10 + 5, 10 + 10, 10 + 20]
    assert ended(events).outcome.value == outcome
    assert not tasks(events, "k1", TaskKind.REVERT), "nothing had happened"


def lost_until_repaired() -> Callable[..., str]:
    broken = [True]

    def fails(task: object) -> str:
        if getattr(task, "resource", "") == "k1" and broken[0]:
            broken[0] = False
            return "lost"
        return ""

    return fails


def test_a_repaired_resource_takes_part_again() -> None:
    """Its set goes on without it; after the repair it changes as well."""
    made = campaign(3, [("a", 3)], undo_threshold=2)
    (request,) = made.requests
    held = request.sets[0].but(checkpoints_pct=(50,))
    made = made.but(requests=(request.but(sets=(held,)),))
    harness = UpgradeHarness(made, fails=lost_until_repaired())
    harness.run()
    assert not harness.coordinator.state.resources.states[ResourceId("k1")].operational
    assert harness.outcomes() == {"s": "scheduled"}, "it waits at its checkpoint"
    repaired = UpgradeCommand(order=CommandKind.REPAIRED, resource=ResourceId("k1"))
    harness.record(past.UpgradeCommanded(at_ms=harness.now_ms, command=repaired))
    harness.command(CommandKind.APPROVE, "s")
    harness.run()
    assert harness.outcomes() == {"s": "applied"}
    assert [harness.version(f"k{n}") for n in (1, 2, 3)] == ["v2"] * 3


def test_the_repair_of_a_healthy_or_unknown_resource_is_rejected() -> None:
    harness = UpgradeHarness(campaign(2))
    harness.run()
    for name, code in (("k1", "no-effect"), ("k9", "unknown-resource")):
        order = UpgradeCommand(order=CommandKind.REPAIRED, resource=ResourceId(name))
        harness.record(past.UpgradeCommanded(at_ms=harness.now_ms, command=order))
        harness.decide()
        assert harness.events(past.CommandRejected)[-1].code == code
