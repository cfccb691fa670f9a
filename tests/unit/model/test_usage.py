"""From what a hypervisor counts to what a VM asks for, with worked numbers."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_vm
from equipoise.model.quantity import ResourceName
from equipoise.model.usage import Usage, demand_of
from equipoise.model.vm import CpuSettings, Demand, MemorySettings


def cpu(vcpus: int = 2, mhz: int | None = 2600, limit: int | None = None, **counted: Any) -> int:
    vm = a_vm(vcpus=vcpus, cpu=CpuSettings(limit_mhz=limit))
    return demand_of(Usage(**counted), vm, mhz).cpu_mhz


def memory(size: int, limit: int | None = None, **counted: Any) -> int:
    vm = a_vm(memory_mib=size, memory=MemorySettings(limit_mib=limit))
    return demand_of(Usage(**counted), vm, 2600).memory_mib


def times(run: int, sleep: int, ready: int) -> dict[str, int]:
    return {"cpu_run_ms": run, "cpu_sleep_ms": sleep, "cpu_ready_ms": ready}


def test_equation_1_adds_what_it_would_have_run_in_the_time_it_was_queued() -> None:
    """Two vCPUs for 20 s: they ran for 10 s at 2,600 MHz, slept for 20 s and were queued for 10 s.

    Not queued, they ran a third of the time, so 3.33 s more: (10 + 3.33) s of 20 s at 2,600 MHz.
    """
    used = 2600 * 10 // 20
    by_the_paper = 2600 * (10 + 10 / (10 + 20) * 10) / 20
    found = cpu(cpu_used_mhz=used, **times(10_000, 20_000, 10_000))
    assert found == round(by_the_paper) == 1733


def test_who_never_sleeps_would_have_run_all_the_time() -> None:
    assert cpu(cpu_used_mhz=1300, **times(10_000, 0, 30_000)) == 5200


def test_who_was_never_queued_asks_for_what_it_used() -> None:
    assert cpu(cpu_used_mhz=1300, **times(10_000, 30_000, 0)) == 1300
    assert cpu(cpu_used_mhz=1300) == 1300


def test_who_has_not_run_but_slept_would_have_gone_on_sleeping() -> None:
    assert cpu(cpu_used_mhz=0, **times(0, 39_000, 1000)) == 0


def test_who_was_queued_all_the_time_asks_for_all_it_can_use_if_that_is_known() -> None:
    assert cpu(cpu_used_mhz=0, **times(0, 0, 40_000)) == 5200
    assert cpu(cpu_used_mhz=0, limit=900, **times(0, 0, 40_000)) == 900
    assert cpu(cpu_used_mhz=0, mhz=None, **times(0, 0, 40_000)) == 0
    assert cpu(cpu_used_mhz=0, mhz=None, limit=900, **times(0, 0, 40_000)) == 0


def test_of_nothing_follows_nothing() -> None:
    assert cpu() == cpu(cpu_used_mhz=0, **times(0, 0, 0)) == 0
    assert cpu(cpu_used_mhz=700, **times(0, 0, 0)) == 700
    assert memory(4096) == 0


@pytest.mark.parametrize(
    ("waited", "asked"), [({"cpu_stall_pct": 80}, 6500), (times(20_000, 0, 80_000), 6500)]
)
def test_what_is_reckoned_is_held_to_what_the_vm_can_use(
    waited: dict[str, Any], asked: int
) -> None:
    assert cpu(cpu_used_mhz=1300, mhz=None, **waited) == asked
    assert cpu(cpu_used_mhz=1300, **waited) == 5200
    assert cpu(cpu_used_mhz=1300, limit=2000, **waited) == 2000
    assert cpu(cpu_used_mhz=1300, mhz=None, limit=2000, **waited) == 2000


def test_what_was_used_counts_though_it_is_more_than_the_cpus_are_said_to_have() -> None:
    assert cpu(cpu_used_mhz=5500, cpu_stall_pct=10) == 5500, "they run faster at times"


def test_who_was_stalled_a_tenth_of_the_time_got_nine_tenths() -> None:
    assert cpu(cpu_used_mhz=900, cpu_stall_pct=10) == 1000
    assert cpu(cpu_used_mhz=900, cpu_stall_pct=0) == 900
    assert memory(4096, memory_used_mib=1800, memory_stall_pct=10) == 2000


def test_two_fifths_of_the_pages_of_16_gib_are_6_4_gib() -> None:
    found = memory(16 * 1024, pages_sampled=100, pages_touched=40)
    assert found == round(6.4 * 1024)


def test_memory_is_never_more_than_the_vm_has() -> None:
    assert memory(4096, pages_sampled=7, pages_touched=7) == 4096
    assert memory(4096, memory_used_mib=4000, memory_stall_pct=50) == 4096
    assert memory(4096, 3000, memory_used_mib=2000, memory_stall_pct=50) == 3000
    assert memory(4096, 3000, memory_used_mib=3500, memory_stall_pct=50) == 3500


def test_what_it_asks_for_of_other_resources_stays() -> None:
    named = Demand(named={ResourceName("network_mbps"): 7})
    found = demand_of(Usage(cpu_used_mhz=5), a_vm(demand=named), None)
    assert found == Demand(cpu_mhz=5, named={ResourceName("network_mbps"): 7})
