"""Values of the wrong type or range: each problem with its code, line and key."""

from __future__ import annotations

import pytest
from msgspec import inspect

from builders import suggested
from equipoise.errors import InvalidInput
from equipoise.files import parse_inventory
from equipoise.files.type_check import _CHECKS_BY_TYPE, type_noun
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem.problem import CaseFile
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.vm import VmState
from unit.files.sample_files import (
    brief,
    check_problem,
    only_problem,
    only_scenario_problem,
    problems,
    with_hosts,
)


def vm(fields: str) -> str:
    return with_hosts(f"vms:\n  - {{id: v1, vcpus: 1, memory_mib: 1024, host: h1, {fields}}}\n")


CASES = [
    (
        vm("cpu: {reservation_mhz: -5}"),
        "vms[0].cpu.reservation_mhz: out-of-range -5 0 1000000000",
    ),
    (
        vm("cpu: {shares: 10000001}"),
        "vms[0].cpu.shares: out-of-range 10000001 1 10000000",
    ),
    (
        vm("cpu: {shares: few}"),
        'vms[0].cpu.shares: wrong-type "few" 1 10000000',
    ),
    (
        vm('cpu: {shares: "10"}'),
        'vms[0].cpu.shares: wrong-type "10" 10',
    ),
    (
        vm("cpu: {shares: 1.5}"),
        "vms[0].cpu.shares: wrong-type 1.5 1 10000000",
    ),
    (
        vm("cpu: {shares: 4.0}"),
        "vms[0].cpu.shares: wrong-type 4.0 4",
    ),
    (
        vm("cpu: {shares: true}"),
        "vms[0].cpu.shares: wrong-type 1 10000000",
    ),
    (
        vm("cpu: {shares: .nan}"),
        "vms[0].cpu.shares: out-of-range",
    ),
    (
        vm("cpu: {shares: }"),
        "vms[0].cpu.shares: wrong-type 1 10000000",
    ),
    (vm("cpu: []"), "vms[0].cpu: wrong-type"),
    (
        vm("agent: yes"),
        'vms[0].agent: wrong-type "yes"',
    ),
    (
        vm("template: 12"),
        'vms[0].template: wrong-type 12 "12"',
    ),
    (
        vm("labels: {rack: 12}"),
        'vms[0].labels.rack: wrong-type 12 "12"',
    ),
    (
        vm("state: runing"),
        'vms[0].state: invalid-value "runing" "running"',
    ),
    (
        vm("state: 1"),
        "vms[0].state: wrong-type 1",
    ),
    (
        vm("pool: a b"),
        'vms[0].pool: invalid-name "a b" 128',
    ),
    (
        vm("consumption: {a b: 1}"),
        'vms[0].consumption["a b"]: invalid-name "a b" 128',
    ),
    (
        vm("cpu: {reservation_mh: 5}"),
        'vms[0].cpu.reservation_mh: unknown-key "reservation_mhz"',
    ),
    (
        vm("cpu: {zz: 5}"),
        "vms[0].cpu.zz: unknown-key",
    ),
]


@pytest.mark.parametrize(("content", "expected"), CASES)
def test_a_value_that_does_not_fit_is_reported(content: str, expected: str) -> None:
    check_problem(content, f"line 5: {expected}")


def allowed(cure: str) -> list[str]:
    """The values that a cure lists."""
    return cure.partition("allowed: ")[2].split(", ")


def test_a_cure_tells_what_to_write() -> None:
    def cure(text: str) -> str:
        return only_problem(vm(text)).cure

    assert cure("cpu: {shares: 4.0}").split()[-1] == "4"
    assert cure('cpu: {shares: "10"}').split()[-1] == "10"
    assert cure("template: 12").split()[-1] == '"12"'
    assert {"true", "false"} <= set(cure("agent: yes").split())
    assert suggested(cure("state: runing")) == "running"
    assert allowed(cure("state: runing")) == [state.value for state in VmState]


def test_a_missing_key_is_shown_at_its_element() -> None:
    content = with_hosts("vms:\n\n  - {id: v1, vcpus: 1, host: h1}\n")
    check_problem(content, "line 6: vms[0].memory_mib: missing-key 1 1000000000000")


def test_a_misspelled_key_is_one_problem() -> None:
    content = with_hosts("vms: [{id: v1, vcpus: 1, memory_mb: 1024, host: h1}]\n")
    check_problem(content, 'line 4: vms[0].memory_mb: unknown-key "memory_mib"')


