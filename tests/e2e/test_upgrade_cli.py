"""``equipoise upgrade`` by the installed command: what the thesis prints, and what we do better."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from builders import figures
from command import answer, call_here, located, misspelt, refusals
from equipoise.files import to_json
from equipoise.model.upgrade.event import BatchStarted, ScalingAnswered
from equipoise.sim.builtin import builtin_campaign
from equipoise.store import open_journal

MOST = {"nabi-compute": 6, "nabi-ceph-ipv6": 14, "nabi-failure": 16, "nabi-new-request": 16}
"""How many iterations the thesis takes."""


UNDONE = 1
"""The exit code if a set was undone."""


@cache
def upgraded(*arguments: str, code: int = 0) -> dict[str, Any]:
    document: dict[str, Any] = answer("upgrade", *arguments, code=code)
    return document


def batches(document: dict[str, Any]) -> list[set[str]]:
    return [set(iteration["batch"]) for iteration in document["iterations"]]


def test_ten_compute_hosts_take_the_steps_of_the_thesis() -> None:
    made = upgraded("nabi-compute", "--paper")
    steps = made["iterations"]
    assert made["status"] == "completed"
    assert [step["z"] for step in steps] == [4, 3, 1, 0, 0, 2]
    assert [step["v"] for step in steps] == [9, 6, 0, 0, 0, None]
    assert batches(made) == [
        {"n7", "n8", "n9", "n10"}, {"n4", "n5", "n6"}, {"n3"}, set(), set(), {"n1", "n2"}
    ]  # fmt: skip
    assert [[len(batch) for batch in step["vm_batches"]] for step in steps] == [
        [3, 3], [3], [], [], [], []
    ]  # fmt: skip
    assert [(attempt["wanted"], attempt["size"]) for attempt in steps[0]["w"]] == [
        (4, 3),
        (3, 3),
        (3, 0),
    ]
    assert [(attempt["wanted"], attempt["size"]) for attempt in steps[1]["w"]] == [(3, 3), (1, 0)]
    assert [bool(step["paused"]) for step in steps] == [False, False, False, True, True, False]
    refused = [
        attempt["reason"] for step in steps[:2] for attempt in step["w"] if not attempt["size"]
    ]
    assert [words.split(" changed")[0] for words in refused] == ["2", "3"], "empty, and too few"
    assert {tuple(sorted(each["tenants"])) for each in steps} == {("t1", "t2", "t3", "t4")}
    assert [[*step["tenants"].values()] for step in steps] == [
        [2, 3, 3, 1], [3, 4, 4, 2], [4, 5, 5, 3], [4, 5, 5, 3], [5, 6, 4, 4], [5, 6, 4, 3]
    ]  # fmt: skip
    assert made["sla_violations"] == 0


def test_tenants_reach_their_most_while_ten_hosts_pause(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    upgraded("nabi-compute", "--paper", "--journal", str(path))
    with open_journal(str(path)) as journal:
        answers = [event for event in journal.events() if isinstance(event, ScalingAnswered)]
    sizes = {"t1": 2, "t2": 3, "t3": 3, "t4": 1}
    most = dict(sizes)
    for scaling in answers:
        assert not scaling.refused
        sizes[scaling.tenant] += len(scaling.added) - len(scaling.removed)
        most[scaling.tenant] = max(most[scaling.tenant], sizes[scaling.tenant])
    assert most == {"t1": 6, "t2": 7, "t3": 5, "t4": 4}


def test_ceph_and_ipv6_take_the_fourteen_batches_of_the_thesis() -> None:
    made = upgraded("nabi-ceph-ipv6", "--paper")
    assert [iteration["z"] for iteration in made["iterations"]] == [4] * 11 + [2, 3, 4]
    values = [iteration["v"] for iteration in made["iterations"] if iteration["v"] is not None]
    assert values == [6, 4, 2]
    assert batches(made) == [
        {"R37"}, {"R38"}, {"R31", "R33", "R35"}, {"R32", "R34", "R36"},
        {"GR1"}, {"GR2"}, {"GR3"}, {"GR4"}, {"GR5"}, {"R45"},
        {"GR6", "GR10", "GR11", "GR12"}, {"GR13"}, {"GR14"}, {"GR15", "GR7", "GR8", "GR9", "R46"},
    ]  # fmt: skip
    asked = [
        (iteration["w"][0]["wanted"], iteration["w"][0]["size"])
        for iteration in made["iterations"][10:13]
    ]
    assert asked == [(4, 2), (4, 2), (2, 2)]
    moved = [iteration["vm_batches"] for iteration in made["iterations"][10:]]
    assert moved == [[["R39", "R40"]], [["R41", "R42"]], [["R43", "R44"]], []]
    (complement,) = made["sets"][0]["complementary"]
    assert complement.startswith("remove R46:")
    assert figures(complement) == [46, 45]


def test_every_resource_that_waits_has_the_rule_of_the_thesis() -> None:
    steps = upgraded("nabi-ceph-ipv6", "--paper")["iterations"]

    def rules(step: dict[str, Any]) -> dict[str, int]:
        assert all(exclusion["reason"] for exclusion in step["eliminated"])
        return {exclusion["resource"]: exclusion["rule"] for exclusion in step["eliminated"]}

    first = rules(steps[0])
    hosts = {f"GR{n}": 4 for n in range(1, 13)} | {f"GR{n}": 1 for n in (13, 14, 15)}
    switches = {f"R{n}": 4 for n in range(31, 37)}
    vms = {f"R{n}": 1 for n in range(39, 45)}
    assert first == hosts | switches | vms | {"R46": 2, "R45": 3, "R38": 6}
    fifth = rules(steps[4])
    assert {fifth[f"GR{n}"] for n in range(6, 13)} == {4}
    assert {fifth[f"GR{n}"] for n in range(2, 6)} == {6}
    assert {rules(steps[11])[f"GR{n}"] for n in (7, 8, 9)} == {6}
    reasons = {
        (number, exclusion["resource"]): exclusion["reason"]
        for number in (1, 5, 12)
        for exclusion in steps[number - 1]["eliminated"]
    }
    assert all("(case 1a)" in reasons[1, f"GR{n}"] for n in range(1, 13))
    assert all("(case 1a)" in reasons[1, f"R{n}"] for n in range(31, 37))
    assert all("(case 3b)" in reasons[5, f"GR{n}"] for n in range(6, 13))
    assert figures(reasons[12, "GR7"]) == [46, 3, 3]
    assert {
        exclusion["code"] for exclusion in steps[11]["eliminated"] if exclusion["resource"] == "GR7"
    } == {"constituents-short"}


HOSTS_AND_STORAGE = [
    {"GR3"}, {"GR4"}, {"GR5"}, {"R45"}, {"GR6", "GR10", "GR11", "GR12"}, {"GR13"}, {"GR14"},
    {"GR15", "GR7", "GR8", "GR9", "R46"},
]  # fmt: skip
"""How each of the runs with fifteen hosts ends, once two hosts are changed."""


def test_a_switch_that_fails_undoes_its_set_and_no_other() -> None:
    made = upgraded("nabi-failure", "--paper", code=UNDONE)
    assert batches(made) == [
        {"R37"}, {"R38"},
        {"R31", "R33", "R35"}, {"R31", "R34", "R36"}, {"R37"}, {"R38"},
        {"R33", "R35", "GR1"}, {"R34", "R36", "GR2"}, *HOSTS_AND_STORAGE,
    ]  # fmt: skip
    steps = made["iterations"]
    assert [step["z"] for step in steps] == [4] * 13 + [2, 3, 4]
    assert [step["v"] for step in steps if step["v"] is not None] == [6, 4, 2]
    failed = {step["i"]: [each["resource"] for each in step["failed"]] for step in steps}
    assert {i: those for i, those in failed.items() if those} == {3: ["R31"], 4: ["R31"]}
    assert {
        change_set["set"]: (change_set["outcome"], change_set["code"])
        for change_set in made["sets"]
    } == {
        "set-1": ("applied", ""),
        "set-2": ("undone", "too-few-operational"),
    }
    (reason,) = [each["reason"] for each in made["sets"] if each["set"] == "set-2"]
    assert figures(reason) == [5, 6, 6, 31]
    assert made["isolated"] == []


def test_a_new_request_comes_behind_the_work_under_way() -> None:
    made = upgraded("nabi-new-request", "--paper")
    assert batches(made) == [
        {"R37"}, {"R38"}, {"R37"}, {"R38"}, {"R31", "R33", "R35"}, {"R32", "R34", "R36"},
        {"GR1"}, {"GR2"}, *HOSTS_AND_STORAGE,
    ]  # fmt: skip
    steps = made["iterations"]
    assert [step["z"] for step in steps] == [4] * 13 + [2, 3, 4]
    assert [step["v"] for step in steps if step["v"] is not None] == [6, 4, 2]
    assert {change_set["outcome"] for change_set in made["sets"]} == {"applied"}


@pytest.mark.parametrize("paper", [True, False])
def test_case_a_takes_as_long_as_the_thesis_measured(paper: bool) -> None:
    made = upgraded("nabi-case-a", *(["--paper"] if paper else []))
    assert made["duration_s"] == pytest.approx(192.69)
    assert [len(iteration["batch"]) for iteration in made["iterations"]] == [4, 4, 2]
    assert made["moves"] == 9
    assert made["moves_per_vm_max"] == 1
    assert made["outages"] == {"t4": 0.6}
    assert made["service_availability"]["t4"] == pytest.approx(1 - 0.6 / 192.69)
    assert made["service_availability"]["t1"] == 1


def test_case_b_is_as_fast_by_the_letter_as_by_default() -> None:
    """Criterion 2 counts VMs of the selected groups: the second round empties a whole host."""
    literal, ours = upgraded("nabi-case-b", "--paper"), upgraded("nabi-case-b")
    assert literal["duration_s"] == ours["duration_s"] == pytest.approx(321.15)
    assert set(literal["iterations"][1]["vm_batches"][0]) == {"t1-3", "t2-3", "t4-1"}
    assert [literal["moves"], literal["moves_per_vm_max"]] == [15, 1]


@pytest.mark.parametrize("name", MOST)
def test_by_default_it_takes_no_more_iterations_and_breaks_no_promise(name: str) -> None:
    made = upgraded(name, code=UNDONE if name == "nabi-failure" else 0)
    assert made["status"] == "completed"
    assert len(made["iterations"]) <= MOST[name]
    assert made["sla_violations"] == 0


def test_a_dry_run_prints_a_prediction() -> None:
    done = call_here("upgrade", "nabi-ceph-ipv6", "--dry-run", "--why")
    assert done.returncode == 0
    for words in (
        "Nothing was executed", "iteration 13", "ceph V1-CEPH installed",
        "GR1 changes as one unit: R1, R16",
        "completed after 13 iterations and 0:11:20", "lowest headroom: 0 hosts",
        "waits      R38: its peer R37 is in the batch (rule 6)",
    ):  # fmt: skip
        assert words in done.stdout


PEERS = """name: peers
catalog:
  descriptions:
    - {component: switch, version: v1}
    - {component: switch, version: v2, upgrade: {duration_s: 20}}
