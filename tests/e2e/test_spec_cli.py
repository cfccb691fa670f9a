"""The specification language, as the installed command speaks it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from builders import facts, suggested
from command import answer, call, call_here, located, misspelt

ROOT = Path(__file__).parent.parent.parent
VISIT = str(ROOT / "examples" / "visit.case.yaml")
CLUSTER = """\
hosts:
  - {id: h1, cores: 8, mhz_per_core: 2400, memory_mib: 32768, labels: {rack: north}}
  - {id: h2, cores: 8, mhz_per_core: 2400, memory_mib: 32768, labels: {rack: south}}
  - {id: h3, cores: 8, mhz_per_core: 2400, memory_mib: 32768, labels: {rack: north}}
vms:
  - {id: web-1, vcpus: 2, memory_mib: 4096, host: h1}
  - {id: web-2, vcpus: 2, memory_mib: 4096, host: h2}
"""
PLAN = """\
id: visit
steps:
  - {id: there, action: {do: migrate, vm: web-1, source: h1, target: h2}, end_ms: 700}
  - id: "on"
    action: {do: migrate, vm: web-1, source: h2, target: h3}
    start_ms: 1500
    end_ms: 2000
    after: [there]
"""


def test_a_specification_is_checked(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.spec", tmp_path / "bad.spec"
    good.write_text("Few(ns <: nodes, nb : int, x : vms) ::= card(ns) <= nb\n")
    checked = answer("spec", "check", str(good))
    assert checked["constraints"] == ["Few"]
    (warning,) = checked["warnings"]
    assert (warning["code"], warning["line"], warning["column"]) == ("unused-argument", 1, 28)
    assert "warning: line 1, column 28" in call_here("spec", "check", str(good)).stdout
    bad.write_text("Few(ns <: nodes) ::= sum({card(running(n)). n : ns}) <= 3\n")
    (problem,) = answer("spec", "check", str(bad), code=2)["problems"]
    assert (problem["line"], problem["column"]) == (1, 26)
    assert "[ ... ]" in problem["cure"]
    assert "^^^^" in call_here("spec", "check", str(bad)).stderr
    assert "hosted" in call_here("spec", "functions").stdout


def test_the_library_is_listed_and_shown() -> None:
    rows = {row["name"]: row for row in answer("spec", "list")}
    assert rows["Spread"]["modes"] == ["continuous", "discrete"]
    assert rows["Fence"]["arguments"] == ["v : vms", "ns <: hosts"]
    assert rows["toReady"]["origin"] == "core"
    assert rows["Spread"]["doc"] in call_here("spec", "list").stdout
    assert "host(v) : ns" in call_here("spec", "show", "Fence").stdout
    assert misspelt("spec", "show", "Lonley") == ("unknown-constraint", "Lonely")
    assert answer("spec", "show", "Gather")["origin"] == "btrplace"


def test_a_formula_that_says_nothing_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "own.spec"
    file.write_text(
        "Both(v : vms) ::= vmState(v) = running & vmState(v) = ready\nFine ::= Spread(vms)\n"
    )
    told = answer("spec", "check", str(file))
    assert told["constraints"] == ["Both", "Fine"]
    (warning,) = told["warnings"]
    assert (warning["code"], warning["line"]) == ("constant-formula", 1)
    assert warning["what"].startswith("Both is false ")


def test_the_library_has_what_was_promised() -> None:
    rows = answer("spec", "list")
    assert len(rows) >= 60
    assert {row["origin"] for row in rows} == {
        "core", "btrplace", "drs", "nova", "kubernetes", "more",
    }  # fmt: skip
    assert {row["variant"] for row in rows if row["origin"] == "nova"} == {
        None, "documented", "as_coded",
    }  # fmt: skip
    assert {row["strength"] for row in rows} == {"hard", "soft"}


def ruled(tmp_path: Path, rules: str) -> tuple[str, str]:
    cluster, plan = tmp_path / "cluster.yaml", tmp_path / "plan.yaml"
    cluster.write_text(CLUSTER + rules)
    plan.write_text(PLAN)
    return str(plan), str(cluster)


HALF_WAY = "web-1 and web-2 are both on h2"
RULES = """\
rules:
  - kind: satisfy
    id: alone
    constraint: Lonely
    arguments: {{vs: [web-1]}}
    continuous: {continuous}
  - {{kind: satisfy, id: near, constraint: Near, arguments: {{v: web-1, rack: north}}}}
specification: |
  Near(v : vms, rack : string) ::= runs(v) --> label(host(v), "rack") = rack & Online(host(v))
