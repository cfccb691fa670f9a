"""Planning problems and their networks in files: valid ones, problems with code, line and key, and
the keys in docs/files.md.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from textwrap import dedent

import pytest
from msgspec import inspect, structs

from equipoise.api.loading import read_problem
from equipoise.errors import InvalidInput
from equipoise.files import find_problems, json_schema, parse_problem, to_json, to_yaml
from equipoise.files.document import FILE_SIZE_MAX, FileFormat
from equipoise.files.type_check import _CHECKS_BY_TYPE, type_noun
from equipoise.model.problem import (
    DesiredHostState,
    DesiredVmState,
    ObjectiveMeasure,
    PlanningProblem,
    problem,
)
from equipoise.model.problem import problem as duration
from equipoise.model.problem import problem as network
from equipoise.model.problem.problem import ActionKind
from equipoise.spec.rules import check_rules
from unit.files.sample_files import brief

DOCUMENT = (Path(__file__).parents[4] / "docs" / "files.md").read_text()
SECTION = DOCUMENT.partition("## Problems\n")[2]
TABLE = SECTION.partition("\n| key | what |\n")[2].partition("\n\n")[0]
(EXAMPLE,) = re.findall(r"```yaml\n(.*?)```", SECTION, re.S)

CLUSTER = """\
cluster:
  hosts:
    - {id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 16384, capacity: {gpu: 2}}
    - {id: h2, cores: 4, mhz_per_core: 1000, memory_mib: 16384}
  vms:
    - {id: v1, vcpus: 1, memory_mib: 1024, consumption: {licences: 0}, host: h1}
  rules:
    - {kind: stay_off, id: off-h2, vms: [v1], hosts: [h2]}
    - {kind: stay_off, id: off-h1, vms: [v1], hosts: [h1], hard: false}
