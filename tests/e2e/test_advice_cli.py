"""Recommendations, placement and what-if, as the installed command gives them."""

from __future__ import annotations

from pathlib import Path

from command import answer, call

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
    said = call("recommend", SMALL).stdout
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
    assert "there is no such VM or host" in call("recommend", SMALL, "--why", "absent").stderr


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
    assert "fault no-target-host" in call("recommend", str(file)).stdout


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
        "vms:\n  - {id: large, vcpus: 4, memory_mib: 60000, memory: {reservation_mib: 60000}}\n"
        "  - {id: larger, vcpus: 4, memory_mib: 62000, memory: {reservation_mib: 62000}}\n"
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
        f"  - {{id: {name}{n}, vcpus: 1, memory_mib: 8192, host: {name}, "
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
    assert again["unplaced"], "two failures are more than was asked for"


def test_what_if_a_host_comes_and_demand_grows() -> None:
    found = answer("whatif", SMALL, "--add", GROWTH)
    moves = {recommendation["vm"]: recommendation for recommendation in found["recommendations"]}
    assert moves["db-1"]["priority"] == 1
    assert "db-rack-b" in moves["db-1"]["reason"]
    assert "r5" in {move["to"] for move in moves.values()}


def test_wrong_files_and_names_are_reported_with_place_and_cure(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("demand: {wb-1: {cpu_mhz: 3}}\nvms: [{id: web-1, vcpus: 1, memory_mib: 3}]\n")
    said = call("whatif", SMALL, "--add", str(bad)).stderr
    assert 'line 1: demand["wb-1"]: there is no VM "wb-1" (did you mean "web-1"?' in said
    assert 'line 2: vms[0].id: the cluster already has "web-1"' in said
    assert "did you mean r1?" in call("whatif", SMALL, "--fail", "r11").stderr
    bad.write_text("hosts: []\n")
    assert "the file has no VM" in call("place", SMALL, "--vms", str(bad)).stderr
    bad.write_text("vms: [{id: x, vcpus: 1, memory_mib: 5, pool: nix}]\n")
    done = call("place", SMALL, "--vms", str(bad))
    assert done.returncode == 2
    assert 'line 1: vms[0].pool: there is no pool "nix"' in done.stderr
    policy = tmp_path / "policy.yaml"
    text = Path(SMALL).read_text(encoding="utf-8")
    policy.write_text(text + "balance: {threshold: 9, vms: {web-9: off}, hosts: {r1: shut}}\n")
    said = call("recommend", str(policy)).stderr
    assert "balance.threshold" in said
    assert "balance.hosts" in said
    policy.write_text(text + "balance: {vms: {web-9: off}, hosts: {r1: closed}}\n")
    assert 'balance.vms["web-9"]: there is no VM "web-9"' in call("recommend", str(policy)).stderr
