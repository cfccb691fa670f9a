"""The page of a run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.model.event import HostFailed
from equipoise.model.quantity import HostId
from equipoise.report import compare_page, read_run
from equipoise.sim.measure.sampling import RunRecord, SampleTable
from equipoise.store import MemoryJournal
from unit.report.parsed import Element, parsed
from unit.report.synthetic import Given, Shape, a_run, write

SECTIONS = [
    "load", "imbalance", "hosts", "happiness", "power", "actions", "decisions", "measures",
]  # fmt: skip
NASTY = "\"><script>alert('x')</script><img src=x onerror=alert(1)>"


def written(folder: Path, given: Given) -> str:
    return write(folder, given).page.read_text()


def section(page: Element, name: str) -> Element:
    return next(element for element in page.all("section") if element.attributes["id"] == name)


def test_every_section_has_a_heading_a_sentence_and_something_to_see(tmp_path: Path) -> None:
    page = parsed(written(tmp_path, a_run()))
    assert [element.attributes["id"] for element in page.all("section")] == SECTIONS
    for element in page.all("section"):
        assert element.one("h2").text
        assert element.one("p", "caption").text.endswith(".")
        assert element.all("figure") or element.all("table")
        assert not element.all("p", "empty")


def test_it_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "a", a_run(hosts=3, samples=5))
    write(tmp_path / "b", a_run(hosts=3, samples=6))
    side_by_side = compare_page(read_run(tmp_path / "a"), read_run(tmp_path / "b"))
    for page in ((tmp_path / "a" / "report.html").read_text(), side_by_side):
        assert "http://" not in page
        assert "https://" not in page
        assert "@import" not in page
        assert not re.search(r"url\((?!#)", page)
        found = parsed(page)
        for element in found.all():
            assert element.attributes.get("href", "#").startswith("#")
            assert "src" not in element.attributes
            assert not any(name.startswith("on") for name in element.attributes)


@pytest.mark.parametrize(
    "shape",
    [
        Shape(hosts=1, vms=3, migrations=3),
        Shape(hosts=3, samples=1, migrations=0, pools=(), powered=False),
        Shape(hosts=3, samples=2),
        Shape(hosts=3, samples=301),
        Shape(hosts=61, samples=20),
        Shape(hosts=5, pools=tuple(f"pool-{n}" for n in range(30)), samples=20),
        Shape(hosts=5, samples=20, duration_s=20, migrations=5),
        Shape(hosts=5, samples=20, duration_s=400 * 86400),
    ],
    ids=lambda shape: f"{shape.hosts} hosts, {shape.samples} samples, {shape.duration_s} s",
)
def test_runs_of_any_shape_make_a_page(tmp_path: Path, shape: Shape) -> None:
    page = written(tmp_path, a_run(shape))
    assert not re.search(r"\b(nan|inf|NaN|None)\b", page)
    made = parsed(page)
    for element in made.all("figure"):
        marks = [each for each in element.all("svg")[-1].all() if "d" in each.attributes]
        assert marks


def test_empty_charts_say_why(tmp_path: Path) -> None:
    given = a_run(hosts=3, samples=5, migrations=0, powered=False)
    page = parsed(written(tmp_path, given))
    assert "The run has no migrations." in section(page, "imbalance").text
    assert "have no power figures" in section(page, "power").text
    assert "The run has no actions." in section(page, "actions").text


def test_a_run_without_any_sample_makes_a_page(tmp_path: Path) -> None:
    given = a_run(hosts=3, samples=5)
    empty = {
        name: SampleTable(
            {key: column[:0] for key, column in getattr(given.record, name).columns.items()}
        )
        for name in ("cluster", "hosts", "pools")
    }
    page = parsed(written(tmp_path / "a", replace(given, record=RunRecord(**empty))))
    assert "This run has no samples." in section(page, "load").text
    none = RunRecord(cluster=SampleTable({}), hosts=SampleTable({}), pools=SampleTable({}))
    written(tmp_path / "b", Given(summary={}, record=none, journal=MemoryJournal()))


def test_the_page_says_when_the_target_is_met(tmp_path: Path) -> None:
    given = a_run(hosts=3, samples=5)
    assert "first met its target of 0.08 at 8:30" in written(tmp_path / "a", given)
    missed = given.summary | {"imbalance": {"below_target_at_s": None}}
    page = written(tmp_path / "b", replace(given, summary=missed))
    assert "and never met its target (lower" in page


def test_vms_without_pools_are_one_line(tmp_path: Path) -> None:
    page = parsed(written(tmp_path, a_run(hosts=3, samples=5, pools=())))
    names = [element.text for element in section(page, "happiness").all("text", "name")]
    assert names == ["all VMs all VMs"] * 2  # the title and the word itself


def test_the_least_happy_of_many_pools_are_shown(tmp_path: Path) -> None:
    pools = tuple(f"pool-{n:02d}" for n in range(30))
    page = parsed(written(tmp_path, a_run(hosts=3, samples=50, pools=pools)))
    made = section(page, "happiness")
    assert "The charts show the 8 least happy pools; the other 22 are in pools.csv." in made.text
    assert "pool-29" in made.text


def test_nothing_from_a_file_becomes_markup(tmp_path: Path) -> None:
    given = a_run(hosts=3, samples=5)
    hosts = dict(given.record.hosts.columns)
    hosts["host"] = np.array([NASTY + str(name) for name in hosts["host"]], dtype=object)
    hosts["state"] = np.array([NASTY] * len(hosts["state"]), dtype=object)
    pools = dict(given.record.pools.columns)
    pools["pool"] = np.array([NASTY + str(name) for name in pools["pool"]], dtype=object)
    record = replace(given.record, hosts=SampleTable(hosts), pools=SampleTable(pools))
    journal = MemoryJournal()
    journal.append([*given.journal.events(),
                    HostFailed(at_ms=1000, host=HostId("h1"), reason=NASTY)])  # fmt: skip
    summary: dict[str, Any] = given.summary | {
        "scenario": NASTY, "about": NASTY, "seed": NASTY, NASTY: NASTY,
        "happiness": [{"pool": NASTY, "mean_pct": 3.0}],
        "violations": [{"constraint": NASTY, "detail": NASTY, "step": NASTY}],
    }  # fmt: skip
    for name in ("a", "b"):
        write(tmp_path / name, Given(summary=summary, record=record, journal=journal))
    runs = read_run(tmp_path / "a"), read_run(tmp_path / "b")
    for page in ((tmp_path / "a" / "report.html").read_text(), compare_page(*runs)):
        made = parsed(page)
        assert not made.all("img")
        scripts = [element for element in made.all("script") if "type" not in element.attributes]
        assert len(scripts) == 1
        assert NASTY in made.text


def test_only_the_script_of_the_package_may_run(tmp_path: Path) -> None:
    page = written(tmp_path, a_run(hosts=3, samples=5))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "script-src 'sha256-" in policy[1]


def test_a_large_cluster_makes_a_page_of_moderate_size(tmp_path: Path) -> None:
    given = a_run(hosts=600, vms=9000, samples=320, migrations=2500)
    page = written(tmp_path, given)
    assert len(page.encode()) < 3_000_000


def test_many_samples_are_bundled_and_the_page_says_so(tmp_path: Path) -> None:
    page = parsed(written(tmp_path, a_run(hosts=3, samples=1000)))
    assert "Each point is the mean of 4 samples." in section(page, "load").text
