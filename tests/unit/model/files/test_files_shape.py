"""Values that do not fit: where, what and the cure."""

from __future__ import annotations

import pytest
from msgspec import inspect

from equipoise.errors import InvalidInput, Problem
from equipoise.model.case import CaseFile
from equipoise.model.files import parse_inventory
from equipoise.model.files.kinds import noun
from equipoise.model.files.shape import _EXAMINERS
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.story.scenario import Scenario
from unit.model.files.file_texts import problems, the_problem, the_story_problem, with_hosts


def vm(fields: str) -> str:
    return with_hosts(f"vms:\n  - {{id: v1, vcpus: 1, memory_mib: 1024, host: h1, {fields}}}\n")


CASES = [
    (
        vm("cpu: {reservation_mhz: -5}"),
        "vms[0].cpu.reservation_mhz",
        "-5 is below the allowed range",
        "0 to 1000000000",
    ),
    (
        vm("cpu: {shares: 10000001}"),
        "vms[0].cpu.shares",
        "10000001 is above the allowed range",
        "1 to 10000000",
    ),
    (
        vm("cpu: {shares: few}"),
        "vms[0].cpu.shares",
        'found the text "few" where a whole number is needed',
        "a whole number from 1 to 10000000",
    ),
    (
        vm('cpu: {shares: "10"}'),
        "vms[0].cpu.shares",
        'found the text "10" where a whole number is needed',
        "without quotes: 10",
    ),
    (
        vm("cpu: {shares: 1.5}"),
        "vms[0].cpu.shares",
        "1.5 is not a whole number",
        "a whole number from 1 to 10000000",
    ),
    (
        vm("cpu: {shares: 4.0}"),
        "vms[0].cpu.shares",
        "4.0 is not written as a whole number",
        "write 4",
    ),
    (
        vm("cpu: {shares: true}"),
        "vms[0].cpu.shares",
        "found true where a whole number is needed",
        "a whole number from 1 to 10000000",
    ),
    (
        vm("cpu: {shares: .nan}"),
        "vms[0].cpu.shares",
        ".nan is not a finite number",
        "write one that is",
    ),
    (
        vm("cpu: {shares: }"),
        "vms[0].cpu.shares",
        "found nothing where a whole number is needed",
        "a whole number from 1 to 10000000",
    ),
    (vm("cpu: []"), "vms[0].cpu", "found a list where a mapping is needed", "a mapping"),
    (
        vm("agent: yes"),
        "vms[0].agent",
        'found the text "yes" where true or false is needed',
        "true or false",
    ),
    (
        vm("template: 12"),
        "vms[0].template",
        "found the number 12 where text is needed",
        'put it in quotes: "12"',
    ),
    (
        vm("labels: {rack: 12}"),
        "vms[0].labels.rack",
        "found the number 12 where text is needed",
        'put it in quotes: "12"',
    ),
    (
        vm("state: runing"),
        "vms[0].state",
        '"runing" is not one of the allowed words',
        'did you mean "running"? allowed: init, ready, running, sleeping, terminated',
    ),
    (
        vm("state: 1"),
        "vms[0].state",
        "the number 1 is not one of the allowed words",
        "allowed: init, ready, running, sleeping, terminated",
    ),
    (
        vm("pool: a b"),
        "vms[0].pool",
        '"a b" is not an allowed name',
        "letters, digits and _ . : @ / + -, at most 128",
    ),
    (
        vm("consumption: {a b: 1}"),
        'vms[0].consumption["a b"]',
        '"a b" is not an allowed name',
        "letters, digits and _ . : @ / + -, at most 128",
    ),
    (
        vm("cpu: {reservation_mh: 5}"),
        "vms[0].cpu.reservation_mh",
        "this key is not known",
        'did you mean "reservation_mhz"? allowed: reservation_mhz, limit_mhz, shares',
    ),
    (
        vm("cpu: {zz: 5}"),
        "vms[0].cpu.zz",
        "this key is not known",
        "allowed: reservation_mhz, limit_mhz, shares",
    ),
]


@pytest.mark.parametrize(("content", "key", "what", "cure"), CASES)
def test_a_value_that_does_not_fit(content: str, key: str, what: str, cure: str) -> None:
    assert the_problem(content) == Problem(key=key, what=what, cure=cure, line=5)


def test_a_missing_key_is_shown_at_its_element() -> None:
    content = with_hosts("vms:\n\n  - {id: v1, vcpus: 1, host: h1}\n")
    assert the_problem(content) == Problem(
        key="vms[0].memory_mib",
        what="is missing",
        cure="a whole number from 1 to 1000000000000",
        line=6,
    )


def test_a_misspelt_key_is_one_problem_not_two() -> None:
    content = with_hosts("vms: [{id: v1, vcpus: 1, memory_mb: 1024, host: h1}]\n")
    problem = the_problem(content)
    assert problem.key == "vms[0].memory_mb"
    assert problem.cure.startswith('did you mean "memory_mib"? ')


