"""Laws of the demand that follows from what was counted."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import a_host, a_vm, an_inventory
from equipoise.model.files import parse_inventory, problems_of, to_json, to_yaml
from equipoise.model.inventory import Inventory
from equipoise.model.usage import Usage, demand_of
from equipoise.model.vm import CpuSettings, MemorySettings, Vm

SIZE = 4096
spans = st.integers(0, 10**5) | st.sampled_from([0, 1, 10**15])
stalls = st.floats(0, 99.99) | st.sampled_from([0, 50, 99.99])
speeds = st.none() | st.integers(1, 10**6)
some_used = st.integers(0, 9000) | st.sampled_from([0, 10**9])


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Figures that a file may have."""
    figures: dict[str, Any] = {}
    cpu, memory = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    if cpu:
        figures["cpu_used_mhz"] = draw(some_used)
    if cpu == 2:
        figures |= {f"cpu_{what}_ms": draw(spans) for what in ("run", "sleep", "ready")}
    if cpu == 3:
        figures["cpu_stall_pct"] = draw(stalls)
    if memory == 1:
        sampled = draw(st.integers(1, 10**7))
        figures |= {"pages_sampled": sampled, "pages_touched": draw(st.integers(0, sampled))}
    if memory > 1:
        figures["memory_used_mib"] = draw(st.integers(0, SIZE))
    if memory > 2:
        figures["memory_stall_pct"] = draw(stalls)
    return Usage(**figures)


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
def test_nobody_asks_for_less_than_it_used_nor_for_more_than_it_can_use(
    usage: Usage, vm: Vm, speed: int | None
) -> None:
    found = demand_of(usage, vm, speed)
    used = usage.cpu_used_mhz or 0
    can_use = 10**9 if speed is None else vm.vcpus * speed
    limit = 10**9 if vm.cpu.limit_mhz is None else vm.cpu.limit_mhz
    assert used <= found.cpu_mhz <= max(used, min(can_use, limit, 10**9))
    assert (usage.memory_used_mib or 0) <= found.memory_mib <= SIZE


@given(usages(), some_vms(), speeds, spans)
def test_who_was_queued_longer_asks_for_no_less(
    usage: Usage, vm: Vm, speed: int | None, longer: int
) -> None:
    if usage.cpu_ready_ms is not None:
        more = usage.but(cpu_ready_ms=usage.cpu_ready_ms + longer)
        assert demand_of(more, vm, speed).cpu_mhz >= demand_of(usage, vm, speed).cpu_mhz


@given(usages(), some_vms(), speeds, stalls, stalls)
def test_who_was_stalled_longer_asks_for_no_less(
    usage: Usage, vm: Vm, speed: int | None, one: float, other: float
) -> None:
    found = [
        demand_of(usage.but(cpu_stall_pct=stall, memory_stall_pct=stall), vm, speed)
        for stall in sorted((one, other))
    ]
    assert found[0].cpu_mhz <= found[1].cpu_mhz
    assert found[0].memory_mib <= found[1].memory_mib


@given(usages(), some_vms(), st.integers(1, 1000))
def test_it_does_not_matter_how_long_the_interval_is(usage: Usage, vm: Vm, times: int) -> None:
    if usage.cpu_ready_ms is not None:
        longer = usage.but(
            cpu_run_ms=times * (usage.cpu_run_ms or 0),
            cpu_sleep_ms=times * (usage.cpu_sleep_ms or 0),
            cpu_ready_ms=times * usage.cpu_ready_ms,
        )
        found = demand_of(longer, vm, 2600).cpu_mhz
        assert abs(found - demand_of(usage, vm, 2600).cpu_mhz) <= 1, "but for the last bit"


@given(usages(), some_vms())
def test_a_file_with_usage_reads_as_one_with_the_demand_that_follows(usage: Usage, vm: Vm) -> None:
    host = a_host("h1", mhz_per_core=2600)
    counted = an_inventory(host, vms=[vm.but(usage=usage)])
    asked = an_inventory(host, vms=[vm.but(demand=demand_of(usage, vm, 2600))])
    assert problems_of(counted) == []
    for read in both(counted):
        assert read == asked
        assert list(both(read)) == [read, read], "and what was read is the same once written"


def both(inventory: Inventory) -> list[Inventory]:
    return [
        parse_inventory(to_yaml(inventory).encode(), "f.yaml"),
        parse_inventory(to_json(inventory).encode(), "f.json"),
    ]
