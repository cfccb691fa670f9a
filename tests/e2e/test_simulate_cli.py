"""``equipoise simulate`` and ``equipoise report``, with the installed command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from command import answer, call_here, located, misspelt, refusals
from equipoise.model.event import decode_event
from placement_auditor import PlacementAuditor

CONTRACT = {
    "scenario",
    "seed",
    "duration_s",
    "migrations",
    "payload_pct",
    "satisfied_pct",
    "energy_kwh",
    "imbalance",
    "happiness",
    "power_ons",
    "power_offs",
    "violations",
    "wall_s",
    "journal_sha256",
}


def test_table_1_without_balancing_comes_out_as_published() -> None:
    one, two = (answer("simulate", "drs-table1", "--without", "balance") for _ in range(2))
    assert set(one) >= CONTRACT
    assert set(one["imbalance"]) >= {"initial", "final", "below_target_at_s"}
    assert one["payload_pct"]["cpu"] == pytest.approx(55.68, abs=3)
    assert one["payload_pct"]["memory"] == pytest.approx(65.94, abs=3)
    assert one["migrations"] == 0
    assert {**one, "wall_s": 0} == {**two, "wall_s": 0}, "the same to the last byte of the journal"


@pytest.mark.parametrize(
    ("name", "cpu", "memory"),
    [
        ("drs-table2-1", 19.2, 15.84),
        ("drs-table2-2", 19.1, 15.84),
        ("drs-table2-3", 6.67, 42.9),
        ("dpm-table3", 2.77, 2.31),
    ],
)
def test_the_payloads_of_tables_2_and_3_come_out_as_published(
    name: str, cpu: float, memory: float
) -> None:
    found = answer("simulate", name, "--without", "balance")
    assert found["payload_pct"] == {
        "cpu": pytest.approx(cpu, abs=0.5),
        "memory": pytest.approx(memory, abs=0.5),
    }
    if name == "dpm-table3":
        assert found["energy_kwh"] == pytest.approx(31.65, abs=0.3)


def test_the_spike_of_the_testbed_makes_the_published_imbalance() -> None:
    found = answer("simulate", "drs-testbed", "--without", "balance")
    assert found["imbalance"]["initial"] == pytest.approx(0.5, abs=0.03)
    happiness = {pool["pool"]: pool["mean_pct"] for pool in found["happiness"]}
    assert happiness["RP-HighShare"] > happiness["RP-NormShare-1"] + 3
    assert happiness["RP-NormShare-2"] == happiness["RP-LowShare"] == 100


def test_the_power_testbed_draws_what_was_measured(tmp_path: Path) -> None:
    for name, idle, busy in (("dpm-testbed", 1500, 2200), ("dpm-testbed-no-hpm", 1900, 2100)):
        out = tmp_path / name
        alone = ("--without", "balance", "--json", "--out", str(out))
        assert call_here("simulate", name, *alone).returncode == 0
        lines = [line.split(",") for line in (out / "cluster.csv").read_text().splitlines()]
        watts = lines[0].index("watts")
        drawn = {float(line[0]): float(line[watts]) for line in lines[1:]}
        assert drawn[600] == pytest.approx(idle, rel=0.03)
        assert drawn[2700] == pytest.approx(busy, rel=0.03)


def test_the_output_has_energy_its_price_and_unmet_demand() -> None:
    found = answer("simulate", "dpm-testbed", "--without", "balance")
    energy = found["energy"]
    assert set(energy) >= {
        "kwh", "saved_kwh", "saved_pct", "price", "saved_price", "currency", "co2_kg",
        "saved_co2_kg", "host_hours_asleep",
    }  # fmt: skip
    assert energy["kwh"] == found["energy_kwh"]
    assert energy["price"] == pytest.approx(0.3 * energy["kwh"], abs=0.001)
    assert energy["co2_kg"] == pytest.approx(0.4 * energy["kwh"], abs=0.001)
    assert (energy["currency"], energy["saved_kwh"], energy["host_hours_asleep"]) == ("EUR", 0, 0)
    assert set(found["unsatisfied"]) == {"cpu_mhz_h", "memory_mib_h"}
    assert (
        "saved by standby"
        not in call_here("simulate", "dpm-testbed", "--without", "balance").stdout
    )


def test_savings_are_priced_by_the_tariff_of_the_cluster(tmp_path: Path) -> None:
    scenario = tmp_path / "asleep.yaml"
    scenario.write_text(
        """
