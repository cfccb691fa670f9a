"""The heat map of hosts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from equipoise.report.hosts import hosts
from equipoise.report.material import Material
from equipoise.sim.measure.record import Record, Table
from unit.report.parsed import Element, parsed
from unit.report.synthetic import a_run, told


def section(record: Record) -> Element:
    material = Material(summary={"duration_s": 100.0}, record=record, events=(), tell=told)
    return parsed(hosts(material).markup())


def a_record(states: list[list[str]], used: list[list[float]]) -> Record:
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
    return Record(cluster=Table({"at_s": times}), hosts=Table(flat), pools=Table({}))


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
    made = section(Record(cluster=record.cluster, hosts=Table(kept), pools=Table({})))
    assert readings(made)["CPU"] == ["10 30", ". 40"]


def test_many_hosts_are_taken_together_and_the_page_says_so() -> None:
    states = [["on"] * 120, ["on"] * 120]
    states[1][3] = "failed"
    used = [[10.0] * 120, [10.0] * 119 + [90.0]]
    made = section(a_record(states, used))
    found = readings(made)
    assert list(found) == ["CPU, mean", "CPU, highest", "memory, mean", "memory, highest"]
    assert len(found["CPU, mean"]) == 60
    assert found["CPU, mean"][-1] == "10 50"
    assert found["CPU, highest"][-1] == "10 90"
    assert "Each row takes 2 neighbours of 120 hosts together." in made.text
    assert "h118 +1" in made.text
    assert len(made.all("path", "flaw")) == 1


def test_many_samples_are_taken_together_and_the_page_says_so() -> None:
    made = section(a_run(hosts=3, samples=650).record)
    assert "Each column takes 3 samples together." in made.text
    assert len(readings(made)["CPU, mean"][0].split()) == 217


def test_without_samples_it_says_so() -> None:
    empty = Table({"at_s": np.array([]), "host": np.array([]), "state": np.array([])})
    made = section(Record(cluster=Table({}), hosts=empty, pools=Table({})))
    assert "No host was sampled in this run." in made.text
    assert not made.all("svg")


def test_the_switch_has_one_choice_per_view_and_the_first_is_chosen() -> None:
    made = section(a_record([["on"]], [[50]]))
    choices = made.all("input")
    assert ["checked" in one.attributes for one in choices] == [True, False]
    assert [one.text for one in made.all("label")] == ["CPU", "memory"]
    assert len(made.all("g", "view")) == 2