"""
"""Nine lines; what a test adds starts on line 10."""

INVENTORY = dedent(CLUSTER.partition("\n")[2])


def found_problems(more: str) -> list[str]:
    """All problems of the cluster with lines added, in brief."""
    with pytest.raises(InvalidInput) as caught:
        parse_problem((CLUSTER + dedent(more)).encode(), "f.yaml")
    return list(map(brief, caught.value.problems))


def test_the_problem_in_the_document_can_be_read() -> None:
    parsed = parse_problem(EXAMPLE.encode(), "docs/files.md", check_rules)
    assert parsed.vms == {"job": DesiredVmState.RUNNING}
    assert parsed.hosts == {"h1": DesiredHostState.MAINTENANCE}
    assert parsed.durations[ActionKind.MIGRATE].of == {"web-1": 12000}
    assert parsed.objective == (
        ObjectiveMeasure.HOSTS_USED,
        {ObjectiveMeasure.MTTR: 1, ObjectiveMeasure.MIGRATIONS: 60_000},
    )
    assert parse_problem(to_yaml(parsed).encode(), "again.yaml") == parsed
    assert parse_problem(to_json(parsed).encode(), "again.json") == parsed
    assert find_problems(parsed) == []


def test_the_document_names_every_key_and_every_word() -> None:
    nouns = (
        problem.PlanningProblem,
        duration.ActionDuration,
        network.Network,
        network.NetworkSwitch,
        network.NetworkLink,
    )
    for noun_type in nouns:
        for key in noun_type.__struct_fields__:
            assert f"`{key}`" in TABLE, f"{noun_type.__name__}.{key}"
    for row, kind in (
        ("vms", DesiredVmState),
        ("hosts", DesiredHostState),
        ("objective", ObjectiveMeasure),
    ):
        (table_row,) = re.findall(rf"^\| `{row}` .*$", TABLE, re.M)
        for member in kind:
            assert re.search(rf"\b{member.value}\b", table_row), member


def test_the_kinds_of_action_are_those_of_plans() -> None:
    actions = json_schema("plan")["$defs"]["Step"]["properties"]["action"]["anyOf"]
    tags = {action["$ref"].removeprefix("#/$defs/") for action in actions}
    planned = tags - {"StartRole", "StopRole"}  # only the controller of roles uses these
    assert {"".join(word.title() for word in kind.split("_")) for kind in ActionKind} == planned


def test_only_a_cluster_is_required() -> None:
    parsed = parse_problem(
        b"cluster: {hosts: [{id: h, cores: 1, mhz_per_core: 1, memory_mib: 1}]}", "f"
    )
    assert parsed == PlanningProblem(cluster=parsed.cluster)
    assert parsed.cluster.vms == ()
    assert parsed.objective == (ObjectiveMeasure.MTTR,)


@pytest.mark.parametrize("written", ["yaml", "json"])
def test_an_inventory_is_a_problem_without_goals(written: str) -> None:
    whole = parse_problem(CLUSTER.encode(), "f.yaml")
    write = to_yaml if written == "yaml" else to_json
    assert parse_problem(write(whole.cluster).encode(), f"f.{written}") == whole
    assert INVENTORY.startswith("hosts:")
    assert parse_problem(INVENTORY.encode(), "f.yaml") == whole


def test_an_inventory_is_checked_as_an_inventory() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_problem(b"hosts: []\nobjectve: [mttr]\n", "f.yaml")
    assert list(map(brief, caught.value.problems)) == [
        "line 1: hosts: empty-value",
        "line 2: objectve: unknown-key",
    ]


def test_a_missing_cluster_is_reported() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_problem(b"hosts: {h1: offline}\nvms: {v1: running}\n", "f.yaml")
    assert list(map(brief, caught.value.problems)) == ["line 1: cluster: missing-key"]


def test_the_cluster_is_checked_like_an_inventory() -> None:
    text = CLUSTER.replace("host: h1}", "host: h3}").encode()
    with pytest.raises(InvalidInput) as caught:
        parse_problem(text, "f.yaml")
    assert list(map(brief, caught.value.problems)) == [
        'line 6: cluster.vms[0].host: unknown-name "h3"'
    ]
    rule = "  specification: 'Odd(v : vms) ::= nonsense(v)'\nvms: {v1: running}\n"
    with pytest.raises(InvalidInput, match=r"line 10: cluster\.specification: "):
        parse_problem((CLUSTER + rule).encode(), "f.yaml", check_rules)


def test_the_usage_of_a_vm_becomes_its_demand() -> None:
    text = CLUSTER.replace("host: h1}", "host: h1, usage: {cpu_used_mhz: 70}}")
    (vm,) = parse_problem(text.encode(), "f.yaml").cluster.vms
    assert (vm.demand.cpu_mhz, vm.usage) == (70, None)


PROBLEM_CASES = [
    ("vms: {v2: ready}", 'line 10: vms.v2: unknown-name "v2"'),
    (
        "vms: {v1: runing}",
        'line 10: vms.v1: invalid-value "runing" "running"',
    ),
    (
        "hosts: {hh1: offline}",
        'line 10: hosts.hh1: unknown-name "hh1" "h1"',
    ),
    (
        "hosts: [h1]",
        "line 10: hosts: wrong-type",
    ),
    (
        "durations:\n  boot: {of: {h1: 5}}",
        'line 11: durations.boot.of.h1: unknown-name "h1"',
    ),
    (
        "durations:\n  power_on: {of: {v1: 5}}",
        'line 11: durations.power_on.of.v1: unknown-name "v1"',
    ),
    (
        "durations:\n  boot: {ms: 0}",
        "line 11: durations.boot.ms: out-of-range 0 1 1000000000000",
    ),
    (
        "durations:\n  boot: {per_unit_ms: 2, resource: gpuu}",
        'line 11: durations.boot.resource: unknown-name "gpuu" "gpu"',
    ),
    (
        "durations:\n  boot: {resource: cpu}",
        'line 11: durations.boot.resource: unknown-name "cpu" "gpu"',
    ),
    (
        "durations:\n  power_off: {per_unit_ms: 1}",
        "line 11: durations.power_off.per_unit_ms: contradiction",
    ),
    (
        "vms: {v1: forged}",
        "line 10: vms.v1: contradiction",
    ),
    (
        "objective: []",
        "line 10: objective: empty-value",
    ),
    (
        "objective: [{}]",
        "line 10: objective[0]: empty-value",
    ),
    (
        "objective:\n  - mttr\n  - {migrations: 2, mttr: 1}",
        'line 12: objective[1].mttr: duplicate-name "mttr" objective[0] 11',
    ),
    (
        "objective: [mtr]",
        'line 10: objective[0]: invalid-value "mtr" "mttr"',
    ),
    (
        "objective: [{mtr: 1}]",
        'line 10: objective[0].mtr: invalid-value "mtr" "mttr"',
    ),
    (
        "objective: [{mttr: heavy}]",
        'line 10: objective[0].mttr: wrong-type "heavy" 1 10000000',
    ),
    (
        "objective: [[mttr]]",
        "line 10: objective[0]: wrong-type",
    ),
    (
        "weights: {off-h3: 2}",
        'line 10: weights["off-h3"]: unknown-name "off-h3" "off-h2"',
    ),
    (
        "weights: {off-h2: 2}",
        'line 10: weights["off-h2"]: contradiction "off-h2"',
    ),
    ("moves_max: 5", "line 10: moves_max: out-of-range 5 1 4"),
]


@pytest.mark.parametrize(("more", "expected"), PROBLEM_CASES)
def test_an_invalid_planning_problem_is_reported(more: str, expected: str) -> None:
    assert found_problems(more) == [expected]


def test_a_weight_of_a_soft_rule_and_a_goal_already_reached_are_valid() -> None:
    text = CLUSTER + "weights: {off-h1: 2}\nvms: {v1: running}\nhosts: {h1: offline, h2: offline}\n"
    parsed = parse_problem(text.encode(), "f.yaml")
    assert parsed.weights == {"off-h1": 2}
    assert parsed.vms == {"v1": DesiredVmState.RUNNING}


def test_a_vm_in_state_init_can_be_forged() -> None:
    text = CLUSTER.replace("host: h1}", "state: init}") + "vms: {v1: forged}"
    assert parse_problem(text.encode(), "f.yaml").vms == {"v1": DesiredVmState.FORGED}


@pytest.mark.parametrize("resource", ["memory", "gpu", "licences"])
def test_a_duration_may_depend_on_what_hosts_offer_or_vms_consume(resource: str) -> None:
    text = CLUSTER + f"durations: {{boot: {{per_unit_ms: 2, resource: {resource}}}}}"
    parsed = parse_problem(text.encode(), "f.yaml").durations[ActionKind.BOOT]
    assert (parsed.per_unit_ms, parsed.resource) == (2, resource)


def test_a_resource_of_an_unreadable_host_is_not_reported() -> None:
    text = "durations: {boot: {per_unit_ms: 2, resource: gpu}}\n"
    with pytest.raises(InvalidInput) as caught:
        parse_problem((CLUSTER.replace("cores: 4", "cores: 0", 1) + text).encode(), "f.yaml")
    assert list(map(brief, caught.value.problems)) == [
        "line 3: cluster.hosts[0].cores: out-of-range 0 1 100000"
    ]


def test_an_unreadable_objective_does_not_hide_other_problems() -> None:
    assert len(found_problems("objective: [mtr]\nweights: {off-h3: 1}\n")) == 2


def test_the_type_check_knows_every_type_of_a_problem() -> None:
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
            for name in kind.__struct_fields__:
                part = getattr(kind, name)
                for inner in part if isinstance(part, tuple) else (part,):
                    visit(inner)

    visit(inspect.type_info(PlanningProblem))
    assert seen - {inspect.NoneType} <= set(_CHECKS_BY_TYPE)


def test_the_schema_of_a_problem_has_descriptions() -> None:
    parsed = json_schema("problem")
    assert parsed["title"] == "Equipoise problem"
    whole = parsed["$defs"]["PlanningProblem"]
    assert set(whole["properties"]) == {field.name for field in structs.fields(PlanningProblem)}
    assert whole["required"] == ["cluster"]
    assert whole["properties"]["moves_max"]["description"].startswith("Most moves per VM")
    measures = parsed["$defs"]["ObjectiveMeasure"]["enum"]
    assert sorted(measures) == sorted(measure.value for measure in ObjectiveMeasure)


def test_a_problem_is_read_from_a_plain_or_packed_file(tmp_path: Path) -> None:
    whole = parse_problem(EXAMPLE.encode(), "f.yaml")
    for name, text in (("p.yaml", EXAMPLE), ("p.json", to_json(whole))):
        plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
        plain.write_text(text)
        packed.write_bytes(gzip.compress(text.encode()))
        assert read_problem(plain) == read_problem(packed) == whole


def test_the_rules_of_a_problem_in_a_file_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    rule = "    - {kind: satisfy, id: s, constraint: Spred, arguments: {vs: [v1]}}\n"
    file.write_text(CLUSTER + rule)
    with pytest.raises(InvalidInput, match=r"cluster.rules\[2\].constraint: "):
        read_problem(file)


def test_a_damaged_or_too_large_packed_file_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml.gz"
    packed = gzip.compress(EXAMPLE.encode())
    for content, code in (
        (packed[:100], "file-not-readable"),
        (packed[:40] + b"x" + packed[41:], "file-not-readable"),
        (b"\x1f\x8bnonsense", "file-not-readable"),
        (gzip.compress(bytes(FILE_SIZE_MAX[FileFormat.JSON] + 1), 1), "too-large"),
    ):
        file.write_bytes(content)
        with pytest.raises(InvalidInput) as caught:
            read_problem(file)
        assert (caught.value.source, caught.value.code) == (str(file), code)


def test_a_packed_yaml_file_may_not_be_larger_than_a_plain_one(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml.gz"
    file.write_bytes(gzip.compress(b"#" * (FILE_SIZE_MAX[FileFormat.YAML] + 1), 1))
    with pytest.raises(InvalidInput) as caught:
        read_problem(file)
    assert [problem.code for problem in caught.value.problems] == ["too-large"]


NETWORK = """\
network:
  switches: [{id: s1}, {id: s2, capacity_mbps: 100}]
  links:
    - {id: l1, switch: s1, host: h1, capacity_mbps: 10}
    - {id: l2, switch: s2, host: h2, capacity_mbps: 10}
    - {id: l3, switch: s1, to: s2, capacity_mbps: 10}