def test_too_few_elements() -> None:
    content = with_hosts("rules:\n  - {kind: keep_apart, id: r, vms: [v1]}\n")
    assert the_problem(content) == Problem(
        key="rules[0].vms",
        what="has 1 of at least 2 entries",
        cure="a list of at least 2",
        line=5,
    )
    assert the_problem("hosts: []").what == "there is no host"


def test_an_unknown_kind_of_rule_is_guessed() -> None:
    content = with_hosts("rules:\n  - kind: keep_appart\n    id: r\n    vms: [v1, v2]\n")
    assert the_problem(content) == Problem(
        key="rules[0].kind",
        what='"keep_appart" is not one of the allowed words',
        cure='did you mean "keep_apart"? allowed: keep_apart, keep_together, stay_within, '
        "stay_off, satisfy",
        line=5,
    )


@pytest.mark.parametrize(
    ("rule", "key", "what"),
    [
        ("{id: r, vms: [a, b]}", "rules[0].kind", "is missing"),
        (
            "{kind: [1], id: r}",
            "rules[0].kind",
            "a list is not one of the allowed words",
        ),
        ("7", "rules[0]", "found the number 7 where a mapping is needed"),
    ],
)
def test_rules_that_are_none(rule: str, key: str, what: str) -> None:
    problem = the_problem(with_hosts(f"rules: [{rule}]\n"))
    assert (problem.key, problem.what, problem.line) == (key, what, 4)


def test_an_unknown_action_lists_all_there_are() -> None:
    plan = "id: p\nsteps:\n  - {id: s, end_ms: 5, action: {do: migrat, vm: v, source: a}}\n"
    problem = the_problem(plan, kind="plan")
    assert problem.key == "steps[0].action.do"
    assert problem.line == 3
    assert problem.cure.startswith('did you mean "migrate"? allowed: power_on, power_off')


def test_the_top_must_be_a_mapping() -> None:
    problem = the_problem("- 1\n- 2\n")
    assert problem == Problem(
        key="", what="found a list where a mapping is needed", cure="a mapping", line=1
    )
    assert the_problem("[1]", "f.json").what == "found a list where a mapping is needed"
    assert the_problem('"x"', "f.json").what == 'found the text "x" where a mapping is needed'
    assert the_problem("~").what == "found nothing where a mapping is needed"


def test_an_empty_name_of_a_scenario() -> None:
    content = 'name: ""\nduration_s: 1\ncluster:\n  ' + with_hosts("").replace("\n", "\n  ")
    assert the_problem(content, kind="scenario").what == "is empty"


def test_several_slips_are_told_at_once_from_top_to_bottom() -> None:
    content = with_hosts("""\
        vms:
          - {id: v1, vcpus: 0, memory_mib: 1024, host: h1}
          - {id: v2, vcpus: 1, memory_mib: lots, host: h1}
          - {id: v3, vcpus: 1, memory_mib: 1024, host: h9}
          - {id: v4, vcpus: 1, memory_mib: 1024, host: h1, colour: red}
        rules:
          - {kind: keep_apart, id: r, vms: [v1, v3, v9]}
    """)
    told = [(problem.line, problem.key) for problem in problems(content)]
    assert told == [
        (5, "vms[0].vcpus"),
        (6, "vms[1].memory_mib"),
        (7, "vms[2].host"),
        (8, "vms[3].colour"),
        (10, "rules[0].vms[2]"),
    ]


def test_an_element_that_cannot_be_read_is_still_known_by_its_name() -> None:
    content = """\
hosts:
  - {id: h1, cores: 0, mhz_per_core: 1000, memory_mib: 16384}
  - {id: h2, cores: 4, mhz_per_core: 1000, memory_mib: 16384}
vms:
  - {id: v1, vcpus: 1, memory_mib: 1024, host: h1}
"""
    assert the_problem(content).key == "hosts[0].cores"


def test_references_are_not_judged_when_a_whole_list_is_missing() -> None:
    content = "hots: []\nvms:\n  - {id: v1, vcpus: 1, memory_mib: 1024, host: h1}\n"
    assert [problem.key for problem in problems(content)] == ["hots"]


def test_no_more_than_a_hundred_are_shown() -> None:
    lines = "".join(f"  - {{id: v{i}, vcpus: 0, memory_mib: 1}}\n" for i in range(250))
    told = problems(with_hosts("vms:\n" + lines))
    assert len(told) == 101
    assert str(told[-1]) == "... and 150 more (mend these first)"


def test_a_problem_with_a_nasty_value_can_be_printed() -> None:
    content = with_hosts('vms:\n  - {id: "\\e[31m\\n\\u202e", vcpus: 1, memory_mib: 1}\n')
    problem = the_problem(content)
    assert problem.what == '"\\x1b[31m\\n\\u202e" is not an allowed name'
    long = the_problem(vm(f"state: {'x' * 9000}"))
    assert len(long.what) < 200


