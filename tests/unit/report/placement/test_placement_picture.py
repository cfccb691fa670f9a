"""The placement over time as a picture: bars where they belong, and words escaped."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import Boot, Migrate, PowerOn, Resume
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.report.placement import Flag, course_of, draw
from equipoise.report.placement.lanes import LANES_MAX, ROWS_MAX
from unit.report.parsed import Element, parsed

H1, H2, V1 = HostId("h1"), HostId("h2"), VmId("v1")
NAMES = st.lists(st.text(min_size=1, max_size=300), min_size=2, max_size=2, unique=True)


def picture(initial: Snapshot, *steps: Step, flag: Flag | None = None) -> Element:
    return parsed(draw(course_of(initial, steps), "p", flag)).one("div", "placement")


def bars(page: Element) -> dict[str, list[tuple[str, float, float]]]:
    """The words of each bar, with its look and where it begins and ends, in percent."""
    found: dict[str, list[tuple[str, float, float]]] = {}
    for one in page.all("svg", "stay"):
        begins, wide = (float(one.attributes[name].rstrip("%")) for name in ("x", "width"))
        bar = (one.attributes["class"].split()[1], begins, begins + wide)
        words = one.one("text")
        found.setdefault(" ".join([words.one("tspan").text, *words.words]), []).append(bar)
    return found


def moved() -> Element:
    initial = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1")])
    move = a_step("s", Migrate(vm=V1, source=H1, target=H2), 0, 2000)
    return picture(initial, move, flag=Flag(1, "broken at 0 s"))


def test_a_bar_begins_and_ends_with_its_period() -> None:
    assert bars(moved()) == {
        "v1": [("running", 0, 15), ("running", 85, 100)],
        "v1 leaves": [("running", 15, 85)],
        "v1 arrives": [("arriving", 15, 85)],
    }


def test_the_axis_is_in_seconds_and_the_first_wrong_moment_is_marked() -> None:
    page = moved()
    ticks = [one.text for one in page.all("text", "tick")]
    assert ticks == ["before", "after", "0 s", "2 s"]
    flag = page.one("g", "flag")
    assert flag.one("line").attributes["x1"] == "15.00%"
    assert flag.one("text").text == "broken at 0 s"
    shade = page.one("rect", "wrong")
    assert (shade.attributes["x"], shade.attributes["width"]) == ("15.00%", "70.00%")


def test_those_who_cannot_see_it_are_told() -> None:
    page = moved()
    drawn = next(one for one in page.all("svg") if one.attributes.get("role") == "img")
    named = drawn.attributes["aria-labelledby"].split()
    words = {one.attributes["id"]: one.text for one in drawn.all() if "id" in one.attributes}
    assert words[named[0]] == "Placement over time"
    assert words[named[1]].split("; ") == [
        "v1 runs on h1, until 0 s",
        "v1 runs on h1, from 0 s until 2 s: migrate v1 from h1 to h2",
        "v1 has room on h2, from 0 s until 2 s: migrate v1 from h1 to h2",
        "v1 runs on h2, from 2 s",
        "broken at 0 s",
    ]


def test_there_is_a_lane_for_each_host_and_one_for_those_on_none() -> None:
    asleep = a_vm("v2", "h1", state=VmState.SLEEPING)
    initial = a_cluster(
        a_host("h1"), a_host("h2", state=HostState.STANDBY), vms=[a_vm("v1"), asleep]
    )
    boot = a_step("s1", Boot(vm=V1, target=H1), 0, 1000)
    page = picture(initial, boot, a_step("s2", PowerOn(host=H2), 0, 1000))
    assert [one.text for one in page.all("text", "lane")] == ["h1", "h2", "no host"]
    looks = {words: [look for look, *_ in found] for words, found in bars(page).items()}
    assert looks == {
        "v1 ready": ["waiting"],
        "v1 boots": ["arriving", "waiting"],
        "v1": ["running"],
        "v2": ["sleeping"],
        "powers on": ["switched"],
    }
    standby = page.all("rect", "standby")
    assert sum(float(one.attributes.get("width", "").rstrip("%")) for one in standby
               if "%" in one.attributes["width"]) == 85  # fmt: skip


def test_who_wakes_elsewhere_leaves_where_it_slept() -> None:
    initial = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1", state=VmState.SLEEPING)])
    away = bars(picture(initial, a_step("s", Resume(vm=V1, source=H1, target=H2))))
    assert away["v1 leaves"] == [("sleeping", 15, 85)]
    assert away["v1 wakes"] == [("arriving", 15, 85)]
    here = bars(picture(initial, a_step("s", Resume(vm=V1, source=H1, target=H1))))
    assert here["v1 wakes"] == [("sleeping", 15, 85)]


def test_every_look_is_in_the_style_sheet() -> None:
    style = files("equipoise.report").joinpath("page.css").read_text(encoding="utf-8")
    looks = re.findall(r"^\.stay\.(\w+) \{", style, re.M)
    stays = ["running", "sleeping", "arriving", "waiting", "ended"]
    assert looks == [*stays, "switched", "carrying", "overloaded"]


def test_of_too_many_what_does_not_move_is_left_out_and_that_is_said() -> None:
    names = [f"h{number}" for number in range(1, LANES_MAX + 11)]
    crowd = [a_vm(f"v{number}", names[-1]) for number in range(1, ROWS_MAX + 6)]
    initial = a_cluster(*map(a_host, names), vms=crowd)
    last = crowd[-1].id
    move = a_step("s", Migrate(vm=last, source=HostId(names[-1]), target=HostId(names[-2])))
    page = picture(initial, move)
    lanes = [one.text for one in page.all("text", "lane")]
    assert len(lanes) == LANES_MAX
    assert lanes[-2:] == names[-2:]
    assert f"{last} leaves" in bars(page)
    note = page.one("p", "note").text
    assert note == f"The {LANES_MAX} busiest of {len(names)} hosts are shown; there are 10 more."
    assert "and 5 more VMs" in page.text


def test_words_of_instants_never_cover_each_other() -> None:
    initial = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm(f"v{n}", "h1") for n in range(20)])
    steps = [
        a_step(f"s{n}", Migrate(vm=VmId(f"v{n}"), source=H1, target=H2), n * n, n * n + 40 + n)
        for n in range(20)
    ]
    page = picture(initial, *steps)
    ticks = page.all("text", "middle")
    places = [float(one.attributes["x"].rstrip("%")) for one in ticks]
    assert len(places) > 4
    assert all(after - before >= 9 for before, after in pairwise(places))
    assert ticks[-1].text == "0.42 s"


@settings(max_examples=60, deadline=None)
@given(NAMES, NAMES, st.text(max_size=300))
def test_names_of_any_kind_are_escaped(hosts: list[str], vms: list[str], words: str) -> None:
    initial = a_cluster(*map(a_host, hosts), vms=[a_vm(vms[0], hosts[0]), a_vm(vms[1])])
    move = Migrate(vm=VmId(vms[0]), source=HostId(hosts[0]), target=HostId(hosts[1]))
    page = picture(initial, a_step("s", move), flag=Flag(1, words))
    plain = picture(
        a_cluster(a_host("a"), a_host("b"), vms=[a_vm("v", "a"), a_vm("w")]),
        a_step("s", Migrate(vm=VmId("v"), source=HostId("a"), target=HostId("b"))),
        flag=Flag(1, "x"),
    )
    assert [one.name for one in page.all()] == [one.name for one in plain.all()]
