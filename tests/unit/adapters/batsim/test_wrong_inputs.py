"""Wrong workloads, platforms and events are refused with the place; none is read as another."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.adapters.batsim.host_events import read_availability
from equipoise.adapters.batsim.platform_xml import read_platform
from equipoise.adapters.batsim.protocol.setup import BatsimSetup
from equipoise.adapters.batsim.workload_json import read_workload
from equipoise.errors import InvalidInput

_HUGE = 10**400
_DELAY = {"type": "delay", "delay": 5}


def _workload(path: Path, **changes: Any) -> Path:
    job = {"id": "1", "subtime": 0, "res": 1, "profile": "p", "walltime": 10}
    profiles = changes.pop("profiles", {"p": _DELAY})
    file = path / "w.json"
    document = {"nb_res": 2, "jobs": [job | changes], "profiles": profiles}
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def _refused(path: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_workload(path)
    assert caught.value.source == str(path)
    return caught.value.problems[0].key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", None), ("id", 1.5), ("id", []), ("id", ""), ("id", True),
        ("subtime", "0"), ("subtime", True), ("subtime", _HUGE), ("subtime", 1e308),
        ("subtime", -1),
        ("res", 0), ("res", 1.5), ("res", "1"), ("res", True),
        ("walltime", 0), ("walltime", -5), ("walltime", "x"), ("walltime", _HUGE),
        ("profile", "ghost"),
    ],
)  # fmt: skip
def test_a_wrong_field_of_a_job(tmp_path: Path, key: str, value: object) -> None:
    assert _refused(_workload(tmp_path, **{key: value})) == "jobs[0]"


@pytest.mark.parametrize(
    ("text", "line"),
    [('{"nb_res": 2,\n "jobs": [}', 2), ('{"nb_res": 2,\n "jobs": [\n', 3), ("", 1)],
)
def test_a_broken_text_is_named_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "w.json").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_workload(tmp_path / "w.json")
    assert caught.value.problems[0].line == line


@pytest.mark.parametrize(
    "profile",
    [
        None, [], {}, {"type": 3}, {"type": "delay"}, {"type": "delay", "delay": "5"},
        {"type": "delay", "delay": -1}, {"type": "delay", "delay": 1, "ret": 1.5},
        {"type": "parallel", "cpu": [-1], "com": [0]},
        {"type": "parallel", "cpu": [1], "com": [-1]},
        {"type": "parallel_homogeneous", "cpu": -1, "com": 0},
        {"type": "composed", "seq": []}, {"type": "composed", "seq": "p"},
        {"type": "composed", "seq": ["q"], "repeat": 0},
        {"type": "composed", "seq": ["q"], "repeat": -1}, {"type": "composed", "seq": ["p"]},
    ],
)  # fmt: skip
def test_a_wrong_profile(tmp_path: Path, profile: object) -> None:
    assert _refused(_workload(tmp_path, profiles={"p": profile, "q": _DELAY})) == "jobs[0]"


def test_sequences_inside_sequences_without_end(tmp_path: Path) -> None:
    names = ["p", *map(str, range(3000))]
    profiles: dict[str, Any] = {
        outer: {"type": "composed", "seq": [inner]} for outer, inner in pairwise(names)
    }
    profiles["2999"] = _DELAY
    assert _refused(_workload(tmp_path, profiles=profiles)) == "jobs[0]"


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ("[" * 100_000, ""),
        ('{"jobs": [null], "profiles": {}}', "jobs[0]"),
        ('{"jobs": [], "profiles": [1]}', "profiles"),
        ('{"jobs": [], "profiles": {}, "nb_res": "x"}', "nb_res"),
        ('{"jobs": [], "profiles": {}, "nb_res": 0}', "nb_res"),
    ],
)
def test_a_wrong_document(tmp_path: Path, document: str, place: str) -> None:
    path = tmp_path / "w.json"
    path.write_text(document, encoding="utf-8")
    assert _refused(path) == place


def test_two_jobs_with_one_id(tmp_path: Path) -> None:
    path = _workload(tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["jobs"].append(document["jobs"][0] | {"id": 1})
    path.write_text(json.dumps(document), encoding="utf-8")
    assert _refused(path) == "jobs[1]"


def _platform(path: Path, parts: str, master: str = '<host id="master_host" speed="1Gf"/>') -> Path:
    file = path / "p.xml"
    file.write_text(
        f'<platform version="4.1"><zone id="z" routing="Full">{master}'
        f'<host id="h0" speed="1Gf"/><host id="h1" speed="1Gf"/>{parts}</zone></platform>',
        encoding="utf-8",
    )
    return file


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ('<host speed="1Gf"/>', "host"),
        ('<host id="x" speed="-1Gf"/>', "host x"),
        ('<host id="x" speed="1e400Gf"/>', "host x"),
        ('<host id="x" speed="1Gf" core="0"/>', "host x"),
        ('<host id="x" speed="1Gf" pstate="7"/>', "host x"),
        ('<host id="x" speed="1Gf"><prop id="sleep_pstates" value="9:8:7"/></host>', "host x"),
        ('<host id="x" speed="1Gf"><prop id="watt_per_state" value="-5:2"/></host>', "host x"),
        ('<host id="h9" speed="1Gf" coordinates="0 0"/>', "host h9"),
        ('<host id="h9" speed="1Gf" coordinates="0 0 nan"/>', "host h9"),
        ('<router id="r" coordinates="1"/>', "router r"),
        ('<link id="l" bandwidth="x"/>', "link l"),
        ('<link id="l" bandwidth="-1"/>', "link l"),
        ('<link id="l" bandwidth="1" latency="nan"/>', "link l"),
        ('<cluster id="c" radical="9-0" speed="1Gf" bw="1" lat="0"/>', "cluster c"),
        ('<route src="h0" dst="ghost"/>', "route h0 ghost"),
        ('<zoneRoute src="z" dst="y" gw_src="h0" gw_dst="h1"/>', "zoneRoute z y"),
        ('<zone id="y" routing="Weird"/>', "zone y"),
        ('<zone id="y" routing="Full">' * 3000 + "</zone>" * 3000, ""),
    ],
)
def test_a_wrong_part_of_a_platform(tmp_path: Path, parts: str, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_platform(_platform(tmp_path, parts))
    assert caught.value.problems[0].key == place


def test_a_cluster_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.adapters.batsim.platform_xml.HOSTS_MAX", 50)
    cluster = '<cluster id="c" radical="0-99999999999" speed="1Gf" bw="1" lat="0"/>'
    with pytest.raises(InvalidInput) as caught:
        read_platform(_platform(tmp_path, cluster))
    assert caught.value.problems[0].key == "cluster c"


def test_a_role_for_a_host_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_platform(_platform(tmp_path, ""), roles=["ghost:storage"])
    assert caught.value.problems[0].key == "ghost"


def test_more_hosts_than_fit_in_memory(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        eq.simulate_jobs(None, _workload(tmp_path), hosts=10**12)
    assert caught.value.problems[0].key == "--hosts" or caught.value.source == "--hosts"


def test_batsim_needs_a_master(tmp_path: Path) -> None:
    path = _platform(tmp_path, "", master="")
    with pytest.raises(InvalidInput) as caught:
        BatsimSetup(platform=path, workloads=[_workload(tmp_path)]).read()
    assert caught.value.source == str(path)


@pytest.mark.parametrize(
    "change",
    [
        {"resources": "9"}, {"resources": "a-b"}, {"resources": "3-1"}, {"timestamp": -1},
        {"timestamp": "x"}, {"timestamp": _HUGE}, {"resources": "0-99999999999"}, {"type": []},
    ],
)  # fmt: skip
def test_events_of_hosts_that_are_not_there(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "events.txt"
    event = {"timestamp": 1, "type": "machine_unavailable", "resources": "0"} | change
    path.write_text(json.dumps(event), encoding="utf-8")
    with pytest.raises(InvalidInput):
        read_availability(path, 2)
    setup = BatsimSetup(
        platform=_platform(tmp_path, ""), workloads=[_workload(tmp_path)], events=[path]
    )
    with pytest.raises(InvalidInput):
        setup.read()


def test_a_host_without_coordinates_is_named_when_a_job_sends(tmp_path: Path) -> None:
    path = tmp_path / "p.xml"
    path.write_text(
        '<platform version="4.1"><zone id="z" routing="Vivaldi">'
        '<host id="a" speed="1Gf" coordinates="0 0 0"/><host id="b" speed="1Gf"/>'
        "</zone></platform>"
    )
    platform = read_platform(path)
    assert platform.route("b", "b").latency_s == 0
    with pytest.raises(InvalidInput) as caught:
        platform.route("a", "b")
    assert (caught.value.problems[0].key, caught.value.problems[0].code) == ("b", "disconnected")


def test_odd_names_survive_the_files_of_a_run(tmp_path: Path) -> None:
    names = ['a"b', "c,d", "<script>alert(1)</script>", "x" * 400, "two\nlines"]
    path = _workload(tmp_path, profile='p",', profiles={'p",': _DELAY})
    document = json.loads(path.read_text(encoding="utf-8"))
    document["jobs"] = [document["jobs"][0] | {"id": name} for name in names]
    path.write_text(json.dumps(document), encoding="utf-8")
    eq.simulate_jobs(None, path, out=tmp_path / "out")
    with (tmp_path / "out" / "jobs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["job_id"] for row in rows} == set(names)
    assert {row["profile"] for row in rows} == {'p",'}
    assert {row["final_state"] for row in rows} == {"COMPLETED_SUCCESSFULLY"}
    assert "<script>alert" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