def test_a_list_with_too_few_entries_is_reported() -> None:
    content = with_hosts("rules:\n  - {kind: keep_apart, id: r, vms: [v1]}\n")
    check_problem(content, "line 5: rules[0].vms: out-of-range 1 2 2")
    check_problem("hosts: []", "line 1: hosts: empty-value")


def test_the_closest_kind_of_rule_is_suggested() -> None:
    content = with_hosts("rules:\n  - kind: keep_appart\n    id: r\n    vms: [v1, v2]\n")
    check_problem(content, 'line 5: rules[0].kind: invalid-value "keep_appart" "keep_apart"')
    assert allowed(only_problem(content).cure) == [
        "keep_apart", "keep_together", "stay_within", "stay_off", "satisfy"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{id: r, vms: [a, b]}", "rules[0].kind: missing-key"),
        (
            "{kind: [1], id: r}",
            "rules[0].kind: wrong-type",
        ),
        ("7", "rules[0]: wrong-type 7"),
    ],
)
def test_an_entry_that_is_no_rule_is_reported(rule: str, expected: str) -> None:
    check_problem(with_hosts(f"rules: [{rule}]\n"), f"line 4: {expected}")


def test_an_unknown_action_gets_the_list_of_actions() -> None:
    plan = "id: p\nsteps:\n  - {id: s, end_ms: 5, action: {do: migrat, vm: v, source: a}}\n"
    expected = 'line 3: steps[0].action.do: invalid-value "migrat" "migrate"'
    check_problem(plan, expected, kind="plan")
    assert allowed(only_problem(plan, kind="plan").cure)[:2] == ["power_on", "power_off"]


def test_the_document_must_be_a_mapping() -> None:
    check_problem("- 1\n- 2\n", "line 1: wrong-type")
    check_problem("[1]", "line 1: wrong-type", "f.json")
    check_problem('"x"', 'line 1: wrong-type "x"', "f.json")
    check_problem("~", "line 1: wrong-type")


def test_an_empty_name_of_a_scenario_is_reported() -> None:
    content = 'name: ""\nduration_s: 1\ncluster:\n  ' + with_hosts("").replace("\n", "\n  ")
    check_problem(content, "line 1: name: empty-value", kind="scenario")


def test_all_problems_are_listed_in_the_order_of_their_lines() -> None:
    content = with_hosts("""\
        vms:
          - {id: v1, vcpus: 0, memory_mib: 1024, host: h1}
          - {id: v2, vcpus: 1, memory_mib: lots, host: h1}
          - {id: v3, vcpus: 1, memory_mib: 1024, host: h9}
          - {id: v4, vcpus: 1, memory_mib: 1024, host: h1, colour: red}
        rules:
          - {kind: keep_apart, id: r, vms: [v1, v3, v9]}
    """)
    found = [(problem.line, problem.key) for problem in problems(content)]
    assert found == [
        (5, "vms[0].vcpus"),
        (6, "vms[1].memory_mib"),
        (7, "vms[2].host"),
        (8, "vms[3].colour"),
        (10, "rules[0].vms[2]"),
    ]


def test_an_unreadable_element_is_still_known_by_its_id() -> None:
    content = """\
hosts:
  - {id: h1, cores: 0, mhz_per_core: 1000, memory_mib: 16384}
  - {id: h2, cores: 4, mhz_per_core: 1000, memory_mib: 16384}
vms:
  - {id: v1, vcpus: 1, memory_mib: 1024, host: h1}
"""
    assert only_problem(content).key == "hosts[0].cores"


def test_references_are_not_checked_when_their_list_is_missing() -> None:
    content = "hots: []\nvms:\n  - {id: v1, vcpus: 1, memory_mib: 1024, host: h1}\n"
    assert [problem.key for problem in problems(content)] == ["hots"]


def test_an_error_lists_at_most_a_hundred_problems() -> None:
    lines = "".join(f"  - {{id: v{i}, vcpus: 0, memory_mib: 1}}\n" for i in range(250))
    found = problems(with_hosts("vms:\n" + lines))
    assert len(found) == 101
    assert brief(found[-1]) == "more-problems 150"


def test_a_problem_never_prints_control_characters() -> None:
    content = with_hosts('vms:\n  - {id: "\\e[31m\\n\\u202e", vcpus: 1, memory_mib: 1}\n')
    check_problem(content, 'line 5: vms[0].id: invalid-name "\\x1b[31m\\n\\u202e" 128')
    long = only_problem(vm(f"state: {'x' * 9000}"))
    assert len(long.what) < 200


