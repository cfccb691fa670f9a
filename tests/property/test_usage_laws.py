"""Laws of the demand that is derived from measured usage."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import a_host, a_vm, an_inventory
from equipoise.files import find_problems, parse_inventory, to_json, to_yaml
from equipoise.model.inventory import Inventory
from equipoise.model.vm import CpuSettings, MemorySettings, Vm, VmUsage, demand_from_usage

SIZE = 4096
spans = st.integers(0, 10**5) | st.sampled_from([0, 1, 10**15])
stalls = st.floats(0, 99.99) | st.sampled_from([0, 50, 99.99])
speeds = st.none() | st.integers(1, 10**6)
some_used = st.integers(0, 9000) | st.sampled_from([0, 10**9])


@st.composite
def usages(draw: st.DrawFn) -> VmUsage:
    """Valid usage counters of a file."""
    counters: dict[str, Any] = {}
    cpu, memory = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    if cpu:
        counters["cpu_used_mhz"] = draw(some_used)
    if cpu == 2:
        counters |= {f"cpu_{what}_ms": draw(spans) for what in ("run", "sleep", "ready")}
    if cpu == 3:
        counters["cpu_stall_pct"] = draw(stalls)
    if memory == 1:
        sampled = draw(st.integers(1, 10**7))
        counters |= {"pages_sampled": sampled, "pages_touched": draw(st.integers(0, sampled))}
    if memory > 1:
        counters["memory_used_mib"] = draw(st.integers(0, SIZE))
    if memory > 2:
        counters["memory_stall_pct"] = draw(stalls)
    return VmUsage(**counters)


@st.composite
def some_vms(draw: st.DrawFn) -> Vm:
    return a_vm(
        "v1",
        "h1",
        vcpus=draw(st.sampled_from([1, 2, 64, 10**5])),
        memory_mib=SIZE,
        cpu=CpuSettings(limit_mhz=draw(st.none() | st.integers(0, 9000))),
        memory=MemorySettings(limit_mib=draw(st.none() | st.integers(0, SIZE))),
    )


@given(usages(), some_vms(), speeds)
def test_demand_is_between_the_use_and_the_limits(
    usage: VmUsage, vm: Vm, speed: int | None
) -> None:
    demand = demand_from_usage(usage, vm, speed)
    used = usage.cpu_used_mhz or 0
    can_use = 10**9 if speed is None else vm.vcpus * speed
    limit = 10**9 if vm.cpu.limit_mhz is None else vm.cpu.limit_mhz
    assert used <= demand.cpu_mhz <= max(used, min(can_use, limit, 10**9))
    assert (usage.memory_used_mib or 0) <= demand.memory_mib <= SIZE


@given(usages(), some_vms(), speeds, spans)
def test_a_longer_ready_time_never_lowers_the_demand(
    usage: VmUsage, vm: Vm, speed: int | None, longer: int
) -> None:
    if usage.cpu_ready_ms is not None:
        more = usage.but(cpu_ready_ms=usage.cpu_ready_ms + longer)
        assert (
            demand_from_usage(more, vm, speed).cpu_mhz
            >= demand_from_usage(usage, vm, speed).cpu_mhz
        )


@given(usages(), some_vms(), speeds, stalls, stalls)
def test_a_longer_stall_never_lowers_the_demand(
    usage: VmUsage, vm: Vm, speed: int | None, first: float, second: float
) -> None:
    demands = [
        demand_from_usage(usage.but(cpu_stall_pct=stall, memory_stall_pct=stall), vm, speed)
        for stall in sorted((first, second))
    ]
    assert demands[0].cpu_mhz <= demands[1].cpu_mhz
    assert demands[0].memory_mib <= demands[1].memory_mib


@given(usages(), some_vms(), st.integers(1, 1000))
def test_the_length_of_the_interval_does_not_change_the_demand(
    usage: VmUsage, vm: Vm, times: int
) -> None:
    if usage.cpu_ready_ms is not None:
        longer = usage.but(
            cpu_run_ms=times * (usage.cpu_run_ms or 0),
            cpu_sleep_ms=times * (usage.cpu_sleep_ms or 0),
            cpu_ready_ms=times * usage.cpu_ready_ms,
        )
        demand = demand_from_usage(longer, vm, 2600).cpu_mhz
        assert abs(demand - demand_from_usage(usage, vm, 2600).cpu_mhz) <= 1, "up to rounding"


@given(usages(), some_vms())
def test_a_file_with_usage_equals_a_file_with_the_derived_demand(usage: VmUsage, vm: Vm) -> None:
    host = a_host("h1", mhz_per_core=2600)
    with_usage = an_inventory(host, vms=[vm.but(usage=usage)])
    with_demand = an_inventory(host, vms=[vm.but(demand=demand_from_usage(usage, vm, 2600))])
    assert find_problems(with_usage) == []
    for read in both(with_usage):
        assert read == with_demand
        assert list(both(read)) == [read, read], "writing and reading again changes nothing"


def both(inventory: Inventory) -> list[Inventory]:
    return [
        parse_inventory(to_yaml(inventory).encode(), "f.yaml"),
        parse_inventory(to_json(inventory).encode(), "f.json"),
    ]
