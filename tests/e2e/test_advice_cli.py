"""Recommendations, placement and what-if, as the installed command gives them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import answer, call_here, located, misspelt, refusals

ROOT = Path(__file__).parent.parent.parent
SMALL = str(ROOT / "examples" / "small.yaml")
NEW = str(ROOT / "examples" / "new-vms.yaml")
GROWTH = str(ROOT / "examples" / "growth.yaml")


def test_recommend_shows_moves_reasons_and_alternatives() -> None:
    found = answer("recommend", SMALL)
    assert found["imbalance"]["after"] < found["imbalance"]["before"]
    assert not found["faults"]
    first = found["recommendations"][0]
    assert (first["action"], first["vm"], first["from"], first["to"]) == (
        "migrate", "build-1", "r2", "r3",
    )  # fmt: skip
    assert 1 <= first["priority"] <= 5
    assert first["gain"] > 0 < first["cost"]
    assert "CPU" in first["reason"]
    assert {candidate["code"] for candidate in first["considered"]} <= {
        "second-best",
        "cost-exceeds-benefit",
    }
    assert found["wall_s"] >= 0
    assert {share["pool"] for share in found["host_pools"]} == {"production", "batch"}
    moved = {(change["host"], change["pool"]): change for change in found["host_pool_changes"]}
    assert moved["r2", "batch"]["after"] is None, "build-1 has left"
    assert moved["r3", "batch"]["before"] is None, "and has come"
    said = call_here("recommend", SMALL).stdout
    assert "from 0.255" in said


def test_why_explains_every_vm_and_host() -> None:
    told = {
        explanation["subject"]: explanation
        for explanation in answer("recommend", SMALL, "--why", "all")["explanations"]
    }
    assert told["build-1"]["code"] == "moves"
    assert told["web-1"]["code"] == "keep-apart"
    assert "web-apart" in told["web-1"]["sentence"]
    assert "web-2" in told["web-1"]["sentence"]
    assert told["r4"]["code"] == "host-off"
    assert len(told) == 11
    assert refusals("recommend", SMALL, "--why", "absent") == [("unknown-name", "absent")]


def test_the_dry_run_is_the_run(tmp_path: Path) -> None:
    """What recommend says is what the gate accepts, in that order."""
    found = answer("recommend", SMALL)
    steps = [
        f"  - {{id: s{n}, action: {{do: migrate, vm: {move['vm']}, source: {move['from']}, "
        f"target: {move['to']}}}, end_ms: 20000}}"
        for n, move in enumerate(found["recommendations"])
    ]
    plan = tmp_path / "plan.yaml"
    plan.write_text("id: p\nsteps:\n" + "\n".join(steps) + "\n")
    assert answer("check", str(plan), "--instance", SMALL)["accepted"]


def test_a_host_is_evacuated_and_a_vm_that_cannot_leave_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    text = Path(SMALL).read_text(encoding="utf-8")
    file.write_text(text.replace("  - id: r1\n", "  - id: r1\n    requested: maintenance\n", 1))
    found = answer("recommend", str(file), code=1)
    first = found["recommendations"][0]
    assert (first["vm"], first["priority"]) == ("db-1", 1)
    (fault,) = found["faults"]
    assert fault["code"] == "no-target-host"
    assert fault["rules"] == ["web-apart"]
    assert "wake r4" in fault["unblock"]
    assert "fault no-target-host" in call_here("recommend", str(file)).stdout


def test_new_vms_get_hosts_or_a_fault(tmp_path: Path) -> None:
    found = answer("place", SMALL, "--vms", NEW)
    hosts = {placement["vm"]: placement["host"] for placement in found["placements"]}
    assert set(hosts) == {"report-1", "ledger-1", "ledger-2"}
    assert hosts["ledger-1"] != hosts["ledger-2"], "the halves of a pair are apart"
    assert not found["faults"]
    ranked = [alternative["imbalance"] for alternative in found["placements"][-1]["alternatives"]]
    assert ranked == sorted(ranked)
    huge = tmp_path / "huge.yaml"
    huge.write_text("vms: [{id: huge, vcpus: 64, memory_mib: 1024}]\n")
    (fault,) = answer("place", SMALL, "--vms", str(huge), code=1)["faults"]
    assert fault["subject"] == "huge"
    assert fault["code"] == "no-target-host"
    assert "64 vCPUs" in fault["detail"]


def test_a_placement_frees_capacity_or_powers_hosts_on(tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    large.write_text(
        "vms:\n  - {id: large, vcpus: 4, memory_mib: 40000, memory: {reservation_mib: 40000}}\n"
        "  - {id: larger, vcpus: 4, memory_mib: 57000, memory: {reservation_mib: 57000}}\n"
    )
    found = answer("place", SMALL, "--vms", str(large))
    assert len(found["placements"]) == 2
    assert found["power_ons"] == ["r4"] or found["prerequisite_moves"]


def test_what_if_a_host_dies_or_goes() -> None:
    lost = answer("whatif", SMALL, "--fail", "r1")
    assert {restart["vm"] for restart in lost["restarts"]} == {"web-1", "db-1"}
    assert lost["unplaced"] == []
    assert lost["power_ons"] == ["r4"], "the web servers stay apart"
    gone = answer("whatif", SMALL, "--remove", "r1", code=1)
    assert gone["unplaced"] == ["web-1"]
    assert [recommendation["vm"] for recommendation in gone["recommendations"]] == ["db-1"]
    everything = answer("whatif", SMALL, "--fail", "r1,r2,r3", code=1)
    assert len(everything["restarts"]) + len(everything["unplaced"]) == 7


def test_the_failover_reserve_is_enough_for_a_failure(tmp_path: Path) -> None:
    hosts = "".join(
        f"  - {{id: {name}, cores: 8, mhz_per_core: 2000, memory_mib: 16384}}\n" for name in "abc"
    )
    vms = "".join(
        f"  - {{id: {name}{n}, vcpus: 1, memory_mib: 5120, host: {name}, "
        "memory: {reservation_mib: 4608}}\n"
        for name in "abc"
        for n in (1, 2)
    )
    rule = "{kind: satisfy, id: ha, constraint: Failover, arguments: {nb: 1, id: memory}}"
    file = tmp_path / "ha.yaml"
    file.write_text(f"hosts:\n{hosts}vms:\n{vms}rules:\n  - {rule}\n")
    assert not answer("recommend", str(file))["faults"]
    lost = answer("whatif", str(file), "--fail", "a")
    assert {restart["vm"] for restart in lost["restarts"]} == {"a1", "a2"}
    again = answer("whatif", str(file), "--fail", "a,b", code=1)
    assert again["unplaced"], "two failures exceed the failover level"


def test_what_if_a_host_comes_and_demand_grows() -> None:
    found = answer("whatif", SMALL, "--add", GROWTH)
    moves = {recommendation["vm"]: recommendation for recommendation in found["recommendations"]}
    assert moves["db-1"]["priority"] == 1
    assert "db-rack-b" in moves["db-1"]["reason"]
    assert "r5" in {move["to"] for move in moves.values()}


def test_wrong_files_and_names_are_reported_with_place_and_cure(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("demand: {wb-1: {cpu_mhz: 3}}\nvms: [{id: web-1, vcpus: 1, memory_mib: 3}]\n")
    found = answer("whatif", SMALL, "--add", str(bad), code=2)["problems"]
    assert [(row["code"], row["key"], row["line"]) for row in found] == [
        ("unknown-name", 'demand["wb-1"]', 1),
        ("duplicate-name", "vms[0].id", 2),
    ]
    assert '"web-1"?' in found[0]["cure"]
    assert misspelt("whatif", SMALL, "--fail", "r11") == ("unknown-name", "r1")
    bad.write_text("hosts: []\n")
    assert refusals("place", SMALL, "--vms", str(bad)) == [("empty-value", "vms")]
    bad.write_text("vms: [{id: x, vcpus: 1, memory_mib: 5, pool: nix}]\n")
    assert located("place", SMALL, "--vms", str(bad)) == [("unknown-name", "vms[0].pool", 1)]
    policy = tmp_path / "policy.yaml"
    text = Path(SMALL).read_text(encoding="utf-8")
    policy.write_text(text + "balance: {threshold: 9, vms: {web-9: off}, hosts: {r1: shut}}\n")
    unknown = ("unknown-name", 'balance.vms["web-9"]')
    assert refusals("recommend", str(policy)) == [
        ("out-of-range", "balance.threshold"),
        ("invalid-value", "balance.hosts.r1"),
        unknown,
    ]
    policy.write_text(text + "balance: {vms: {web-9: off}, hosts: {r1: closed}}\n")
    assert refusals("recommend", str(policy)) == [unknown]


AT_MOST_PER_RACK = """
name: racks
specification: |
  AtMostPerRack(role : string, nb : int) discrete continuous ::=
      !(n : hosts) card({v . v : vms, label(v, "role") = role, runs(v),
                         label(host(v), "rack") = label(n, "rack")}) <= nb