def test_the_message_names_the_file() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_inventory(vm("cpu: {reservation_mhz: -5}").encode(), "rack.yaml")
    assert str(caught.value) == (
        "rack.yaml: line 5: vms[0].cpu.reservation_mhz: "
        "-5 is below the allowed range (0 to 1000000000)"
    )


def is_unambiguous(kind: inspect.UnionType) -> bool:
    """Whether a union is of tagged records, of no record, or of a number and a record."""
    records = [branch for branch in kind.types if isinstance(branch, inspect.StructType)]
    rest = [branch for branch in kind.types if not isinstance(branch, inspect.StructType)]
    if not records or all(isinstance(branch, inspect.NoneType) for branch in rest):
        return len(records) < 2 or all(record.tag for record in records)
    number, record = kind.types[:2]
    return isinstance(number, inspect.FloatType) and records == [record]


LEVEL_CASES = [
    (
        "{lo: 1, high: 2}",
        '.lo: unknown-key "low"',
    ),
    (
        "{low: few, high: 2}",
        '.low: wrong-type "few" -1000000000000 1000000000000',
    ),
    (
        "{one_of: [1, 1.0e13]}",
        ".one_of[1]: out-of-range 10000000000000.0 -1000000000000 1000000000000",
    ),
    (
        "{mean: 1, sd: -1}",
        ".sd: out-of-range -1 0 1000000000000",
    ),
    (
        "1.0e13",
        ": out-of-range 10000000000000.0 -1000000000000 1000000000000",
    ),
    ('"10"', ': wrong-type "10" 10'),
    ("much", ': wrong-type "much" -1000000000000 1000000000000'),
    ("[1, 2]", ": wrong-type -1000000000000 1000000000000"),
    ("true", ": wrong-type -1000000000000 1000000000000"),
    ("", ": wrong-type -1000000000000 1000000000000"),
]


@pytest.mark.parametrize(("level", "expected"), LEVEL_CASES)
def test_a_level_is_a_number_or_a_distribution(level: str, expected: str) -> None:
    problem = only_scenario_problem(
        f"loads: {{web: {{cpu_mhz: [{{kind: constant, level: {level}}}]}}}}\n"
    )
    assert problem == f"line 10: loads.web.cpu_mhz[0].level{expected}"
    crashes = f"{{per_host_day: 1, back_after_s: {level or '~'}}}"
    problem = only_scenario_problem(f"faults: {{host_crashes: {crashes}}}\n")
    assert problem == f"line 10: faults.host_crashes.back_after_s{expected}"


def test_a_missing_level_is_reported() -> None:
    problem = only_scenario_problem("loads: {web: {cpu_mhz: [{kind: constant}]}}\n")
    assert problem == (
        "line 10: loads.web.cpu_mhz[0].level: missing-key -1000000000000 1000000000000"
    )


def test_a_load_of_an_unknown_kind_is_reported() -> None:
    problem = only_scenario_problem("loads: {web: {cpu_mhz: [{kind: constnt, level: 1}]}}\n")
    assert problem == ('line 10: loads.web.cpu_mhz[0].kind: invalid-value "constnt" "constant"')


def test_the_type_check_knows_every_type_of_the_model() -> None:
    seen: set[type] = set()
    records: set[type] = set()

    def visit(kind: object) -> None:
        if isinstance(kind, inspect.Field):
            visit(kind.type)
        elif isinstance(kind, inspect.Type):
            seen.add(type(kind))
            if isinstance(kind, inspect.StructType):
                if kind.cls in records:  # a record may contain its own class
                    return
                records.add(kind.cls)
            assert type_noun(kind)
            assert not any(getattr(kind, bound, None) for bound in ("gt", "lt", "multiple_of"))
            assert not isinstance(kind, inspect.UnionType) or is_unambiguous(kind)
            for name in kind.__struct_fields__:
                part = getattr(kind, name)
                for inner in part if isinstance(part, tuple) else (part,):
                    visit(inner)

    for file_type in (Inventory, Plan, Scenario, CaseFile):
        visit(inspect.type_info(file_type))
    assert seen - {inspect.NoneType} <= set(_CHECKS_BY_TYPE)


def test_an_unknown_key_does_not_hide_other_problems() -> None:
    content = with_hosts(
        "nme: x\nlimits: {actions_total: 0}\n"
        "vms:\n  - {id: v1, vcpus: 1, memory_mib: 1, host: nowhere}\n"
    )
    keys = {problem.key for problem in problems(content)}
    assert keys == {"nme", "limits.actions_total", "vms[0].host"}
    unknown = {problem.key for problem in problems(with_hosts("id: [.inf]\n"))}
    assert unknown == {"id", "id[0]"}
