"""Files with the measured usage of a VM in place of its demand."""

from __future__ import annotations

from textwrap import dedent

import pytest

from equipoise.files import json_schema, parse_case, parse_scenario
from equipoise.model.event import VmArrived
from equipoise.model.vm import Demand
from unit.files.sample_files import (
    HOSTS,
    SCENARIO,
    check_problem,
    problems,
    scenario_problems,
    some_hosts,
    some_vms,
    with_fleets,
)

COUNTED = "{cpu_used_mhz: 900, cpu_stall_pct: 10, pages_sampled: 100, pages_touched: 25}"


def with_usage(usage: str, more: str = "") -> str:
    """Two hosts, and a VM on line 5."""
    vm = f"{{id: v1, vcpus: 2, memory_mib: 1024, host: h1, usage: {usage}{more}}}"
    return HOSTS + f"vms:\n  - {vm}\n"


CASES = [
    ("{pages_sampled: 40, pages_touched: 41}", "pages_touched: out-of-range 41 40 40"),
    ("{pages_sampled: 0, pages_touched: 0}", "pages_sampled: out-of-range 0 1 10000000"),
    ("{pages_touched: 3}", "pages_sampled: missing-key"),
    ("{pages_sampled: 3}", "pages_touched: missing-key"),
    ("{cpu_used_mhz: 9, cpu_stall_pct: 100}", "cpu_stall_pct: out-of-range 100 0 99.99"),
    ("{memory_used_mib: 9, memory_stall_pct: -1}", "memory_stall_pct: out-of-range -1 0 99.99"),
    ("{cpu_used_mhz: 9, cpu_sleep_ms: 1, cpu_ready_ms: 1}", "cpu_run_ms: missing-key"),
    ("{cpu_stall_pct: 10}", "cpu_used_mhz: missing-key"),
    ("{memory_stall_pct: 10}", "memory_used_mib: missing-key"),
    (
        "{cpu_used_mhz: 9, cpu_stall_pct: 5, cpu_run_ms: 1, cpu_sleep_ms: 1, cpu_ready_ms: 1}",
        "cpu_stall_pct: contradiction",
    ),
    ("{memory_used_mib: 9, pages_sampled: 2, pages_touched: 1}", "memory_used_mib: contradiction"),
    ("{memory_used_mib: 1025}", "memory_used_mib: out-of-range 1025 1024 1024"),
]


@pytest.mark.parametrize(("usage", "expected"), CASES)
def test_inconsistent_figures_are_reported(usage: str, expected: str) -> None:
    check_problem(with_usage(usage), f"line 5: vms[0].usage.{expected}")


def test_the_ready_time_needs_the_other_times_and_the_use() -> None:
    keys = [problem.key for problem in problems(with_usage("{cpu_ready_ms: 5}"))]
    assert keys == [f"vms[0].usage.cpu_{key}" for key in ("run_ms", "sleep_ms", "used_mhz")]


@pytest.mark.parametrize("demand", ["cpu_mhz: 5", "memory_mib: 5"])
def test_demand_and_usage_exclude_each_other(demand: str) -> None:
    content = with_usage(COUNTED, f", demand: {{{demand}}}")
    check_problem(content, "line 5: vms[0].usage: contradiction")


def test_fleets_and_arriving_vms_may_have_usage() -> None:
    fleets = with_fleets(some_hosts(), some_vms(f", usage: {COUNTED}"))
    arrival = f"""\
        events:
          - event: vm_arrived
            at_ms: 5
            vm: {{id: new, vcpus: 1, memory_mib: 2048, host: esx-07, usage: {COUNTED}}}
        """
    scenario = parse_scenario((SCENARIO + fleets + dedent(arrival)).encode(), "f.yaml")
    (fleet,), (arrival_event,) = scenario.fleet.vms, scenario.events
    assert isinstance(arrival_event, VmArrived)
    assert fleet.like.demand == Demand(cpu_mhz=1000, memory_mib=256)
    assert arrival_event.vm.demand == Demand(cpu_mhz=1000, memory_mib=512)
    assert fleet.like.usage is arrival_event.vm.usage is None


def test_the_speed_of_the_host_limits_the_demand() -> None:
    counted = COUNTED.replace("10,", "50,")
    content = SCENARIO.replace("host: h1}", f"host: esx-01, usage: {counted}}}")
    scenario = parse_scenario((content + with_fleets(some_hosts())).encode(), "f.yaml")
    assert scenario.cluster.vms[0].demand.cpu_mhz == 1000, "one vCPU at 1,000 MHz limits the 1,800"


def test_the_usage_of_a_fleet_is_checked() -> None:
    like = ", usage: {pages_sampled: 1, pages_touched: 2}"
    (problem,) = scenario_problems(with_fleets(vms=some_vms(like)))
    assert problem == "line 12: fleet.vms[0].like.usage.pages_touched: out-of-range 2 1 1"


def test_the_demand_is_derived_in_a_case_too() -> None:
    cluster = "".join(f"  {line}\n" for line in with_usage(COUNTED).splitlines())
    case = parse_case(f"cluster:\n{cluster}".encode(), "f.yaml")
    assert case.cluster.vms[0].demand == Demand(cpu_mhz=1000, memory_mib=256)


def test_the_schema_describes_usage() -> None:
    definitions = json_schema("inventory")["$defs"]
    assert "description" in definitions["Vm"]["properties"]["usage"]
    assert definitions["VmUsage"]["properties"]["cpu_stall_pct"]["anyOf"][0]["maximum"] == 99.99
    assert "description" in definitions["Pool"]["properties"]["scalable"]
