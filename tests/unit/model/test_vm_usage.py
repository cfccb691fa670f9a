"""Demand derived from usage counters, with worked numbers."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_vm
from equipoise.model.quantity import ResourceName
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, VmUsage, demand_from_usage


def cpu(vcpus: int = 2, mhz: int | None = 2600, limit: int | None = None, **counters: Any) -> int:
    vm = a_vm(vcpus=vcpus, cpu=CpuSettings(limit_mhz=limit))
    return demand_from_usage(VmUsage(**counters), vm, mhz).cpu_mhz


def memory(size: int, limit: int | None = None, **counters: Any) -> int:
    vm = a_vm(memory_mib=size, memory=MemorySettings(limit_mib=limit))
    return demand_from_usage(VmUsage(**counters), vm, 2600).memory_mib


def times(run: int, sleep: int, ready: int) -> dict[str, int]:
    return {"cpu_run_ms": run, "cpu_sleep_ms": sleep, "cpu_ready_ms": ready}


def test_equation_1_adds_the_lost_part_of_the_ready_time() -> None:
    """Two vCPUs in 20 s: they ran for 10 s at 2,600 MHz, slept for 20 s and were queued for 10 s.

    While not queued they ran a third of the time. So they would have run 3.33 s more, and the
    demand is (10 + 3.33) s of 20 s at 2,600 MHz.
    """
    used = 2600 * 10 // 20
    of_the_paper = 2600 * (10 + 10 / (10 + 20) * 10) / 20
    demand = cpu(cpu_used_mhz=used, **times(10_000, 20_000, 10_000))
    assert demand == round(of_the_paper) == 1733


def test_a_vm_that_never_sleeps_would_run_all_the_time() -> None:
    assert cpu(cpu_used_mhz=1300, **times(10_000, 0, 30_000)) == 5200


def test_the_demand_of_a_vm_that_was_never_queued_is_its_use() -> None:
    assert cpu(cpu_used_mhz=1300, **times(10_000, 30_000, 0)) == 1300
    assert cpu(cpu_used_mhz=1300) == 1300


def test_a_vm_that_slept_and_never_ran_has_no_demand() -> None:
    assert cpu(cpu_used_mhz=0, **times(0, 39_000, 1000)) == 0


def test_a_vm_that_was_always_queued_demands_all_it_can_use_if_that_is_known() -> None:
    assert cpu(cpu_used_mhz=0, **times(0, 0, 40_000)) == 5200
    assert cpu(cpu_used_mhz=0, limit=900, **times(0, 0, 40_000)) == 900
    assert cpu(cpu_used_mhz=0, mhz=None, **times(0, 0, 40_000)) == 0
    assert cpu(cpu_used_mhz=0, mhz=None, limit=900, **times(0, 0, 40_000)) == 0


def test_missing_counters_give_no_demand() -> None:
    assert cpu() == cpu(cpu_used_mhz=0, **times(0, 0, 0)) == 0
    assert cpu(cpu_used_mhz=700, **times(0, 0, 0)) == 700
    assert memory(4096) == 0


@pytest.mark.parametrize(
    ("waits", "demand"), [({"cpu_stall_pct": 80}, 6500), (times(20_000, 0, 80_000), 6500)]
)
def test_a_derived_demand_is_limited_to_what_the_vm_can_use(
    waits: dict[str, Any], demand: int
) -> None:
    assert cpu(cpu_used_mhz=1300, mhz=None, **waits) == demand
    assert cpu(cpu_used_mhz=1300, **waits) == 5200
    assert cpu(cpu_used_mhz=1300, limit=2000, **waits) == 2000
    assert cpu(cpu_used_mhz=1300, mhz=None, limit=2000, **waits) == 2000


def test_a_measured_use_above_the_nominal_speed_counts() -> None:
    assert cpu(cpu_used_mhz=5500, cpu_stall_pct=10) == 5500, (
        "CPUs exceed their nominal speed at times"
    )


def test_a_vm_that_was_stalled_a_tenth_of_the_time_got_nine_tenths() -> None:
    assert cpu(cpu_used_mhz=900, cpu_stall_pct=10) == 1000
    assert cpu(cpu_used_mhz=900, cpu_stall_pct=0) == 900
    assert memory(4096, memory_used_mib=1800, memory_stall_pct=10) == 2000


def test_two_fifths_of_the_pages_of_16_gib_are_6_4_gib() -> None:
    demand = memory(16 * 1024, pages_sampled=100, pages_touched=40)
    assert demand == round(6.4 * 1024)


def test_memory_demand_is_at_most_the_size_of_the_vm() -> None:
    assert memory(4096, pages_sampled=7, pages_touched=7) == 4096
    assert memory(4096, memory_used_mib=4000, memory_stall_pct=50) == 4096
    assert memory(4096, 3000, memory_used_mib=2000, memory_stall_pct=50) == 3000
    assert memory(4096, 3000, memory_used_mib=3500, memory_stall_pct=50) == 3500


def test_the_demand_for_named_resources_stays() -> None:
    named = Demand(named={ResourceName("network_mbps"): 7})
    demand = demand_from_usage(VmUsage(cpu_used_mhz=5), a_vm(demand=named), None)
    assert demand == Demand(cpu_mhz=5, named={ResourceName("network_mbps"): 7})