name: asleep
duration_s: 7200
cluster:
  hosts:
    - id: h1
      cores: 2
      mhz_per_core: 1000
      memory_mib: 4096
      power: {idle_watts: 100, peak_watts: 200, standby_watts: 10}
    - id: h2
      cores: 2
      mhz_per_core: 1000
      memory_mib: 4096
      state: standby
      power: {idle_watts: 100, peak_watts: 200, standby_watts: 10}
  vms: [{id: v, vcpus: 1, memory_mib: 512, host: h1, demand: {cpu_mhz: 3000, memory_mib: 256}}]
  power: {tariff: {price_per_kwh: 0.5, currency: CHF, co2_g_per_kwh: 100}}
"""
    )
    found = answer("simulate", str(scenario))
    assert found["energy"] == {
        "kwh": 0.42, "saved_kwh": 0.18, "saved_pct": 30.0, "price": 0.21, "saved_price": 0.09,
        "currency": "CHF", "price_per_kwh": 0.5, "co2_kg": 0.042, "saved_co2_kg": 0.018,
        "co2_g_per_kwh": 100, "host_hours_asleep": 2.0,
    }  # fmt: skip
    assert found["unsatisfied"] == {"cpu_mhz_h": 2000.0, "memory_mib_h": 0.0}
    shown = call_here("simulate", str(scenario), "--out", str(tmp_path / "out")).stdout
    for words in ("standby time of all hosts", "0.18 kWh, 30.0 %", "0.09 CHF", "2,000 MHz h"):
        assert words in shown, words
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Standby saved 0.18 kWh, 30 % of that." in page


def test_balancing_gains_what_the_paper_says_with_fewer_moves() -> None:
    table = answer("simulate", "drs-table1")
    assert table["payload_pct"]["cpu"] >= 73.7
    assert table["payload_pct"]["memory"] >= 94.9
    assert table["migrations"] <= 166
    spike = answer("simulate", "drs-testbed")
    assert spike["imbalance"]["below_target_at_s"] <= 140 * 60
    assert spike["migrations"] <= 267
    assert all(pool["final_happy_pct"] == 100 for pool in spike["happiness"])


def test_seeds_and_deciders_can_be_chosen() -> None:
    other = answer("simulate", "drs-table1", "--seed", "7")
    assert other["seed"] == 7
    assert other["journal_sha256"] != answer("simulate", "drs-table1")["journal_sha256"]
    wrong = misspelt("simulate", "drs-table1", "--with", "restrat")
    assert wrong == ("unknown-name", "restart")
    without = ("simulate", "drs-table1", "--without", "gremlins")
    assert refusals(*without) == [("unknown-name", "--without")]
    usage = answer("simulate", "drs-table1", "--seed", "-1", code=2)
    assert usage["error"] == "usage"
    assert "--seed" in usage["message"]


def test_a_paced_run_is_the_same_run() -> None:
    paced = answer("simulate", "first-steps", "--pace", "1000")
    assert paced["wall_s"] >= 0.29, "300 s at a thousand a second"
    assert paced["journal_sha256"] == answer("simulate", "first-steps")["journal_sha256"]


def test_after_a_day_of_faults_no_vm_is_lost_or_duplicated(tmp_path: Path) -> None:
    out = tmp_path / "chaos"
    found = json.loads(call_here("simulate", "chaos", "--json", "--out", str(out)).stdout)
    assert found["duration_s"] == 86_400
    assert found["migrations"] > 500
    events = [decode_event(line) for line in (out / "journal.jsonl").read_bytes().splitlines()]
    kinds = {type(event).__name__ for event in events}
    assert kinds >= {
        "HostFailed",
        "HostRecovered",
        "VmCrashed",
        "ActionFailed",
        "ActionTimedOut",
        "HostJoined",
        "HostLeft",
        "VmArrived",
        "VmLeft",
    }
    auditor = PlacementAuditor()
    auditor.read(events)
    assert auditor.findings == []
    assert set(auditor.runs_on) == auditor.seen - auditor.left
    assert set(auditor.runs_on.values()) - {None} <= {host for host, on in auditor.on.items() if on}
    last = _last_hosts(out / "hosts.csv")
    for host, vms in last.items():
        assert vms == sum(place == host for place in auditor.runs_on.values()), host
    assert found["downtime_s"] > 0
    assert {entry["tenant"] for entry in found["sla"]} == {"shop", "bank"}


def _last_hosts(path: Path) -> dict[str, int]:
    """How many VMs the hosts really have in the end, by the world's own count."""
    rows = [line.split(",") for line in path.read_text().splitlines()]
    at, host, vms = (rows[0].index(name) for name in ("at_s", "host", "vms"))
    end = rows[-1][at]
    return {row[host]: int(float(row[vms])) for row in rows[1:] if row[at] == end}


