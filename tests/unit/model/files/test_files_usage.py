"""Files that say what was counted of a VM instead of what it asks for."""

from __future__ import annotations

from textwrap import dedent

import pytest

from equipoise.errors import Problem
from equipoise.model.event import VmArrived
from equipoise.model.files import parse_case, parse_scenario, schema
from equipoise.model.vm import Demand
from unit.model.files.file_texts import (
    HOSTS,
    STORY,
    problems,
    some_hosts,
    some_vms,
    story_problems,
    the_problem,
    with_fleets,
)

COUNTED = "{cpu_used_mhz: 900, cpu_stall_pct: 10, pages_sampled: 100, pages_touched: 25}"
ALL_OR_NONE = "the three times are of one interval: give all, or none"


def with_usage(usage: str, more: str = "") -> str:
    """Two hosts, and a VM on line 5."""
    vm = f"{{id: v1, vcpus: 2, memory_mib: 1024, host: h1, usage: {usage}{more}}}"
    return HOSTS + f"vms:\n  - {vm}\n"


CASES = [
    (
        "{pages_sampled: 40, pages_touched: 41}",
        "pages_touched",
        "41 is more than pages_sampled 40",
        "at most 40",
    ),
    (
        "{pages_sampled: 0, pages_touched: 0}",
        "pages_sampled",
        "0 is below the allowed range",
        "1 to 10000000",
    ),
    (
        "{pages_touched: 3}",
        "pages_sampled",
        "is missing, though pages_touched is given",
        "give both, or none",
    ),
    (
        "{pages_sampled: 3}",
        "pages_touched",
        "is missing, though pages_sampled is given",
        "give both, or none",
    ),
    (
        "{cpu_used_mhz: 9, cpu_stall_pct: 100}",
        "cpu_stall_pct",
        "100 is above the allowed range",
        "0 to 99.99",
    ),
    (
        "{memory_used_mib: 9, memory_stall_pct: -1}",
        "memory_stall_pct",
        "-1 is below the allowed range",
        "0 to 99.99",
    ),
    (
        "{cpu_used_mhz: 9, cpu_sleep_ms: 1, cpu_ready_ms: 1}",
        "cpu_run_ms",
        "is missing, though cpu_sleep_ms is given",
        ALL_OR_NONE,
    ),
    (
        "{cpu_stall_pct: 10}",
        "cpu_used_mhz",
        "is missing, though cpu_stall_pct is given",
        "give what it used, on the average",
    ),
    (
        "{memory_stall_pct: 10}",
        "memory_used_mib",
        "is missing, though memory_stall_pct is given",
        "give what it had in memory",
    ),
    (
        "{cpu_used_mhz: 9, cpu_stall_pct: 5, cpu_run_ms: 1, cpu_sleep_ms: 1, cpu_ready_ms: 1}",
        "cpu_stall_pct",
        "the same is told by cpu_run_ms",
        "leave one of them out: cpu_stall_pct or cpu_run_ms, cpu_sleep_ms, cpu_ready_ms",
    ),
    (
        "{memory_used_mib: 9, pages_sampled: 2, pages_touched: 1}",
        "memory_used_mib",
        "the same is told by pages_sampled",
        "leave one of them out: memory_used_mib or pages_sampled, pages_touched",
    ),
    (
        "{memory_used_mib: 1025}",
        "memory_used_mib",
        "1025 is above the configured memory_mib 1024",
        "at most 1024, or raise memory_mib",
    ),
]


@pytest.mark.parametrize(("usage", "key", "what", "cure"), CASES)
def test_figures_that_make_no_sense_are_refused_with_the_cure(
    usage: str, key: str, what: str, cure: str
) -> None:
    expected = Problem(key=f"vms[0].usage.{key}", what=what, cure=cure, line=5)
    assert the_problem(with_usage(usage)) == expected


def test_ready_alone_needs_all_the_others() -> None:
    keys = [problem.key for problem in problems(with_usage("{cpu_ready_ms: 5}"))]
    assert keys == [f"vms[0].usage.cpu_{key}" for key in ("run_ms", "sleep_ms", "used_mhz")]


@pytest.mark.parametrize("demand", ["cpu_mhz: 5", "memory_mib: 5"])
def test_demand_and_usage_together_are_refused(demand: str) -> None:
    assert the_problem(with_usage(COUNTED, f", demand: {{{demand}}}")) == Problem(
        key="vms[0].usage",
        what="the VM has a demand as well",
        cure="leave demand out: it follows from what was counted",
        line=5,
    )


def test_in_a_scenario_fleets_and_newcomers_may_have_usage_too() -> None:
    fleets = with_fleets(some_hosts(), some_vms(f", usage: {COUNTED}"))
    arrival = f"""\
        happenings:
          - event: vm_arrived
            at_ms: 5
            vm: {{id: new, vcpus: 1, memory_mib: 2048, host: esx-07, usage: {COUNTED}}}
        """
    scenario = parse_scenario((STORY + fleets + dedent(arrival)).encode(), "f.yaml")
    (fleet,), (happening,) = scenario.fleet.vms, scenario.happenings
    assert isinstance(happening, VmArrived)
    assert fleet.like.demand == Demand(cpu_mhz=1000, memory_mib=256)
    assert happening.vm.demand == Demand(cpu_mhz=1000, memory_mib=512)
    assert fleet.like.usage is happening.vm.usage is None


def test_on_a_member_of_a_fleet_its_speed_is_the_most_that_is_reckoned() -> None:
    counted = COUNTED.replace("10,", "50,")
    story = STORY.replace("host: h1}", f"host: esx-01, usage: {counted}}}")
    scenario = parse_scenario((story + with_fleets(some_hosts())).encode(), "f.yaml")
    assert scenario.cluster.vms[0].demand.cpu_mhz == 1000, "of 1,800, one vCPU at 1,000"


def test_in_a_scenario_it_is_checked_as_well() -> None:
    like = ", usage: {pages_sampled: 1, pages_touched: 2}"
    (problem,) = story_problems(with_fleets(vms=some_vms(like)))
    assert "fleet.vms[0].like.usage.pages_touched: 2 is more than pages_sampled 1" in problem


def test_in_a_case_the_demand_follows_as_well() -> None:
    cluster = "".join(f"  {line}\n" for line in with_usage(COUNTED).splitlines())
    case = parse_case(f"cluster:\n{cluster}".encode(), "f.yaml")
    assert case.cluster.vms[0].demand == Demand(cpu_mhz=1000, memory_mib=256)


def test_editors_are_told_of_it() -> None:
    made = schema("inventory")["$defs"]
    assert "description" in made["Vm"]["properties"]["usage"]
    assert made["Usage"]["properties"]["cpu_stall_pct"]["anyOf"][0]["maximum"] == 99.99
    assert "description" in made["Pool"]["properties"]["scalable"]
