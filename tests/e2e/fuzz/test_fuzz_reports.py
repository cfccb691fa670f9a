"""``equipoise fuzz`` with files: the page in a real browser, and what other programs read."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from command import COMMAND, answer
from e2e.test_report_page import CHROMIUM, opened

PNG = b"\x89PNG\r\n\x1a\n"
TARGET = ("fuzz", "faulty-C", "--constraint", "Spread", "--constraint", "Root", "--tests", "300")

# The page in a frame, as wide as a screen is, and what a reader would see there.
A_SCREEN = """<!doctype html>
<iframe srcdoc="{page}" style="width: {wide}px; height: 2000px; border: 0"></iframe>
<script>
addEventListener("load", () => {{
  const page = document.querySelector("iframe").contentDocument;
  const all = (which) => [...page.querySelectorAll(which)];
  const box = (one) => one.getBoundingClientRect();
  const wide = page.documentElement.clientWidth;
  const out = all("body *").filter((one) => !one.closest("pre, svg") && box(one).right > wide + 1);
  const bars = all("rect.presence").filter((one) => box(one).width > 20 && box(one).height >= 20);
  const texts = all(".placement text").filter((one) => one.textContent.trim());
  const letters = texts.map((one) => box(one).height);
  const read = document.createElement("pre");
  read.textContent = JSON.stringify({{
    wide, bars: bars.length, letters: Math.min(...letters), out: out.map((one) => one.outerHTML),
  }});
  document.body.append(read);
}});
</script>"""


def test_all_files_are_written_beside_the_json(tmp_path: Path) -> None:
    table, suites, page = (tmp_path / name for name in ("found.csv", "found.xml", "found.html"))
    found = answer(
        *TARGET, "--csv", str(table), "--junit", str(suites), "--report", str(page), code=1
    )
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    keys = ("class", "constraint", "mode", "message", "why", "harm")
    assert [[row[key] for key in keys] for row in rows] == [
        [defect[key] for key in keys] for defect in found["defects"]
    ]
    suite = ElementTree.parse(suites).getroot().find("testsuite")
    assert suite is not None
    failed = {case.attrib["name"] for case in suite if case.find("failure") is not None}
    assert failed == {defect["constraint"] for defect in found["defects"]}
    assert suite.attrib["tests"] == "2"
    seen = opened(page)
    assert len(seen.all("article")) == len(found["defects"]) > 0
    drawn = [element for element in seen.all("svg") if element.attributes.get("role") == "img"]
    assert len(drawn) == len(found["defects"])
    assert all(drawing.all("rect", "presence") for drawing in drawn)


@pytest.fixture(scope="module", name="campaign")
def fixture_campaign(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The page of a campaign, and its document."""
    page = tmp_path_factory.mktemp("campaign") / "found.html"
    return page, answer(*TARGET, "--report", str(page), code=1)


def test_the_line_on_the_page_gives_the_same_verdict_again(
    campaign: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    page, found = campaign
    lines = [element.text for element in opened(page).all("pre", "copied")]
    reasons = [defect["why"] for defect in found["defects"]]
    in_shell = subprocess.run(
        f'PATH="{COMMAND.parent}:$PATH"; {lines[0]} --json',
        shell=True, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert in_shell.returncode == 1, in_shell.stderr
    assert json.loads(in_shell.stdout)["defects"][0]["why"] == reasons[0]
    # The other lines without a shell: each is ``printf %s CASE | equipoise fuzz ... /dev/stdin``.
    for line, why in zip(lines, reasons, strict=True):
        printf, _, case, pipe, program, *words, stdin = shlex.split(line)
        assert (printf, pipe, program, stdin) == ("printf", "|", "equipoise", "/dev/stdin")
        (tmp_path / "case.jsonl").write_text(case)
        (defect,) = answer(*words, str(tmp_path / "case.jsonl"), code=1)["defects"]
        assert defect["why"] == why


@pytest.mark.parametrize("wide", [1280, 400])
def test_the_page_can_be_read_on_any_screen(
    campaign: tuple[Path, dict[str, Any]], tmp_path: Path, wide: int
) -> None:
    content, framed = campaign[0].read_text(), tmp_path / "framed.html"
    framed.write_text(A_SCREEN.format(page=escape(content), wide=wide))
    seen = json.loads(opened(framed).one("pre").text)
    assert seen["out"] == []
    assert wide - 20 <= seen["wide"] <= wide
    assert seen["letters"] >= 12
    assert seen["bars"] == len(re.findall(r'<rect class="presence \w+" x=', content)) > 0


@pytest.mark.parametrize("scheme", ["0", "1"])
def test_the_page_can_be_seen_in_the_dark_and_in_the_light(
    campaign: tuple[Path, dict[str, Any]], tmp_path: Path, scheme: str
) -> None:
    page, picture = campaign[0], tmp_path / "found.png"
    assert opened(page).one("h1").text == "faulty-C"
    assert CHROMIUM is not None
    subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=800,900",
         f"--blink-settings=preferredColorScheme={scheme}",
         f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={picture}", page.as_uri()],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert picture.read_bytes().startswith(PNG)


@pytest.mark.parametrize("option", ["--csv", "--junit", "--report"])
def test_an_unwritable_file_is_reported_before_the_campaign(tmp_path: Path, option: str) -> None:
    (problem,) = answer("fuzz", "planner", "--tests", "1000000", option, str(tmp_path), code=2)[
        "problems"
    ]
    assert (problem["code"], problem["file"]) == ("file-not-writable", str(tmp_path))


def test_a_campaign_in_which_nothing_is_found_passes_every_test(tmp_path: Path) -> None:
    suites = tmp_path / "found.xml"
    found = answer("fuzz", "planner", "--constraint", "Spread", "--constraint", "Ban",
                   "--tests", "40", "--junit", str(suites))  # fmt: skip
    assert found["defects"] == []
    suite = ElementTree.parse(suites).getroot().find("testsuite")
    assert suite is not None
    counts = [suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["2", "0", "0", "0"]