def test_a_run_is_written_and_two_are_compared(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    for seed, folder in enumerate(folders, start=1):
        done = call_here("simulate", "drs-table1", "--seed", str(seed), "--out", str(folder))
        assert done.returncode == 0, done.stderr
        assert "report.html" in done.stderr
        names = {path.name for path in folder.iterdir()}
        series = {
            f"{table}.{end}"
            for table in ("cluster", "hosts", "pools")
            for end in ("csv", "parquet")
        }
        assert names == {"summary.json", "journal.jsonl", "report.html"} | series
    again = ("simulate", "drs-table1", "--out", str(folders[0]))
    assert refusals(*again) == [("already-exists", "")]
    page = tmp_path / "compare.html"
    shown = call_here("report", *map(str, folders), "--out", str(page))
    assert shown.returncode == 0, shown.stderr
    assert "imbalance" in shown.stdout.lower()
    assert not re.search(r"""(src|href)=["']?https?:""", page.read_text())
    rows: dict[str, Any] = answer("report", *map(str, folders))
    assert rows["a"] == "a"
    assert any(row["better"] in ("A", "B") for row in rows["differences"])
    assert call_here("report", str(tmp_path), str(folders[0])).returncode == 2


def test_impossible_scenarios_are_refused_before_the_run(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    (tmp_path / "holes.csv").write_text("at_s,value\n0,5\n60,-3\n90000,4\n80000,4\n")
    bad.write_text(
        """
name: bad
duration_s: 3600
cluster: {hosts: [{id: h1, cores: 1, mhz_per_core: 1000, memory_mib: 1024}]}
fleet:
  vms:
    - count: 2
      like: {id: huge, vcpus: 1, memory_mib: 4096}
      load: nothing-such
      start: {hosts: [h2]}
loads:
  endless: {cpu_mhz: [{kind: noise, level: 5, period_s: 0}]}
"""
    )
    assert located("simulate", str(bad)) == [
        ("no-capacity", "fleet.vms[0].like.memory_mib", 8),
        ("unknown-name", "fleet.vms[0].load", 9),
        ("unknown-name", "fleet.vms[0].start.hosts[0]", 10),
        ("out-of-range", "loads.endless.cpu_mhz[0].period_s", 12),
    ]
    bad.write_text(
        """
name: holes
duration_s: 3600
cluster:
  hosts: [{id: h1, cores: 1, mhz_per_core: 1000, memory_mib: 1024}]
  vms: [{id: v, vcpus: 1, memory_mib: 512, host: h1}]
loads:
  traced: {cpu_mhz: [{kind: trace, file: holes.csv}], memory_mib: [{kind: trace, file: none.csv}]}
vm_loads: {v: traced}
"""
    )
    assert refusals("simulate", str(bad)) == [
        ("negative-demand", "loads.traced.cpu_mhz[0]"),
        ("trace-gap", "loads.traced.cpu_mhz[0]"),
        ("time-not-ascending", "loads.traced.cpu_mhz[0]"),
        ("trace-unreadable", "loads.traced.memory_mib[0]"),
    ]
    refused = call_here("simulate", str(bad))
    assert refused.returncode == 2
    for place in ("line 3", "line 4", "line 5", "none.csv"):
        assert place in refused.stderr, f"{place} in {refused.stderr}"
    assert "Traceback" not in refused.stderr