"""

NETWORK_CASES = [
    (
        ("switches: [{id: s1}, ", "switches: [{id: s1}, {id: s1}, "),
        'line 11: network.switches[1].id: duplicate-name "s1" network.switches[0].id 11',
    ),
    (
        ("id: l3", "id: l1"),
        'line 15: network.links[2].id: duplicate-name "l1" network.links[0].id 13',
    ),
    (
        ("switch: s2, host", "switch: s3, host"),
        'line 14: network.links[1].switch: unknown-name "s3"',
    ),
    (
        ("to: s2", "to: s3"),
        'line 15: network.links[2].to: unknown-name "s3"',
    ),
    (
        ("to: s2", "to: s1"),
        'line 15: network.links[2].to: cycle "s1"',
    ),
    (
        ("to: s2, ", ""),
        "line 15: network.links[2].host: missing-key",
    ),
    (
        ("s2, host: h2, ", "s2, host: h2, to: s1, "),
        "line 14: network.links[1].to: contradiction",
    ),
    (
        ("to: s2", "host: h2"),
        'line 15: network.links[2].host: duplicate-name "h2" network.links[1] 14',
    ),
    (
        ("host: h2", "to: s1"),
        "line 12: network.links: disconnected",
    ),
    (
        ("    - {id: l3, switch: s1, to: s2, capacity_mbps: 10}\n", ""),
        "line 12: network.links: disconnected",
    ),
]


@pytest.mark.parametrize(("change", "expected"), NETWORK_CASES)
def test_an_inconsistent_network_is_reported(change: tuple[str, str], expected: str) -> None:
    assert NETWORK.count(change[0]) == 1
    assert found_problems(NETWORK.replace(*change)) == [expected]


def test_a_link_with_a_misspelled_host_is_one_problem() -> None:
    (problem,) = found_problems(NETWORK.replace("host: h2", "host: h3"))
    assert problem == 'line 14: network.links[1].host: unknown-name "h3"'


def test_a_valid_network_is_accepted() -> None:
    parsed = parse_problem((CLUSTER + NETWORK).encode(), "f.yaml")
    assert parsed.network is not None
    assert [link.host or link.to for link in parsed.network.links] == ["h1", "h2", "s2"]


@pytest.mark.parametrize("network", ["{}", "{switches: [{id: s1}]}"])
def test_a_network_without_links_is_reported(network: str) -> None:
    assert found_problems(f"network: {network}\n") == ["line 10: network.links: disconnected"]


def test_a_network_excludes_migration_times_per_unit() -> None:
    (problem,) = found_problems(NETWORK + "durations:\n  migrate: {ms: 5, per_unit_ms: 2}\n")
    assert problem == "line 17: durations.migrate.per_unit_ms: contradiction"
    boot = "durations:\n  boot: {ms: 5, per_unit_ms: 2}\n"
    assert parse_problem((CLUSTER + NETWORK + boot).encode(), "f.yaml").network is not None


def test_an_unreadable_link_does_not_make_the_network_invalid() -> None:
    changed = NETWORK.replace("mbps: 100}", "mbps: 0}").replace("id: l2", "id: 2")
    assert found_problems(changed) == [
        "line 11: network.switches[1].capacity_mbps: out-of-range 0 1 1000000000",
        'line 14: network.links[1].id: wrong-type 2 "2"',
    ]
    no_switches = NETWORK.replace("[{id: s1}, {id: s2, capacity_mbps: 100}]", "s1")
    assert len(found_problems(no_switches)) == 1
    assert len(found_problems(NETWORK.replace("id: l3", "id: 3"))) == 1
