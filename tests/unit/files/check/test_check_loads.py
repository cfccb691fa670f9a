"""Inconsistent loads: each problem with its code, line and key."""

from __future__ import annotations

import pytest

from unit.files.sample_files import check_valid_scenario, only_scenario_problem, scenario_problems


def with_part(part: str) -> str:
    """A load of one part, on line 12."""
    return f"loads:\n  web:\n    cpu_mhz: [{{{part}}}]\n"


DISTRIBUTION_CASES = [
    ("{}", ": empty-value"),
    ("{one_of: []}", ": empty-value"),
    ("{low: 1, high: 2, mean: 1}", ": contradiction"),
    ("{one_of: [1], sd: 1}", ": contradiction"),
    ("{low: 1}", ".high: missing-key"),
    ("{high: 1}", ".low: missing-key"),
    ("{sd: 1}", ".mean: missing-key"),
    ("{mean: 1}", ".sd: missing-key"),
    ("{low: 2.5, high: 2}", ".low: out-of-range 2.5 2 2"),
]


@pytest.mark.parametrize(("distribution", "expected"), DISTRIBUTION_CASES)
@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("kind: constant, level: {}", "level"),
        ("kind: noise, period_s: 60, level: {}", "level"),
        ("kind: spike, at_s: 0, for_s: 1, level: {}", "level"),
        ("kind: pattern, high_s: 60, low_s: 60, low: 0, high: {}", "high"),
        ("kind: pattern, high_s: 60, low_s: 60, high: 9, low: {}", "low"),
        ("kind: steps, points: [{{at_s: 0, level: {}}}]", "points[0].level"),
    ],
)
def test_a_distribution_is_given_in_exactly_one_way(
    part: str, key: str, distribution: str, expected: str
) -> None:
    problem = only_scenario_problem(with_part(part.format(distribution)))
    assert problem == f"line 12: loads.web.cpu_mhz[0].{key}{expected}"


@pytest.mark.parametrize(
    "distribution",
    ["{one_of: [5, -5]}", "{low: -1, high: -1}", "{low: 0, high: 3}", "{mean: 0, sd: 0}"],
)
def test_each_way_to_give_a_distribution_is_enough(distribution: str) -> None:
    check_valid_scenario(with_part(f"kind: noise, period_s: 60, level: {distribution}"))


PART_CASES = [
    (
        "kind: steps, points: [{at_s: 5, level: 1}, {at_s: 5, level: 2}]",
        "[0].points[1].at_s: out-of-range 5 5 5",
    ),
    (
        "kind: steps, points: [{at_s: 5, level: 1}, {at_s: 4, level: 2}]",
        "[0].points[1].at_s: out-of-range 4 5 5",
    ),
    ("kind: diurnal, low: 9, high: 8.5", "[0].low: out-of-range 9 8.5 8.5"),
    (
        "kind: spike, level: 1, at_s: 0, for_s: 61, every_s: 60",
        "[0].for_s: out-of-range 61 60 60",
    ),
    (
        "kind: constant, level: -1",
        ": out-of-range",
    ),
    (
        "kind: constant, level: {one_of: [-1, -2]}}, {kind: constant, level: {low: -9, high: 0.5}",
        ": out-of-range",
    ),
]


@pytest.mark.parametrize(("part", "expected"), PART_CASES)
def test_an_inconsistent_part_is_reported(part: str, expected: str) -> None:
    assert only_scenario_problem(with_part(part)) == f"line 12: loads.web.cpu_mhz{expected}"


@pytest.mark.parametrize(
    "part",
    [
        "kind: constant, level: 0",
        "kind: constant, level: {mean: -5, sd: 1}",
        "kind: constant, level: -5}, {kind: noise, level: {low: -1, high: 9}, period_s: 60",
        "kind: steps, points: [{at_s: 0, level: 1}, {at_s: 1, level: 0}]",
        "kind: diurnal, low: 5, high: 5",
        "kind: spike, level: 1, at_s: 0, for_s: 60, every_s: 60",
        "kind: spike, level: 1, at_s: 0, for_s: 61",
        "kind: trace, file: /var/traces/web.csv",
        "kind: trace, file: ../web.parquet, time: t, value: mhz, time_per_s: 1000, repeat: true",
    ],
)
def test_valid_parts_are_accepted(part: str) -> None:
    check_valid_scenario(with_part(part))