"""


def test_the_gate_refuses_a_plan_that_passes_through_a_broken_state(tmp_path: Path) -> None:
    plan, cluster = ruled(tmp_path, RULES.format(continuous="false"))
    assert answer("check", plan, "--instance", cluster) == {
        "accepted": True,
        "violations": [],
        "existing_faults": [],
    }
    plan, cluster = ruled(tmp_path, RULES.format(continuous="true"))
    told = answer("check", plan, "--instance", cluster, code=1)
    (violation,) = told["violations"]
    assert (violation["constraint"], violation["at"]) == ("rule alone", 700)
    assert violation["step"] == "there"
    assert violation["code"] == "rule-violated"
    assert facts(violation["detail"])[-3:] == ["running(host(web-1))", "{web-2}", "{web-1}"]
    assert "0:00:00.700" in call_here("check", plan, "--instance", cluster).stdout


def test_a_rule_that_cannot_be_judged_is_bad_input_with_its_line(tmp_path: Path) -> None:
    rules = """\
rules:
  - {kind: satisfy, id: a, constraint: Spraed, arguments: {vs: [web-1]}}
  - kind: satisfy
    id: b
    constraint: Fence
    arguments:
      v: web-9
      ns: [h1, h9]
  - {kind: satisfy, id: c, constraint: MaxPerHost, arguments: {vs: [web-1], nb: many, x: 1}}
"""
    plan, cluster = ruled(tmp_path, rules)
    problems = answer("check", plan, "--instance", cluster, code=2)["problems"]
    assert [(problem["line"], problem["code"], problem["key"]) for problem in problems] == [
        (9, "unknown-constraint", "rules[0].constraint"),
        (14, "invalid-argument", "rules[1].arguments.v"),
        (15, "invalid-argument", "rules[1].arguments.ns"),
        (16, "unknown-argument", "rules[2].arguments.x"),
        (16, "invalid-argument", "rules[2].arguments.nb"),
    ]
    assert suggested(problems[0]["cure"]) == "Spread"
    broken = "specification: |\n  A ::= card(vms\n"
    plan, cluster = ruled(tmp_path, broken)
    assert located("check", plan, "--instance", cluster) == [("syntax-error", "specification", 8)]
    plan, cluster = ruled(
        tmp_path, "rules: [{kind: satisfy, id: a, constraint: A, arguments: {v: 1.5}}]"
    )
    assert located("check", plan, "--instance", cluster) == [
        ("wrong-type", "rules[0].arguments.v", 8)
    ]


def test_a_case_is_judged_and_the_answer_says_when_and_why(tmp_path: Path) -> None:
    told = answer("spec", "judge", "Spread", "--case", VISIT, code=1)
    assert told == {
        "constraint": "Spread({web-1, web-2})",
        "holds": False,
        "at": 700,
        "detail": HALF_WAY,
    }
    assert "0:00:00.700" in call_here("spec", "judge", "Spread", "--case", VISIT).stdout
    assert answer("spec", "judge", "MostlySpread", "--case", VISIT, code=2)["problems"][0][
        "key"
    ] == ("arguments.nb")
    own = tmp_path / "own.spec"
    own.write_text("Apart(vs <: vms) ::= card(vs) = 2 --> Spread(vs) | sometime true\n")
    done = call_here("spec", "judge", "Apart", "--case", VISIT, "--spec", str(own))
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["Apart({web-1,", "web-2})"])
    wrong = misspelt("spec", "judge", "Spred", "--case", VISIT)
    assert wrong == ("unknown-constraint", "Spread")


def test_a_package_adds_a_function_in_a_few_lines(tmp_path: Path) -> None:
    """As the documentation shows it: a module and an entry point, nothing else."""
    (tmp_path / "ages.py").write_text(
        "from equipoise.spec.functions import function\n\n"
        '@function("(vm) -> int", "how old the VM is, in days")\n'
        "def age(view, vm):\n"
        '    return int(view.vm(vm).labels.get("age", 0))\n'
    )
    record = tmp_path / "ages-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: ages\nVersion: 1.0\n")
    (record / "entry_points.txt").write_text("[equipoise.functions]\nage = ages:age\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert "how old the VM is" in call("spec", "functions", PYTHONPATH=path).stdout
    own = tmp_path / "own.spec"
    own.write_text("Young(vs <: vms) ::= !(v : vs) age(v) < 30\n")
    judged = call("spec", "judge", "Young", "--case", VISIT, "--spec", str(own), PYTHONPATH=path)
    assert (judged.returncode, judged.stderr) == (0, "")
    assert "holds" in judged.stdout
    (record / "entry_points.txt").write_text("[equipoise.functions]\ncard = ages:age\n")
    refused = call("spec", "functions", "--json", PYTHONPATH=path)
    assert refused.returncode == 2
    (problem,) = json.loads(refused.stdout)["problems"]
    assert problem["code"] == "invalid-function"
    assert "card" in problem["what"]
