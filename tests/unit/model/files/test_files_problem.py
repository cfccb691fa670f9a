"""Problems in files: what is read, what is refused, and what the document says of them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from textwrap import dedent

import pytest
from msgspec import inspect, structs

from equipoise.cli.read import read_problem
from equipoise.errors import InvalidInput
from equipoise.model.files import parse_problem, problems_of, schema, to_json, to_yaml
from equipoise.model.files.kinds import noun
from equipoise.model.files.shape import _EXAMINERS
from equipoise.model.files.text import SIZE_MAX, Language
from equipoise.model.problem import HostAim, Measure, Problem, VmAim, duration, network, problem
from equipoise.model.problem.problem import ActionKind
from equipoise.spec.rules import check_rules

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


def complaints(more: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parse_problem((CLUSTER + dedent(more)).encode(), "f.yaml")
    return [str(one) for one in caught.value.problems]


def test_the_problem_in_the_document_can_be_read() -> None:
    made = parse_problem(EXAMPLE.encode(), "docs/files.md", check_rules)
    assert made.vms == {"job": VmAim.RUNNING}
    assert made.hosts == {"h1": HostAim.MAINTENANCE}
    assert made.durations[ActionKind.MIGRATE].of == {"web-1": 12000}
    assert made.objective == (Measure.HOSTS_USED, {Measure.MTTR: 1, Measure.MIGRATIONS: 60_000})
    assert parse_problem(to_yaml(made).encode(), "again.yaml") == made
    assert parse_problem(to_json(made).encode(), "again.json") == made
    assert problems_of(made) == []


def test_the_document_names_every_key_and_every_word() -> None:
    nouns = (problem.Problem, duration.Duration, network.Network, network.Switch, network.Link)
    for noun_type in nouns:
        for key in noun_type.__struct_fields__:
            assert f"`{key}`" in TABLE, f"{noun_type.__name__}.{key}"
    for row, kind in (("vms", VmAim), ("hosts", HostAim), ("objective", Measure)):
        (said,) = re.findall(rf"^\| `{row}` .*$", TABLE, re.M)
        for member in kind:
            assert re.search(rf"\b{member.value}\b", said), member


def test_the_kinds_of_action_are_those_of_plans() -> None:
    actions = schema("plan")["$defs"]["Step"]["properties"]["action"]["anyOf"]
    tags = {one["$ref"].removeprefix("#/$defs/") for one in actions}
    planned = tags - {"StartRole", "StopRole"}  # which the controller of roles alone asks for
    assert {"".join(word.title() for word in kind.split("_")) for kind in ActionKind} == planned


def test_only_a_cluster_is_required() -> None:
    made = parse_problem(
        b"cluster: {hosts: [{id: h, cores: 1, mhz_per_core: 1, memory_mib: 1}]}", "f"
    )
    assert made == Problem(cluster=made.cluster)
    assert made.cluster.vms == ()
    assert made.objective == (Measure.MTTR,)


@pytest.mark.parametrize("written", ["yaml", "json"])
def test_an_inventory_is_a_problem_without_wishes(written: str) -> None:
    whole = parse_problem(CLUSTER.encode(), "f.yaml")
    write = to_yaml if written == "yaml" else to_json
    assert parse_problem(write(whole.cluster).encode(), f"f.{written}") == whole
    assert INVENTORY.startswith("hosts:")
    assert parse_problem(INVENTORY.encode(), "f.yaml") == whole


def test_a_slip_in_an_inventory_is_told_as_one_of_an_inventory() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_problem(b"hosts: []\nobjectve: [mttr]\n", "f.yaml")
    told = [str(one) for one in caught.value.problems]
    assert told[0] == "line 1: hosts: there is no host (list at least one)"
    assert told[1].startswith("line 2: objectve: this key is not known (allowed: hosts, ")


def test_who_forgets_the_cluster_is_told_so() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_problem(b"hosts: {h1: offline}\nvms: {v1: running}\n", "f.yaml")
    assert str(caught.value) == "f.yaml: line 1: cluster: is missing (a mapping)"


def test_the_cluster_is_checked_like_an_inventory() -> None:
    text = CLUSTER.replace("host: h1}", "host: h3}").encode()
    with pytest.raises(InvalidInput, match=r'line 6: cluster.vms\[0\].host: there is no host "h3"'):
        parse_problem(text, "f.yaml")
    rule = "  specification: 'Odd(v : vms) ::= nonsense(v)'\nvms: {v1: running}\n"
    with pytest.raises(InvalidInput, match=r"line 10: cluster\.specification: line 1 of it"):
        parse_problem((CLUSTER + rule).encode(), "f.yaml", check_rules)


def test_the_usage_of_a_vm_becomes_its_demand() -> None:
    text = CLUSTER.replace("host: h1}", "host: h1, usage: {cpu_used_mhz: 70}}")
    (vm,) = parse_problem(text.encode(), "f.yaml").cluster.vms
    assert (vm.demand.cpu_mhz, vm.usage) == (70, None)


SLIPS = [
    ("vms: {v2: ready}", 'line 10: vms.v2: there is no VM "v2" (the VMs are: v1)'),
    (
        "vms: {v1: runing}",
        (
            'line 10: vms.v1: "runing" is not one of the allowed words '
            '(did you mean "running"? allowed: running, ready, sleeping, killed, forged)'
        ),
    ),
    (
        "hosts: {hh1: offline}",
        'line 10: hosts.hh1: there is no host "hh1" (did you mean "h1"? the hosts are: h1, h2)',
    ),
    (
        "hosts: [h1]",
        "line 10: hosts: found a list where a mapping is needed (a mapping)",
    ),
    (
        "durations:\n  boot: {of: {h1: 5}}",
        'line 11: durations.boot.of.h1: there is no VM "h1" (the VMs are: v1)',
    ),
    (
        "durations:\n  power_on: {of: {v1: 5}}",
        'line 11: durations.power_on.of.v1: there is no host "v1" (the hosts are: h1, h2)',
    ),
    (
        "durations:\n  boot: {ms: 0}",
        "line 11: durations.boot.ms: 0 is below the allowed range (1 to 1000000000000)",
    ),
    (
        "durations:\n  boot: {per_unit_ms: 2, resource: gpuu}",
        (
            'line 11: durations.boot.resource: there is no resource "gpuu" '
            '(did you mean "gpu"? the resources are: memory, gpu, licences)'
        ),
    ),
    (
        "durations:\n  boot: {resource: cpu}",
        (
            'line 11: durations.boot.resource: there is no resource "cpu" '
            '(did you mean "gpu"? the resources are: memory, gpu, licences)'
        ),
    ),
    (
        "durations:\n  power_off: {per_unit_ms: 1}",
        (
            "line 11: durations.power_off.per_unit_ms: it is about a host, and units are what a VM "
            "takes (leave it out, or name hosts in of)"
        ),
    ),
    (
        "vms: {v1: forged}",
        "line 10: vms.v1: it is running, and only a VM in state init can be forged (ready)",
    ),
    (
        "objective: []",
        "line 10: objective: is empty (name a measure such as mttr, or leave it out)",
    ),
    (
        "objective: [{}]",
        "line 10: objective[0]: names no measure (name one with its weight, or leave it out)",
    ),
    (
        "objective:\n  - mttr\n  - {migrations: 2, mttr: 1}",
        (
            'line 12: objective[1].mttr: "mttr" is named twice, first by objective[0] on line 11 '
            "(once is enough)"
        ),
    ),
    (
        "objective: [mtr]",
        (
            'line 10: objective[0]: "mtr" is not one of the allowed words (did you mean "mttr"? '
            "allowed: mttr, migrations, moved_memory, makespan, hosts_used, energy, imbalance)"
        ),
    ),
    (
        "objective: [{mtr: 1}]",
        (
            'line 10: objective[0].mtr: "mtr" is not one of the allowed words '
            '(did you mean "mttr"? '
            "allowed: mttr, migrations, moved_memory, makespan, hosts_used, energy, imbalance)"
        ),
    ),
    (
        "objective: [{mttr: heavy}]",
        (
            'line 10: objective[0].mttr: found the text "heavy" where a whole number is needed '
            "(a whole number from 1 to 10000000)"
        ),
    ),
    (
        "objective: [[mttr]]",
        (
            "line 10: objective[0]: a list is not one of the allowed words "
            "(allowed: mttr, migrations, moved_memory, makespan, hosts_used, energy, imbalance)"
        ),
    ),
    (
        "weights: {off-h3: 2}",
        (
            'line 10: weights["off-h3"]: there is no rule "off-h3" (did you mean "off-h2"? '
            "the rules are: off-h2, off-h1)"
        ),
    ),
    (
        "weights: {off-h2: 2}",
        (
            'line 10: weights["off-h2"]: the rule "off-h2" is hard and never broken, '
            "so that a weight is useless (leave it out, or write hard: false at the rule)"
        ),
    ),
    ("moves_max: 5", "line 10: moves_max: 5 is above the allowed range (1 to 4)"),
]


@pytest.mark.parametrize(("more", "told"), SLIPS)
def test_a_slip_is_told_with_its_line_and_its_cure(more: str, told: str) -> None:
    assert complaints(more) == [told]


def test_a_weight_for_a_soft_rule_and_a_useless_aim_are_no_slips() -> None:
    text = CLUSTER + "weights: {off-h1: 2}\nvms: {v1: running}\nhosts: {h1: offline, h2: offline}\n"
    made = parse_problem(text.encode(), "f.yaml")
    assert made.weights == {"off-h1": 2}
    assert made.vms == {"v1": VmAim.RUNNING}


def test_what_is_not_made_yet_can_be_forged() -> None:
    text = CLUSTER.replace("host: h1}", "state: init}") + "vms: {v1: forged}"
    assert parse_problem(text.encode(), "f.yaml").vms == {"v1": VmAim.FORGED}


@pytest.mark.parametrize("resource", ["memory", "gpu", "licences"])
def test_times_are_told_by_what_hosts_offer_or_vms_take(resource: str) -> None:
    text = CLUSTER + f"durations: {{boot: {{per_unit_ms: 2, resource: {resource}}}}}"
    made = parse_problem(text.encode(), "f.yaml").durations[ActionKind.BOOT]
    assert (made.per_unit_ms, made.resource) == (2, resource)


def test_a_resource_may_be_that_of_a_host_that_cannot_be_read() -> None:
    text = "durations: {boot: {per_unit_ms: 2, resource: gpu}}\n"
    with pytest.raises(InvalidInput) as caught:
        parse_problem((CLUSTER.replace("cores: 4", "cores: 0", 1) + text).encode(), "f.yaml")
    (told,) = caught.value.problems
    assert told.key == "cluster.hosts[0].cores"


def test_what_cannot_be_read_does_not_make_the_rest_look_wrong() -> None:
    assert len(complaints("objective: [mtr]\nweights: {off-h3: 1}\n")) == 2


def test_every_kind_of_value_in_a_problem_can_be_examined() -> None:
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
            for name in kind.__struct_fields__:
                part = getattr(kind, name)
                for inner in part if isinstance(part, tuple) else (part,):
                    visit(inner)

    visit(inspect.type_info(Problem))
    assert seen - {inspect.NoneType} <= set(_EXAMINERS)


def test_the_schema_of_a_problem_explains_itself() -> None:
    made = schema("problem")
    assert made["title"] == "Equipoise problem"
    whole = made["$defs"]["Problem"]
    assert set(whole["properties"]) == {field.name for field in structs.fields(Problem)}
    assert whole["required"] == ["cluster"]
    assert whole["properties"]["moves_max"]["description"].startswith("How often a VM may move")
    measures = made["$defs"]["Measure"]["enum"]
    assert sorted(measures) == sorted(measure.value for measure in Measure)


def test_a_problem_is_read_from_a_file_packed_or_not(tmp_path: Path) -> None:
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
    with pytest.raises(InvalidInput, match=r"cluster.rules\[2\].constraint: there is no such"):
        read_problem(file)


def test_a_file_that_is_packed_badly_or_holds_too_much_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml.gz"
    packed = gzip.compress(EXAMPLE.encode())
    for content, what in (
        (packed[:100], "cannot be unpacked"),
        (packed[:40] + b"x" + packed[41:], "cannot be unpacked"),
        (b"\x1f\x8bnonsense", "cannot be unpacked"),
        (gzip.compress(bytes(SIZE_MAX[Language.JSON] + 1), 1), "is too large unpacked"),
    ):
        file.write_bytes(content)
        with pytest.raises(InvalidInput, match=what) as caught:
            read_problem(file)
        assert caught.value.source == str(file)


def test_a_packed_yaml_file_may_not_be_larger_than_a_plain_one(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml.gz"
    file.write_bytes(gzip.compress(b"#" * (SIZE_MAX[Language.YAML] + 1), 1))
    with pytest.raises(InvalidInput, match="the file is too large for YAML"):
        read_problem(file)
