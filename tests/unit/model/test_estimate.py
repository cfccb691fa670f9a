"""Estimates: how long a VM is on its way."""

from __future__ import annotations

from builders import a_vm
from equipoise.model.estimate import Estimates
from equipoise.model.vm import Demand

VM = a_vm("v", "h", memory_mib=1000, demand=Demand(cpu_mhz=2000, memory_mib=400))


def test_a_quiet_vm_is_copied_once() -> None:
    assert Estimates(migration_mib_per_s=100, migration_ms=500).move_ms(VM) == 10_500


def test_what_is_written_to_meanwhile_is_copied_again() -> None:
    """25 MiB/s for each of 2 GHz is half of 100 MiB/s: the active memory goes twice."""
    busy = Estimates(migration_mib_per_s=100, migration_ms=500, written_mib_per_ghz=25)
    assert busy.move_ms(VM) == 14_500


def test_who_writes_faster_than_it_can_be_copied_is_stopped_at_last() -> None:
    wild = Estimates(migration_mib_per_s=100, migration_ms=500, written_mib_per_ghz=1000)
    assert wild.move_ms(VM) == 500 + 10_000 + 9 * 4_000


def test_what_was_seen_says_more_than_any_estimate() -> None:
    assert Estimates(written_mib_per_ghz=1000).move_ms(VM, 50.0) == 20_000