def test_the_message_names_the_file() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_inventory(vm("cpu: {reservation_mhz: -5}").encode(), "rack.yaml")
    assert str(caught.value) == (
        "rack.yaml: line 5: vms[0].cpu.reservation_mhz: "
        "-5 is below the allowed range (0 to 1000000000)"
    )


def is_told_apart(kind: inspect.UnionType) -> bool:
    """Whether a union is of tagged records, of no record, or of a number and a record."""
    records = [one for one in kind.types if isinstance(one, inspect.StructType)]
    others = [one for one in kind.types if not isinstance(one, inspect.StructType)]
    if not records or all(isinstance(one, inspect.NoneType) for one in others):
        return len(records) < 2 or all(one.tag for one in records)
    number, record = kind.types[:2]
    return isinstance(number, inspect.FloatType) and records == [record]


LEVEL = "a number from -1000000000000 to 1000000000000, or a mapping of one_of, low, high, mean, sd"
LEVEL_CASES = [
    (
        "{lo: 1, high: 2}",
        ".lo",
        "this key is not known",
        'did you mean "low"? allowed: one_of, low, high, mean, sd',
    ),
    (
        "{low: few, high: 2}",
        ".low",
        'found the text "few" where a number is needed',
        "a number from -1000000000000 to 1000000000000",
    ),
    (
        "{one_of: [1, 1.0e13]}",
        ".one_of[1]",
        "10000000000000.0 is above the allowed range",
        "-1000000000000 to 1000000000000",
    ),
    (
        "{mean: 1, sd: -1}",
        ".sd",
        "-1 is below the allowed range",
        "0 to 1000000000000",
    ),
    (
        "1.0e13",
        "",
        "10000000000000.0 is above the allowed range",
        "-1000000000000 to 1000000000000",
    ),
    ('"10"', "", 'found the text "10" where a number is needed', "without quotes: 10"),
    ("much", "", 'found the text "much" where a number or a mapping is needed', LEVEL),
    ("[1, 2]", "", "found a list where a number or a mapping is needed", LEVEL),
    ("true", "", "found true where a number or a mapping is needed", LEVEL),
    ("", "", "found nothing where a number or a mapping is needed", LEVEL),
]


@pytest.mark.parametrize(("level", "key", "what", "cure"), LEVEL_CASES)
def test_a_level_is_a_number_or_says_how_to_draw_one(
    level: str, key: str, what: str, cure: str
) -> None:
    told = the_story_problem(f"loads: {{web: {{cpu_mhz: [{{kind: constant, level: {level}}}]}}}}\n")
    assert told == f"line 10: loads.web.cpu_mhz[0].level{key}: {what} ({cure})"
    crashes = f"{{per_host_day: 1, back_after_s: {level or '~'}}}"
    told = the_story_problem(f"unrest: {{host_crashes: {crashes}}}\n")
    assert told == f"line 10: unrest.host_crashes.back_after_s{key}: {what} ({cure})"


def test_a_level_that_is_missing() -> None:
    told = the_story_problem("loads: {web: {cpu_mhz: [{kind: constant}]}}\n")
    assert told == f"line 10: loads.web.cpu_mhz[0].level: is missing ({LEVEL})"


def test_a_load_of_an_unknown_kind() -> None:
    told = the_story_problem("loads: {web: {cpu_mhz: [{kind: constnt, level: 1}]}}\n")
    assert told == (
        'line 10: loads.web.cpu_mhz[0].kind: "constnt" is not one of the allowed words '
        '(did you mean "constant"? allowed: constant, pattern, steps, diurnal, noise, spike, trace)'
    )


def test_every_kind_in_the_model_can_be_examined() -> None:
    seen: set[type] = set()
    records: set[type] = set()

    def visit(kind: object) -> None:
        if isinstance(kind, inspect.Field):
            visit(kind.type)
        elif isinstance(kind, inspect.Type):
            seen.add(type(kind))
            if isinstance(kind, inspect.StructType):
                if kind.cls in records:  # one may be part of itself
                    return
                records.add(kind.cls)
            assert noun(kind)
            assert not any(getattr(kind, bound, None) for bound in ("gt", "lt", "multiple_of"))
            assert not isinstance(kind, inspect.UnionType) or is_told_apart(kind)
            for name in kind.__struct_fields__:
                part = getattr(kind, name)
                for inner in part if isinstance(part, tuple) else (part,):
                    visit(inner)

    for form in (Inventory, Plan, Scenario, CaseFile):
        visit(inspect.type_info(form))
    assert seen - {inspect.NoneType} <= set(_EXAMINERS)


def test_a_slip_at_the_top_does_not_hide_what_is_wrong_below() -> None:
    content = with_hosts(
        "nme: x\nlimits: {actions_total: 0}\n"
        "vms:\n  - {id: v1, vcpus: 1, memory_mib: 1, host: nowhere}\n"
    )
    keys = {problem.key for problem in problems(content)}
    assert keys == {"nme", "limits.actions_total", "vms[0].host"}
    unknown = {problem.key for problem in problems(with_hosts("id: [.inf]\n"))}
    assert unknown == {"id", "id[0]"}
