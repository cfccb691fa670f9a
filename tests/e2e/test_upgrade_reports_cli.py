"""Pictures, pages and comparisons of upgrades by the installed command (tables 6.1 and 6.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from builders import figures
from command import answer, call_here


def compared(name: str) -> dict[str, dict[str, Any]]:
    lines = answer("upgrade", name, "--compare")["comparison"]
    return {line["method"]: line for line in lines}


def test_case_a_lasts_as_long_as_in_the_thesis_and_costs_least_in_proportion() -> None:
    made = compared("nabi-case-a")
    ours = made["ours"]
    assert ours["duration_s"] == 192.69
    assert ours["violations"] == {"min": 1, "max": 3}
    assert ours["impacted_vms"] == {"min": 1, "max": 1}
    assert ours["violation_s"] == ours["proportional_penalty"] == 1.35
    lasts = [made[f"rolling by {size}"]["duration_s"] for size in (1, 2, 3, 4)]
    assert lasts == sorted(lasts, reverse=True)
    assert ours["duration_s"] < lasts[2]
    assert abs(ours["duration_s"] - lasts[3]) < 20
    cheapest_first(made)


def test_case_b_lies_between_batches_of_one_and_two() -> None:
    made = compared("nabi-case-b")
    ours = made["ours"]
    assert ours["violations"] == {"min": 3, "max": 5}
    assert ours["violation_s"] == ours["proportional_penalty"] == 2.25
    lasts = [made[f"rolling by {size}"]["duration_s"] for size in (1, 2, 3)]
    assert lasts[2] < lasts[1] < ours["duration_s"] < lasts[0]
    assert ours["duration_s"] <= 361.92
    cheapest_first(made)


def cheapest_first(made: dict[str, dict[str, Any]]) -> None:
    """Ours has the lowest proportional penalty, and no application of several VMs goes down."""
    ours = made.pop("ours")
    assert ours["application_outage_s"] == 0
    for other in made.values():
        assert ours["proportional_penalty"] < other["proportional_penalty"]
    delays = [line["delay_penalty"] for line in made.values()]
    assert delays == sorted(delays, reverse=True)
    assert all(made[f"rolling by {size}"]["application_outage_s"] > 0 for size in (2, 3, 4))


def test_the_comparison_is_printed_as_a_table() -> None:
    printed = call_here("upgrade", "nabi-case-a", "--compare").stdout
    assert "rolling by 4" in printed
    assert "192.69" in printed


def test_switches_routers_and_storages_are_rolled_as_well() -> None:
    made = compared("nabi-ceph-ipv6")
    ours = made.pop("ours")
    assert ours["application_outage_s"] == 0
    for other in made.values():
        assert ours["proportional_penalty"] < other["proportional_penalty"]
    # Two at a time are sometimes both routers: then all VMs are out.
    assert all(made[f"rolling by {size}"]["application_outage_s"] > 1 for size in (2, 3, 4))


def test_the_graphs_of_an_iteration_are_drawn(tmp_path: Path) -> None:
    for form, more in (("svg", ()), ("dot", ("--groups",)), ("json", ())):
        options = ("--graph", str(tmp_path / f"graph.{form}"), "--iteration", "11", *more)
        call_here("upgrade", "nabi-ceph-ipv6", "--paper", *options)
    drawn = (tmp_path / "graph.svg").read_text()
    ElementTree.fromstring(drawn)
    for words in ("GR10 · host10", "VMs on host13", "rule 6"):
        assert words in drawn
    graphs = json.loads((tmp_path / "graph.json").read_text())
    chosen = [vertex["id"] for vertex in graphs["control_graph"]["vertices"] if vertex["in_batch"]]
    assert sorted(chosen) == ["GR10", "GR11", "GR12", "GR6"]
    dot = (tmp_path / "graph.dot").read_text()
    assert '"GR6" -> "R46"' in dot
    assert '"R6"' not in dot


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--graph", "graph.png"), "unsupported-feature"),
        (("--report", "nowhere/page.html"), "file-not-writable"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    arguments: tuple[str, ...], code: str, tmp_path: Path
) -> None:
    done = call_here("upgrade", "nabi-case-a", *arguments, "--json", cwd=tmp_path)
    assert done.returncode == 2
    (problem,) = json.loads(done.stdout)["problems"]
    assert (problem["code"], problem["file"]) == (code, arguments[1])


def test_an_iteration_too_many_draws_the_last_one_and_keeps_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    done = call_here("upgrade", "nabi-case-a", "--json", "--graph", str(path), "--iteration", "99")
    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] == "completed"
    assert figures(done.stderr) == [99, 3]
    assert json.loads(path.read_text())["iteration"] == 3


def test_the_page_tells_every_iteration_and_every_reason(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    made = answer("upgrade", "nabi-failure", "--paper", "--report", str(path), code=1)
    page = path.read_text()
    for iteration in made["iterations"]:
        assert f'id="iteration-{iteration["i"]}"' in page
    assert page.count("R31") > page.count("R36") > 0
    assert all(f">{tenant}</h3>" in page for tenant in "abcd")
