"""Power as the installed command shows it: standby, the reasons against it, and failed wakes."""

from __future__ import annotations

from pathlib import Path

from command import answer, call_here, cured

ROOT = Path(__file__).parent.parent.parent
NIGHT = str(ROOT / "examples" / "night.yaml")


def test_recommend_shows_hosts_for_standby_and_why_the_others_stay_on() -> None:
    found = answer("recommend", NIGHT, "--with", "power")
    power = found["power"]
    assert power["sleeps"] == ["old-1", "h2", "h4"]
    assert power["watts_saved"] == 394
    kept = {host["host"]: host for host in power["kept"]}
    assert {host: entry["code"] for host, entry in kept.items()} == {
        "h1": "breaks-rule",
        "h3": "breaks-rule",
        "h5": "stays-on",
        "lab": "no-power-figures",
        "spare": "not-needed",
    }
    assert "ceph-quorum" in kept["h1"]["sentence"]
    rows = found["recommendations"]
    assert [(row["action"], row["vm"], row["from"]) for row in rows] == [
        ("migrate", "build", "old-1"),
        ("power_off", None, "old-1"),
        ("migrate", "web-1", "h2"),
        ("power_off", None, "h2"),
        ("migrate", "db", "h4"),
        ("power_off", None, "h4"),
    ]
    assert rows[1]["after"] == ["build"]
    assert power["scores"]["after"]["low"]["cpu"] < power["scores"]["before"]["low"]["cpu"]
    said = call_here("recommend", NIGHT, "--with", "power", "--why", "h5").stdout
    assert "3 hosts (old-1, h2, h4)" in said
    assert "stays-on" in said


def test_what_is_recommended_passes_the_gate(tmp_path: Path) -> None:
    rows = answer("recommend", NIGHT, "--with", "power")["recommendations"]
    steps = []
    for number, row in enumerate(rows):
        if row["action"] == "migrate":
            action = f"do: migrate, vm: {row['vm']}, source: {row['from']}, target: {row['to']}"
            times = "start_ms: 0, end_ms: 60000"
        else:
            action, times = f"do: power_off, host: {row['from']}", "start_ms: 60000, end_ms: 90000"
        steps.append(f"  - {{id: s{number}, action: {{{action}}}, {times}}}")
    plan = tmp_path / "plan.yaml"
    plan.write_text("id: p\nsteps:\n" + "\n".join(steps) + "\n")
    assert answer("check", str(plan), "--instance", NIGHT)["accepted"]


def test_what_cannot_be_meant_is_refused_with_a_cure() -> None:
    for options, code, named in (
        (("recommend", NIGHT, "--with", "pwer"), "unknown-name", "power"),
        (("simulate", "dpm-table3", "--set", "cluster.powr.threshold=4"), "unknown-key", "power?"),
        (
            ("simulate", "dpm-table3", "--set", "cluster.power.treshold=4"),
            "unknown-key",
            "threshold?",
        ),
        (
            ("simulate", "dpm-table3", "--set", "cluster.power.threshold=9"),
            "out-of-range",
            "1 to 5",
        ),
        (("simulate", "dpm-table3", "--set", "threshold"), "syntax-error", "KEY=VALUE"),
    ):
        found, cure = cured(*options)
        assert found == code
        assert named in cure


SURGE = """
name: surge
duration_s: 7200
deciders: [balance, power]
cluster: {hosts: []}
fleet:
  hosts:
    - count: 6
      like: {id: host, cores: 8, mhz_per_core: 2500, memory_mib: 65536,
             power: {idle_watts: 100, peak_watts: 300, standby_watts: 5}}
  vms:
    - {count: 48, like: {id: vm, vcpus: 1, memory_mib: 1024}, load: surge, start: {hosts: [host]}}
loads:
  surge:
    cpu_mhz:
      - {kind: steps, points: [{at_s: 0, level: 150}, {at_s: 2400, level: 1500}]}
    memory_mib: [{kind: constant, level: 300}]
physics:
  migration: {link_mbps: 10000}
  switching: {power_on_s: 180, power_off_s: 60, jitter_pct: 0}
events:
"""


def test_a_host_that_does_not_wake_is_replaced_by_another(tmp_path: Path) -> None:
    """Of four hosts in standby, two hang once; the load needs five of six."""
    scenario = tmp_path / "surge.yaml"
    stuck = [f"  - {{event: power_on_stuck, at_ms: 1, host: host-{n}}}\n" for n in (1, 2)]
    scenario.write_text(SURGE + "".join(stuck))
    out = tmp_path / "out"
    found = answer("simulate", str(scenario), "--out", str(out))
    assert found["power_offs"] == 4
    assert found["power_ons"] >= 3
    assert "action_timed_out" in (out / "journal.jsonl").read_text()
    rows = (out / "cluster.csv").read_text().splitlines()
    names = rows[0].split(",")
    last = dict(zip(names, rows[-1].split(","), strict=True))
    demand, used = float(last["cpu_demand_mhz"]), float(last["cpu_used_mhz"])
    assert used >= 0.999 * demand, "all demand is met in the end"