def test_memory_is_given_in_one_unit() -> None:
    problem = only_scenario_problem("""\
        loads:
          web:
            memory_mib: [{kind: constant, level: 5}]
            memory_pct: [{kind: constant, level: 5}]
        """)
    assert problem == "line 13: loads.web.memory_pct: contradiction"


def test_loads_and_their_vms_must_exist() -> None:
    found = scenario_problems("""\
        loads:
          web: {cpu_mhz: [{kind: constant, level: 5}]}
          unused: {}
        vm_loads:
          v1: webb
          v2: web
          crowd-1: web
          late: web
        fleet:
          vms:
            - {count: 9, like: {id: crowd, vcpus: 1, memory_mib: 1024}, load: wbe}
        events:
          - {event: vm_arrived, at_ms: 5, vm: {id: late, vcpus: 1, memory_mib: 1, state: ready}}
        """)
    assert found == [
        'line 14: vm_loads.v1: unknown-name "webb" "web"',
        'line 15: vm_loads.v2: unknown-name "v2"',
        'line 16: vm_loads["crowd-1"]: contradiction "crowd-1" "crowd"',
        'line 20: fleet.vms[0].load: unknown-name "wbe" "web"',
    ]


CROWD = """\
fleet:
  vms: [{count: 1000, like: {id: crowd, vcpus: 1, memory_mib: 1}, load: busy}]
vm_loads: {v1: busy}
loads:
  busy:
"""
"""1001 VMs for 864000 seconds; the load is on line 15."""


@pytest.mark.parametrize(
    ("part", "key", "changes"),
    [
        ("kind: diurnal, low: 0, high: 1, every_s: {}", "every_s", 864864000),
        ("kind: noise, level: {{low: 0, high: 1}}, period_s: {}", "period_s", 864864000),
        ("kind: pattern, high: 1, low: 0, low_s: 1, high_s: {}", "high_s", 864864000),
        (
            "kind: pattern, high: {{mean: 1, sd: 1}}, low: 0, low_s: 9, high_s: 9, redraw_s: {}",
            "redraw_s",
            480480000,
        ),
        ("kind: spike, at_s: 0, for_s: 1, level: 9, every_s: {}", "every_s", 1729728000),
    ],
)
def test_a_load_with_too_many_changes_is_reported(part: str, key: str, changes: int) -> None:
    given = f"{{{part.format(1)}}}"
    if changes <= 10**9:  # one such part is allowed
        check_valid_scenario(CROWD + f"    cpu_mhz: [{given}]\n")
        given = f"{given}, {given}, {given}"
    found = scenario_problems(CROWD + f"    cpu_mhz: [{given}]\n")
    last = given.count("kind") - 1
    assert found[0] == (
        f"line 15: loads.busy.cpu_mhz[{last}].{key}: too-large {changes} 1000000000"
    )
    check_valid_scenario(CROWD + f"    cpu_mhz: [{{{part.format(5)}}}]\n")


def test_changes_of_an_unused_load_do_not_count() -> None:
    part = "{kind: diurnal, low: 0, high: 1, every_s: 1}"
    idle = f"  idle:\n    cpu_mhz: [{part}, {part}]\n"
    check_valid_scenario(CROWD + "    {}\n" + idle)
    assert len(scenario_problems(CROWD + f"    cpu_mhz: [{part}, {part}]\n" + idle)) == 1


def test_a_wrong_type_does_not_hide_an_inconsistent_part() -> None:
    found = scenario_problems("""\
        loads:
          web:
            cpu_mhz:
              - {kind: constnt, level: 5}
              - {kind: diurnal, low: 9, high: 8}
        vm_loads: {v1: web}
        """)
    assert found == [
        'line 13: loads.web.cpu_mhz[0].kind: invalid-value "constnt" "constant"',
        "line 14: loads.web.cpu_mhz[1].low: out-of-range 9 8 8",
    ]
    found = scenario_problems("loads: {web: 5}\nvm_loads: {v1: web, v9: web}\n")
    assert len(found) == 1, "an unreadable load is not reported as unknown"