requests:
  - id: r
    sets:
      - {id: a, checkpoints_pct: [25, 75], changes: [{does: upgrade, resources: ALL, version: v2}]}
cluster:
  hosts: [{id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 1024}]
  resources:
    - {id: s1, kind: switch, version: v1}
    - {id: s2, kind: switch, version: v1}
    - {id: s3, kind: switch, version: v2}
  dependencies: [{dependent: s1, sponsor: s2, kind: peer_stateless, presence: current_future}]
"""


def test_a_dry_run_shows_what_comes_behind_a_checkpoint(tmp_path: Path) -> None:
    campaign = tmp_path / "peers.yaml"
    campaign.write_text(PEERS.replace("ALL", "[s1, s2, s3]"))
    done = call_here("upgrade", str(campaign), "--dry-run")
    assert done.returncode == 0, done.stdout
    assert "set a: applied" in done.stdout
    assert "and 0:00:40" in done.stdout
    made = answer("upgrade", str(campaign), "--dry-run")
    # s3 matches from the start and is no progress, so one of two switches is the first checkpoint.
    assert [step["pause_codes"] for step in made["iterations"]] == [[], ["waits-for-approval"], []]
    assert [
        (change_set["set"], change_set["outcome"], change_set["matching"])
        for change_set in made["sets"]
    ] == [("a", "applied", ["s3"])]
    done = call_here("upgrade", str(campaign))
    assert done.returncode == 1
    assert done.stdout.count("--command approve:SET") == 1
    assert answer("upgrade", str(campaign), code=1)["iterations"][-1]["pause_codes"] == [
        "waits-for-approval"
    ]


def test_in_a_dry_run_no_time_passes_until_a_checkpoint_is_approved(tmp_path: Path) -> None:
    campaign = tmp_path / "peers.yaml"
    timed = "completion_s_max: 900, checkpoints_pct"
    campaign.write_text(PEERS.replace("ALL", "[s1, s2, s3]").replace("checkpoints_pct", timed))
    made = answer("upgrade", str(campaign), "--dry-run")
    assert [change_set["outcome"] for change_set in made["sets"]] == ["applied"]
    assert made["duration_s"] == 40
    lasting = "windows: [{opens_s: 0, closes_s: 900}], checkpoints_pct"
    campaign.write_text(PEERS.replace("ALL", "[s1, s2, s3]").replace("checkpoints_pct", lasting))
    assert answer("upgrade", str(campaign), "--dry-run")["duration_s"] == 40


def test_what_can_never_succeed_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    campaign = tmp_path / "peers.yaml"
    text = PEERS.replace("ALL", "[s1, s2]").replace("[25, 75]", "[50]")
    campaign.write_text(text.replace("{id: a,", "{id: a, completion_s_max: 5,"))
    made = answer("upgrade", str(campaign), code=1)
    assert made["sets"][0]["outcome"] == "refused"
    assert made["sets"][0]["code"] == "duration-too-long"
    assert "20 s" in made["sets"][0]["reason"]
    assert [iteration["batch"] for iteration in made["iterations"]] == [[]]
    campaign.write_text(text.replace("version: v2}]}", "version: v3}]}"))
    version = "requests[0].sets[0].changes[0].version"
    assert located("upgrade", str(campaign)) == [("unknown-name", version, 9)]


def test_a_campaign_goes_on_where_its_journal_ends(tmp_path: Path) -> None:
    whole = tmp_path / "whole.db"
    first = upgraded("nabi-failure", "--journal", str(whole), code=UNDONE)
    with open_journal(str(whole)) as journal:
        events = list(journal.events())
    for length in (len(events) // 3, len(events) // 2):
        part = tmp_path / f"part-{length}.db"
        with open_journal(str(part)) as journal:
            journal.append(events[:length])
        again = upgraded("nabi-failure", "--journal", str(part), code=UNDONE)
        assert batches(again) == batches(first)
        assert again["sets"] == first["sets"]


def test_a_journal_is_replayed_to_the_campaign_as_it_stood(tmp_path: Path) -> None:
    url = str(tmp_path / "journal.db")
    upgraded("nabi-failure", "--journal", url, code=UNDONE)
    end = answer("replay", url)
    assert (end["status"], end["phase"]) == ("completed", "idle")
    assert {change_set["id"]: change_set["progress"] for change_set in end["sets"]} == {
        "set-1": "applied", "set-2": "undone"
    }  # fmt: skip
    versions = {resource["id"]: resource["version"] for resource in end["cluster"]["resources"]}
    assert versions["R31"] == versions["R36"]
    assert "R46" not in versions, "the old storage is gone"
    assert versions["R45"] == "V1-CEPH"
    assert len(end["cluster"]["vms"]) == 6
    with open_journal(url) as journal:
        started = next(
            place
            for place, event in enumerate(journal.events(), 1)
            if isinstance(event, BatchStarted)
        )
    early = answer("replay", url, "--until", str(started))
    assert (early["status"], early["iteration"]) == ("running", 1)
    assert early["under_way"]["unanswered"] == ["apply R37"]
    (first, second) = early["sets"]
    assert first["progress"] == second["progress"] == "scheduled"
    assert "R37" in {resource["id"] for resource in early["cluster"]["resources"]}
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(call_here("replay", url).stdout.partition("\ncluster:\n")[2])
    assert answer("show", str(cluster))["name"] == "nabi-failure"


def test_bad_input_is_reported_with_its_place(tmp_path: Path) -> None:
    assert misspelt("upgrade", "nabi-compue") == ("unknown-name", "nabi-compute")
    bad = tmp_path / "bad.yaml"
    bad.write_text(
        "name: x\ncluster: {hosts: [{id: h, cores: 1, mhz_per_core: 1, memory_mib: 1}]}\n"
    )
    assert located("upgrade", str(bad)) == [("missing-key", "requests", 1)]
    engine = ("upgrade", "nabi-compute", "--engine", "magic")
    assert refusals(*engine) == [("unknown-name", "magic")]


def test_spare_hosts_are_reported_per_request_before_anything_is_done() -> None:
    made = answer("upgrade", "nabi-compute", "--dry-run")
    assert made["spare_hosts"] == [
        {"request": "new-hypervisors", "needed": 1, "available": 1, "enough": True}
    ]
    printed = call_here("upgrade", "nabi-compute", "--dry-run").stdout
    (line,) = [line for line in printed.splitlines() if "new-hypervisors" in line]
    assert figures(line) == [1, 1]


def test_the_result_comes_first_and_names_are_those_of_the_operator() -> None:
    lines = call_here("upgrade", "nabi-ceph-ipv6", "--dry-run").stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("iteration 1"))
    head, rest = "\n".join(lines[:first]), "\n".join(lines[first:])
    assert "set set-1: applied" in head
    assert "completed after 13 iterations" in head
    assert "applied" not in rest
    assert "change     host6, host10, host11, host12:" in rest
    assert "R46 (vsan)" in rest
    assert not re.search(r"GR\d|rule \d|case \d|\(Z\)", rest)
    assert "rule 6" in call_here("upgrade", "nabi-ceph-ipv6", "--dry-run", "--why").stdout


def test_the_page_and_the_command_agree_on_the_outage(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    made = answer("upgrade", "nabi-case-a", "--paper", "--report", str(page))
    assert made["outage_s"] == 0.6
    assert "0.6 s" in page.read_text()
    assert "0.6 s of outage (t4)" in call_here("upgrade", "nabi-case-a", "--paper").stdout


def test_the_text_names_the_rule_that_holds_a_vm(tmp_path: Path) -> None:
    document = json.loads(to_json(builtin_campaign("nabi-case-a")))
    document["cluster"]["rules"] = [
        {"kind": "stay_within", "id": "licence", "vms": ["t1-1"], "hosts": ["n1"]}
    ]
    path = tmp_path / "pinned.json"
    path.write_text(json.dumps(document))
    done = call_here("upgrade", str(path))
    assert done.returncode == 1
    assert "t1-1" in done.stdout
    assert "licence" in done.stdout or "{n1}" in done.stdout


def test_the_openstack_example_runs_to_its_canary_and_on() -> None:
    example = str(Path(__file__).parents[2] / "examples" / "upgrade" / "openstack.yaml")
    made = upgraded(example, "--dry-run")
    assert {row["set"]: row["outcome"] for row in made["sets"]} == dict.fromkeys(
        ("controllers", "switches", "storage", "computes"), "applied"
    )
    assert (made["sla_violations"], made["outage_s"]) == (0, 0)
    paused = upgraded(example, code=1)
    assert paused["iterations"][-1]["pause_codes"] == ["vm-moves", "waits-for-approval"]
    changed = [name for step in paused["iterations"] for name in step["batch"]]
    assert sum("nova" in name for name in changed) == 1, "the canary"
