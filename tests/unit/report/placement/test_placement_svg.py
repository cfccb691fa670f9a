"""The placement over time as a picture: bars where they belong, and words escaped."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import Boot, Migrate, PowerOn, Resume
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.report.chart.frame import LEFT, RIGHT
from equipoise.report.placement import ViolationFlag, draw, placement_timeline
from equipoise.report.placement.svg import LANES_MAX, ROWS_MAX
from unit.report.parsed import Element, parsed

H1, H2, V1 = HostId("h1"), HostId("h2"), VmId("v1")
NAMES = st.lists(st.text(min_size=1, max_size=300), min_size=2, max_size=2, unique=True)


def picture(initial: Snapshot, *steps: Step, flag: ViolationFlag | None = None) -> Element:
    return parsed(draw(placement_timeline(initial, steps), "p", flag)).one("div", "placement")


def bars(page: Element) -> dict[str, list[tuple[str, float, float]]]:
    """Return class, start and end of each bar in percent of the plot, by its text."""
    drawn = next(element for element in page.all("svg") if element.attributes.get("role") == "img")
    found: dict[str, list[tuple[str, float, float]]] = {}
    for bar, label in pairwise(drawn.children):
        if "presence" in bar.attributes.get("class", "").split():
            look = bar.attributes["class"].split()[1]
            found.setdefault(label.text, []).append((look, *edges(bar)))
    return found


def edges(area: Element) -> tuple[float, float]:
    """Return start and end of a bar or a background in percent of the plot."""
    start, width = (float(area.attributes[name]) for name in ("x", "width"))
    return percent(start), percent(start + width)


def percent(x: float) -> float:
    return round((x - LEFT) / (RIGHT - LEFT) * 100, 1)


def lane_names(page: Element) -> list[str]:
    return [label.one("title").text for label in page.all("text", "end") if label.all("title")]


def moved() -> Element:
    initial = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1")])
    move = a_step("s", Migrate(vm=V1, source=H1, target=H2), 0, 2000)
    return picture(initial, move, flag=ViolationFlag(1, "broken at 0 s"))


def test_a_bar_begins_and_ends_with_its_period() -> None:
    assert {words: sorted(found) for words, found in bars(moved()).items()} == {
        "v1": [("running", 0, 15), ("running", 85, 100)],
        "v1 leaves": [("running", 15, 85)],
        "v1 arrives": [("arriving", 15, 85)],
    }


def test_the_axis_is_in_seconds_and_the_first_violation_is_marked() -> None:
    page = moved()
    ticks = [tick.text for tick in page.all("text", "tick")]
    assert ticks == ["before", "0 s", "2 s", "after"]
    flag = page.one("g", "flag")
    assert percent(float(flag.one("line").attributes["x1"])) == 15
    assert flag.one("text").text == "broken at 0 s"
    shade = page.one("rect", "wrong")
    assert edges(shade) == (15, 85)


def test_the_picture_has_a_description_for_screen_readers() -> None:
    page = moved()
    drawn = next(element for element in page.all("svg") if element.attributes.get("role") == "img")
    assert drawn.attributes["aria-label"] == "Placement over time"
    assert drawn.one("desc").text.split("; ") == [
        "v1 runs on h1, until 0 s",
        "v1 runs on h1, from 0 s until 2 s: migrate v1 from h1 to h2",
        "v1 has capacity on h2, from 0 s until 2 s: migrate v1 from h1 to h2",
        "v1 runs on h2, from 2 s",
        "broken at 0 s",
    ]


def test_each_host_and_the_vms_without_a_host_have_a_lane() -> None:
    asleep = a_vm("v2", "h1", state=VmState.SLEEPING)
    initial = a_cluster(
        a_host("h1"), a_host("h2", state=HostState.STANDBY), vms=[a_vm("v1"), asleep]
    )
    boot = a_step("s1", Boot(vm=V1, target=H1), 0, 1000)
    page = picture(initial, boot, a_step("s2", PowerOn(host=H2), 0, 1000))
    assert lane_names(page) == ["h1", "h2", "no host"]
    looks = {words: [look for look, *_ in found] for words, found in bars(page).items()}
    assert looks == {
        "v1 ready": ["waiting"],
        "v1 boots": ["arriving", "waiting"],
        "v1": ["running"],
        "v2": ["sleeping"],
        "powers on": ["switched"],
    }
    standby = [area for area in page.all("rect", "standby") if "x" in area.attributes]
    assert [edges(area) for area in standby] == [(0, 15), (15, 85)]


def test_a_vm_that_resumes_on_another_host_leaves_its_old_one() -> None:
    initial = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1", state=VmState.SLEEPING)])
    away = bars(picture(initial, a_step("s", Resume(vm=V1, source=H1, target=H2))))
    assert away["v1 leaves"] == [("sleeping", 15, 85)]
    assert away["v1 resumes"] == [("arriving", 15, 85)]
    here = bars(picture(initial, a_step("s", Resume(vm=V1, source=H1, target=H1))))
    assert here["v1 resumes"] == [("sleeping", 15, 85)]


def test_every_class_is_in_the_style_sheet() -> None:
    style = files("equipoise.report").joinpath("page.css").read_text(encoding="utf-8")
    looks = re.findall(r"^\.presence\.(\w+) \{", style, re.M)
    stays = ["running", "sleeping", "arriving", "waiting", "ended"]
    assert looks == [*stays, "switched", "carrying", "overloaded"]


def test_hosts_and_vms_without_steps_are_left_out_first() -> None:
    names = [f"h{number}" for number in range(1, LANES_MAX + 11)]
    crowd = [a_vm(f"v{number}", names[-1]) for number in range(1, ROWS_MAX + 6)]
    initial = a_cluster(*map(a_host, names), vms=crowd)
    last = crowd[-1].id
    move = a_step("s", Migrate(vm=last, source=HostId(names[-1]), target=HostId(names[-2])))
    page = picture(initial, move)
    lanes = lane_names(page)
    assert len(lanes) == LANES_MAX
    assert lanes[-2:] == names[-2:]
    assert f"{last} leaves" in bars(page)
    note = page.one("p", "note").text
    assert note == f"The chart shows the {LANES_MAX} busiest of {len(names)} hosts."
    assert "5 VMs more" in page.text


def test_labels_of_instants_never_overlap() -> None:
    initial = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm(f"v{n}", "h1") for n in range(20)])
    steps = [
        a_step(f"s{n}", Migrate(vm=VmId(f"v{n}"), source=H1, target=H2), n * n, n * n + 40 + n)
        for n in range(20)
    ]
    page = picture(initial, *steps)
    ticks = page.all("text", "tick")[1:-1]
    places = [percent(float(tick.attributes["x"])) for tick in ticks]
    assert len(places) > 4
    assert all(after - before >= 9 for before, after in pairwise(places))
    assert ticks[-1].text == "0.42 s"


@settings(max_examples=60, deadline=None)
@given(NAMES, NAMES, st.text(max_size=300))
@example(["0", "00"], ["0", "0" * 102], "")
def test_names_of_any_kind_are_escaped(hosts: list[str], vms: list[str], words: str) -> None:
    def drawn(hosts: list[str], vms: list[str], words: str) -> Element:
        initial = a_cluster(*map(a_host, hosts), vms=[a_vm(vms[0], hosts[0]), a_vm(vms[1])])
        move = Migrate(vm=VmId(vms[0]), source=HostId(hosts[0]), target=HostId(hosts[1]))
        return picture(initial, a_step("s", move), flag=ViolationFlag(1, words))

    page = drawn(hosts, vms, words)
    # The plain names are as long: a name that fills its bar is drawn without its state.
    plain = drawn(
        ["a" * len(hosts[0]), "b" * len(hosts[1])], ["v" * len(vms[0]), "w" * len(vms[1])], "x"
    )
    assert [element.name for element in page.all()] == [element.name for element in plain.all()]
