"""Loads that make no sense: where, what and the cure."""

from __future__ import annotations

import pytest

from unit.model.files.file_texts import check_story, story_problems, the_story_problem

WAYS = "give one_of, or low and high, or mean and sd"


def with_part(part: str) -> str:
    """A load of one part, on line 12."""
    return f"loads:\n  web:\n    cpu_mhz: [{{{part}}}]\n"


SPREAD_CASES = [
    ("{}", "", "says nothing to draw from", WAYS),
    ("{one_of: []}", "", "says nothing to draw from", WAYS),
    ("{low: 1, high: 2, mean: 1}", "", "low, high and mean do not go together", WAYS),
    ("{one_of: [1], sd: 1}", "", "one_of and sd do not go together", WAYS),
    ("{low: 1}", ".high", "is missing beside low", "a number"),
    ("{high: 1}", ".low", "is missing beside high", "a number"),
    ("{sd: 1}", ".mean", "is missing beside sd", "a number"),
    ("{mean: 1}", ".sd", "is missing beside mean", "a number"),
    ("{low: 2.5, high: 2}", ".low", "2.5 is above high 2", "at most 2"),
]


@pytest.mark.parametrize(("spread", "key", "what", "cure"), SPREAD_CASES)
@pytest.mark.parametrize(
    ("part", "place"),
    [
        ("kind: constant, level: {}", "level"),
        ("kind: noise, period_s: 60, level: {}", "level"),
        ("kind: spike, at_s: 0, for_s: 1, level: {}", "level"),
        ("kind: pattern, high_s: 60, low_s: 60, low: 0, high: {}", "high"),
        ("kind: pattern, high_s: 60, low_s: 60, high: 9, low: {}", "low"),
        ("kind: steps, points: [{{at_s: 0, level: {}}}]", "points[0].level"),
    ],
)
def test_a_number_is_drawn_in_one_way(
    part: str, place: str, spread: str, key: str, what: str, cure: str
) -> None:
    expected = f"line 12: loads.web.cpu_mhz[0].{place}{key}: {what} ({cure})"
    assert the_story_problem(with_part(part.format(spread))) == expected


@pytest.mark.parametrize(
    "spread", ["{one_of: [5, -5]}", "{low: -1, high: -1}", "{low: 0, high: 3}", "{mean: 0, sd: 0}"]
)
def test_each_of_the_three_ways_is_enough(spread: str) -> None:
    check_story(with_part(f"kind: noise, period_s: 60, level: {spread}"))


PART_CASES = [
    (
        "kind: steps, points: [{at_s: 5, level: 1}, {at_s: 5, level: 2}]",
        "[0].points[1].at_s: 5 is not after the point before it, 5 (more than 5)",
    ),
    (
        "kind: steps, points: [{at_s: 5, level: 1}, {at_s: 4, level: 2}]",
        "[0].points[1].at_s: 4 is not after the point before it, 5 (more than 5)",
    ),
    ("kind: diurnal, low: 9, high: 8.5", "[0].low: 9 is above high 8.5 (at most 8.5)"),
    (
        "kind: spike, level: 1, at_s: 0, for_s: 61, every_s: 60",
        "[0].for_s: 61 is longer than every_s 60 (at most 60, or raise every_s)",
    ),
    (
        "kind: constant, level: -1",
        ": all parts together are always below zero (a level of zero or more)",
    ),
    (
        "kind: constant, level: {one_of: [-1, -2]}}, {kind: constant, level: {low: -9, high: 0.5}",
        ": all parts together are always below zero (a level of zero or more)",
    ),
]


@pytest.mark.parametrize(("part", "told"), PART_CASES)
def test_a_part_that_contradicts_itself(part: str, told: str) -> None:
    assert the_story_problem(with_part(part)) == f"line 12: loads.web.cpu_mhz{told}"


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
def test_parts_that_are_right(part: str) -> None:
    check_story(with_part(part))


def test_memory_is_given_in_one_unit() -> None:
    told = the_story_problem("""\
        loads:
          web:
            memory_mib: [{kind: constant, level: 5}]
            memory_pct: [{kind: constant, level: 5}]
        """)
    assert told == (
        "line 13: loads.web.memory_pct: memory_mib is given as well (keep one of the two)"
    )


def test_loads_and_those_who_have_them_must_exist() -> None:
    told = story_problems("""\
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
        happenings:
          - {event: vm_arrived, at_ms: 5, vm: {id: late, vcpus: 1, memory_mib: 1, state: ready}}
        """)
    among = "the loads are: web, unused"
    vms = "v1, crowd-1, crowd-2, crowd-3, crowd-4, crowd-5, crowd-6, crowd-7, crowd-8, crowd-9"
    assert told == [
        f'line 14: vm_loads.v1: there is no load "webb" (did you mean "web"? {among})',
        f'line 15: vm_loads.v2: there is no VM "v2" (the VMs are: {vms})',
        (
            'line 16: vm_loads["crowd-1"]: "crowd-1" is one of the fleet "crowd" '
            "(give the load to the fleet, or list the VM in the cluster)"
        ),
        f'line 20: fleet.vms[0].load: there is no load "wbe" (did you mean "web"? {among})',
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
def test_a_load_that_never_ends(part: str, key: str, changes: int) -> None:
    given = f"{{{part.format(1)}}}"
    if changes <= 10**9:  # by itself it is slow, but it ends
        check_story(CROWD + f"    cpu_mhz: [{given}]\n")
        given = f"{given}, {given}, {given}"
    told = story_problems(CROWD + f"    cpu_mhz: [{given}]\n")
    what = f"a load that never ends: {changes} changes over the whole run"
    last = given.count("kind") - 1
    assert told[0] == f"line 15: loads.busy.cpu_mhz[{last}].{key}: {what} (a longer {key})"
    check_story(CROWD + f"    cpu_mhz: [{{{part.format(5)}}}]\n")


def test_a_load_that_nobody_has_never_runs() -> None:
    part = "{kind: diurnal, low: 0, high: 1, every_s: 1}"
    idle = f"  idle:\n    cpu_mhz: [{part}, {part}]\n"
    check_story(CROWD + "    {}\n" + idle)
    assert len(story_problems(CROWD + f"    cpu_mhz: [{part}, {part}]\n" + idle)) == 1


def test_what_is_wrong_in_the_form_does_not_hide_what_contradicts() -> None:
    told = story_problems("""\
        loads:
          web:
            cpu_mhz:
              - {kind: constnt, level: 5}
              - {kind: diurnal, low: 9, high: 8}
        vm_loads: {v1: web}
        """)
    assert [one.split(":")[1].strip() for one in told] == [
        "loads.web.cpu_mhz[0].kind",
        "loads.web.cpu_mhz[1].low",
    ]
    told = story_problems("loads: {web: 5}\nvm_loads: {v1: web, v9: web}\n")
    assert len(told) == 1, "a load that cannot be read is not one that is not there"
