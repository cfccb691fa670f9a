"""The heat map of hosts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from equipoise.documents.simulation import SimulationDocument
from equipoise.report.run.data import RunData
from equipoise.report.run.hosts import hosts_section
from equipoise.sim.measure.sampling import RunRecord, SampleTable
from unit.report.parsed import Element, parsed
from unit.report.synthetic import a_run


def section(record: RunRecord) -> Element:
    run = RunData(document=SimulationDocument(duration_s=100.0), record=record, events=())
    return parsed(hosts_section(run).markup())


def a_record(states: list[list[str]], used: list[list[float]]) -> RunRecord:
    """One list per sample, one entry per host; capacity is 100."""
    samples, count = len(states), len(states[0])
    rows = samples * count
    flat: dict[str, Any] = {
        "at_s": np.repeat(np.linspace(0, 100, samples), count),
        "host": np.tile(np.array([f"h{n}" for n in range(count)], dtype=object), samples),
        "state": np.array(states, dtype=object).ravel(),
        "cpu_used_mhz": np.array(used, dtype=float).ravel(),
        "memory_used_mib": np.array(used, dtype=float).ravel() / 2,
        "cpu_capacity_mhz": np.full(rows, 100.0),
        "memory_capacity_mib": np.full(rows, 100.0),
    }
    times = np.linspace(0, 100, samples)
    return RunRecord(
        cluster=SampleTable({"at_s": times}), hosts=SampleTable(flat), pools=SampleTable({})
    )


def readings(made: Element) -> dict[str, list[str]]:
    carried = json.loads(made.one("figure").one("script").words[0])
    return dict(carried["views"])


def test_each_host_is_a_row_with_its_use_or_its_state() -> None:
    record = a_record([["on", "failed"], ["on", "standby"]], [[50, 0], [97, 0]])
    made = section(record)
    assert readings(made) == {"CPU": ["50 97", "f s"], "memory": ["25 48", "f s"]}
    assert len(made.all("path", "failed")) == 2
    assert len(made.all("path", "standby")) == 2
    assert "h0" in made.text
    assert "The busiest host was h0 at 0:01:40, 97 % of its CPU." in made.text


def test_a_host_that_joins_later_is_absent_before() -> None:
    record = a_record([["on", "on"], ["on", "on"]], [[10, 20], [30, 40]])
    kept = {name: column[[0, 2, 3]] for name, column in record.hosts.columns.items()}
    made = section(
        RunRecord(cluster=record.cluster, hosts=SampleTable(kept), pools=SampleTable({}))
    )
    assert readings(made)["CPU"] == ["10 30", ". 40"]


def test_many_hosts_share_rows() -> None:
    states = [["on"] * 120, ["on"] * 120]
    states[1][3] = "failed"
    used = [[10.0] * 120, [10.0] * 119 + [90.0]]
    made = section(a_record(states, used))
    found = readings(made)
    assert list(found) == ["CPU, mean", "CPU, highest", "memory, mean", "memory, highest"]
    assert len(found["CPU, mean"]) == 60
    assert found["CPU, mean"][-1] == "10 50"
    assert found["CPU, highest"][-1] == "10 90"
    assert "Each row is 2 of 120 hosts." in made.text
    assert "h118 +1" in made.text
    assert len(made.all("path", "partly-failed")) == 1


def test_many_samples_share_columns() -> None:
    made = section(a_run(hosts=3, samples=650).record)
    assert "Each column is 3 samples." in made.text
    assert len(readings(made)["CPU, mean"][0].split()) == 217


def test_without_samples_the_section_has_no_chart() -> None:
    empty = SampleTable({"at_s": np.array([]), "host": np.array([]), "state": np.array([])})
    made = section(RunRecord(cluster=SampleTable({}), hosts=empty, pools=SampleTable({})))
    assert "This run has no samples of hosts." in made.text
    assert not made.all("svg")


def test_the_switch_has_one_choice_per_view_and_the_first_is_chosen() -> None:
    made = section(a_record([["on"]], [[50]]))
    choices = made.all("input")
    assert ["checked" in choice.attributes for choice in choices] == [True, False]
    assert [label.text for label in made.all("label")] == ["CPU", "memory"]
    assert len(made.all("g", "view")) == 2
