"""What is learned from migrations: speeds, failures in a row, and how long a VM or a link waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import Boot, Migrate
from equipoise.model.action_durations import Estimates
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionStarted,
    Event,
    HostChanged,
    HostFailed,
    VmArrived,
)
from equipoise.model.plan import ConcurrencyLimits
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.state import transition
from equipoise.model.state.move_record import (
    BACK_OFF_MAX_MS,
    DAY_MS,
    BackOff,
    FailedMoves,
    link_back_offs,
    vm_back_offs,
)
from equipoise.model.state.snapshot import Snapshot

V1, V2 = VmId("v1"), VmId("v2")
H1, H2, H3 = HostId("h1"), HostId("h2"), HostId("h3")
ESTIMATES = Estimates(migration_mib_per_s=512, migration_ms=0, written_mib_per_ghz=0)


def cluster(limits: ConcurrencyLimits | None = None) -> Snapshot:
    """Two VMs of 1 GiB on the first of three hosts."""
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1")]
    given = {} if limits is None else {"limits": limits}
    return a_cluster(a_host("h1"), a_host("h2"), a_host("h3"), vms=vms, **given)


def began(at_ms: int, vm: VmId, source: HostId, target: HostId, planned_ms: int = 1000) -> Event:
    move = Migrate(vm=vm, source=source, target=target)
    step = a_step(f"move-{vm}", move, 0, planned_ms)
    return ActionStarted(at_ms=at_ms, step=step, attempt=1)


def done(at_ms: int, vm: VmId) -> Event:
    return ActionFinished(at_ms=at_ms, step=StepId(f"move-{vm}"), attempt=1)


def failed(at_ms: int, vm: VmId, code: str) -> Event:
    return ActionFailed(
        at_ms=at_ms, step=StepId(f"move-{vm}"), attempt=1, reason="as scripted", code=code
    )


def after(*events: Event, state: Snapshot | None = None) -> Snapshot:
    return transition.replay(cluster() if state is None else state, events)


def broken_off(times: int, vm: VmId = V1, every_ms: int = 10_000) -> Iterable[Event]:
    """Migrations that run four times as long as planned and are then broken off."""
    for number in range(times):
        at_ms = number * every_ms
        yield began(at_ms, vm, H1, H2)
        yield failed(at_ms + 4000, vm, "cancelled")


def test_the_speed_of_a_link_is_what_its_migrations_share() -> None:
    """Two migrations of 1 GiB at once take 4 s: alone each would copy 512 MiB/s."""
    state = after(began(0, V1, H1, H2), began(0, V2, H1, H3), done(4000, V1), done(4000, V2))
    assert state.moves[V1].mib_per_s == 256
    assert state.moves[V1].sharing == pytest.approx(1.5)
    assert state.moves[V2].sharing == pytest.approx(1.5)
    alone = 256 * 1.5
    assert state.move_speeds.of(V1, H2) == pytest.approx(alone / 2)
    one = state.settings.but(limits=ConcurrencyLimits(migrations_per_host=1))
    assert replace(state, settings=one).move_speeds.of(V1, H2) == pytest.approx(alone)


def test_a_vm_without_migrations_moves_at_the_speed_of_its_host() -> None:
    state = after(began(0, V1, H1, H2), done(4000, V1))
    assert state.move_speeds.of(V2, H1) == state.move_speeds.of(V1, H2) == 128
    assert state.move_speeds.of(V2, H3) is None
    assert ESTIMATES.migration_of(state.vms[V2], state) == 8000


def test_a_migration_that_was_broken_off_is_estimated_to_take_longer() -> None:
    """It ran 4 s alone; twice that was needed at least, and two may share the link then."""
    state = after(*broken_off(1))
    assert state.failed_moves[V1].mib_per_s_max == 256
    assert ESTIMATES.migration_of(cluster().vms[V1], cluster()) == 2000
    assert ESTIMATES.migration_of(state.vms[V1], state) == 2 * 2 * 4000
    again = after(*broken_off(3))
    assert again.failed_moves[V1].failures == 3
    longer = after(*broken_off(1), began(20_000, V1, H1, H2), failed(28_000, V1, "cancelled"))
    assert ESTIMATES.migration_of(longer.vms[V1], longer) == 2 * 2 * 8000
    assert ESTIMATES.duration_ms(Migrate(vm=V1, source=H1, target=H2), longer) == 32_000


def test_a_success_ends_the_row_of_failures() -> None:
    state = after(*broken_off(3), began(50_000, V1, H1, H2), done(60_000, V1))
    assert V1 not in state.failed_moves
    assert state.move_speeds.most(V1) is None
    assert ESTIMATES.migration_of(state.vms[V1], state) == round(20_000 * 1.0)


@pytest.mark.parametrize(
    ("event", "counts", "is_slow"),
    [
        (failed(4000, V1, "cancelled"), True, True),
        (failed(500, V1, "cancelled"), False, False),  # the operator stops a plan
        (failed(500, V1, "migration-failed"), True, False),
        (failed(4000, V1, "migration-failed"), True, True),
        (failed(500, V1, "action-interrupted"), False, False),
        (ActionLost(at_ms=4000, step=StepId("move-v1"), attempt=1), True, True),
        (HostFailed(at_ms=500, host=H2), False, False),
    ],
)
def test_only_failures_of_the_migration_itself_count(
    event: Event, counts: bool, is_slow: bool
) -> None:
    state = after(began(0, V1, H1, H2), event)
    assert (V1 in state.failed_moves) == counts
    assert (state.move_speeds.most(V1) is not None) == is_slow


def test_each_failure_in_a_row_doubles_the_wait_up_to_a_day() -> None:
    def wait_ms(count: int) -> int:
        record = FailedMoves(1_000, H1, H2, count, None)
        return vm_back_offs({V1: record}, 1_000, 300_000)[V1].until_ms - 1_000

    assert [wait_ms(count) for count in (1, 2, 3, 4)] == [300_000, 600_000, 1_200_000, 2_400_000]
    assert wait_ms(10) == wait_ms(500) == BACK_OFF_MAX_MS
    record = FailedMoves(1_000, H1, H2, 1, None)
    assert vm_back_offs({V1: record}, 301_000, 300_000) == {}


def test_a_link_waits_after_failures_of_several_vms_until_a_migration_succeeds() -> None:
    one = FailedMoves(1_000, H1, H2, 3, None)
    other = FailedMoves(2_000, H1, H3, 1, None)
    assert link_back_offs({}, {V1: one}, 2_000, 300_000) == {}
    waits = link_back_offs({}, {V1: one, V2: other}, 2_000, 300_000)
    assert waits == {H1: BackOff(302_000, 2)}
    state = after(began(2_100, V2, H1, H3), done(2_200, V2))
    assert link_back_offs(state.moves, {V1: one, VmId("v3"): other}, 2_300, 300_000) == {}


def test_moves_are_counted_within_a_day() -> None:
    events: list[Event] = []
    hosts = [H1, H2]
    hour_ms = 3_600_000
    for number in range(6):
        source, target = hosts[number % 2], hosts[(number + 1) % 2]
        events += [began(number * 6 * hour_ms, V1, source, target)]
        events += [done(number * 6 * hour_ms + 1000, V1)]
    move = after(*events).moves[V1]
    now_ms = 30 * hour_ms + 1000
    assert move.ended_ms == now_ms
    assert move.moves_since(now_ms - DAY_MS) == 4
    assert move.moves_since(now_ms - 1) == 1


def test_the_record_knows_changes_from_outside_only() -> None:
    moved = after(began(10, V1, H1, H2), done(2000, V1))
    assert moved.changed_ms == 0
    assert after(VmArrived(at_ms=5, vm=a_vm("v9")), state=moved).changed_ms == 2000
    warm = HostChanged(at_ms=3000, host=a_host("h1", temperature_c=40.0))
    assert after(warm, state=moved).changed_ms == 0
    assert after(warm.but(host=a_host("h1", cores=8)), state=moved).changed_ms == 3000
    boot = a_step("boot", Boot(vm=VmId("v9"), target=H1), 0, 100)
    started = after(
        VmArrived(at_ms=5, vm=a_vm("v9")),
        ActionStarted(at_ms=50, step=boot, attempt=1),
        ActionFinished(at_ms=150, step=StepId("boot"), attempt=1),
    )
    assert started.changed_ms == 150