rules:
  - {kind: satisfy, id: r, constraint: AtMostPerRack, arguments: {role: db, nb: 2}}
hosts:
  - {id: h1, cores: 8, mhz_per_core: 2400, memory_mib: 65536, labels: {rack: a}}
  - {id: h2, cores: 8, mhz_per_core: 2400, memory_mib: 65536, labels: {rack: a}}
  - {id: h3, cores: 8, mhz_per_core: 2400, memory_mib: 65536, labels: {rack: b}}
  - {id: h4, cores: 8, mhz_per_core: 2400, memory_mib: 65536, labels: {rack: c}}
vms:
"""


def test_a_rule_about_racks_is_repaired_by_the_advice_the_loop_and_a_placement(
    tmp_path: Path,
) -> None:
    """Six databases, all in rack a; at most two may stay there."""

    def cluster(count: int) -> str:
        like = "vcpus: 1, memory_mib: 4096, labels: {role: db}"
        vms = [f"  - {{id: db-{n}, host: h{1 + n % 2}, {like}}}" for n in range(count)]
        return AT_MOST_PER_RACK + "\n".join(vms) + "\n"

    full = tmp_path / "full.yaml"
    full.write_text(cluster(6))
    advice = answer("recommend", str(full))
    assert sorted(row["to"] for row in advice["recommendations"]) == ["h3", "h3", "h4", "h4"]
    assert (advice["faults"], {row["code"] for row in advice["recommendations"]}) == (
        [],
        {"repair-rule"},
    )
    scenario = tmp_path / "loop.yaml"
    indented = "".join(f"  {line}\n" for line in full.read_text().splitlines())
    scenario.write_text(f"name: loop\nduration_s: 900\ndeciders: [balance]\ncluster:{indented}")
    run = answer("simulate", str(scenario))
    assert (run["migrations"], run["violations"]) == (4, [])
    new = tmp_path / "new.yaml"
    new.write_text(
        "vms: [{id: db-9, vcpus: 1, memory_mib: 4096, labels: {role: db}, state: ready}]\n"
    )
    # The rule is broken in rack a; a start in another rack does not make that worse.
    started = answer("place", str(full), "--vms", str(new))
    assert [row["host"] in {"h3", "h4"} for row in started["placements"]] == [True]
    assert started["prerequisite_moves"] == []


MEMBERS_OF_A_RACK = {
    "pool": 'pool(v) = "gold"',
    "label": 'label(v, "role") = "db"',
    "size": 'cons(v, "slots") >= 2',
}


@pytest.mark.parametrize("members", MEMBERS_OF_A_RACK.values(), ids=MEMBERS_OF_A_RACK)
def test_the_vms_of_a_rule_about_racks_may_be_named_by_any_property(
    members: str, tmp_path: Path
) -> None:
    """Five VMs of the rule in one of three racks: two of them may stay; and seven are too many."""

    def cluster(count: int) -> Path:
        hosts = [
            f"  - {{id: {rack}{n}, cores: 8, mhz_per_core: 2400, memory_mib: 65536,"
            f" labels: {{rack: {rack}}}, capacity: {{slots: 20}}}}"
            for rack in "abc"
            for n in range(2)
        ]
        like = "vcpus: 1, memory_mib: 2048"
        vms = [
            f"  - {{id: db-{n}, host: a{n % 2}, {like}, pool: gold, labels: {{role: db}},"
            " consumption: {slots: 2}}"
            for n in range(count)
        ]
        vms += [f"  - {{id: web-{n}, host: a{n % 2}, {like}, pool: tin}}" for n in range(4)]
        path = tmp_path / f"{count}.yaml"
        path.write_text(
            "specification: |\n  Racks(nb : int) discrete continuous ::=\n      !(n : hosts) "
            f"card({{v . v : vms, {members}, runs(v),"
            ' label(host(v), "rack") = label(n, "rack")}) <= nb\n'
            "rules: [{kind: satisfy, id: r, constraint: Racks, arguments: {nb: 2}}]\n"
            "pools: [{id: gold}, {id: tin}]\nhosts:\n" + "\n".join(hosts) + "\n"
            "vms:\n" + "\n".join(vms) + "\n"
        )
        return path

    advice = answer("recommend", str(cluster(5)))
    moves = [(row["vm"][:2], row["to"][0]) for row in advice["recommendations"]]
    assert len(moves) == 3
    assert {vm for vm, _ in moves} == {"db"}
    assert {rack for _, rack in moves} == {"b", "c"}
    assert advice["faults"] == []
    refused = call_here("recommend", str(cluster(7)), "--json")
    assert refused.returncode == 1
    assert [fault["code"] for fault in json.loads(refused.stdout)["faults"]] == ["broken-rule"]


def test_commands_print_warnings_and_go_on(tmp_path: Path) -> None:
    path, new = tmp_path / "cluster.yaml", tmp_path / "new.yaml"
    path.write_text(
        "hosts:\n  - {id: h, cores: 64, mhz_per_core: 2600, memory_mib: 65536}\n"
        "vms:\n  - {id: v, vcpus: 1, memory_mib: 4096, host: h, demand: {cpu_mhz: 50000}}\n"
    )
    new.write_text("vms: [{id: n, vcpus: 1, memory_mib: 1024}]\n")
    for command in (
        ("show", str(path)),
        ("recommend", str(path)),
        ("whatif", str(path)),
        ("place", str(path), "--vms", str(new)),
    ):
        (row,) = answer(*command)["warnings"]
        assert (row["code"], row["line"], row["file"]) == ("doubtful-vm-cpu", 4, str(path))
        assert row["key"] == "vms[0].demand.cpu_mhz"
        assert "warning" in call_here(*command).stderr
