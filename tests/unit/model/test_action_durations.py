"""Estimated durations of migrations."""

from __future__ import annotations

from builders import a_vm
from equipoise.model.action_durations import Estimates
from equipoise.model.vm import Demand

VM = a_vm("v", "h", memory_mib=1000, demand=Demand(cpu_mhz=2000, memory_mib=400))


def test_the_memory_of_an_idle_vm_is_copied_once() -> None:
    idle = VM.but(demand=Demand(cpu_mhz=0, memory_mib=400))
    assert Estimates(migration_mib_per_s=100, migration_ms=500).move_ms(idle) == 10_500


def test_a_vm_of_unknown_dirty_rate_is_assumed_to_write() -> None:
    """20 MiB/s for each of 2 GHz, of 100 MiB/s: the active memory is copied 1 / (1 - 0.4) times."""
    unknown = Estimates(migration_mib_per_s=100, migration_ms=500)
    assert unknown.move_ms(VM) == 10_500 + round(4_000 * (1 / 0.6 - 1))


def test_memory_that_is_written_during_a_copy_is_copied_again() -> None:
    """25 MiB/s for each of 2 GHz is half of 100 MiB/s: the active memory is copied twice."""
    busy = Estimates(migration_mib_per_s=100, migration_ms=500, written_mib_per_ghz=25)
    assert busy.move_ms(VM) == 14_500


def test_the_number_of_copy_rounds_is_limited() -> None:
    fast_writer = Estimates(migration_mib_per_s=100, migration_ms=500, written_mib_per_ghz=1000)
    assert fast_writer.move_ms(VM) == 500 + 10_000 + 9 * 4_000


def test_a_measured_speed_replaces_the_estimate() -> None:
    assert Estimates(written_mib_per_ghz=1000).move_ms(VM, 50.0) == 20_000
