"""``equipoise solve --report``: the page of a plan in a real browser, and of what is impossible."""

from __future__ import annotations

import subprocess
from pathlib import Path

from command import answer, refusals
from e2e.test_report_page import CHROMIUM, marks, opened
from unit.report.parsed import parsed

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PNG = b"\x89PNG\r\n\x1a\n"


def test_the_page_of_a_plan_opens_and_can_be_seen(tmp_path: Path) -> None:
    path, picture = tmp_path / "plan.html", tmp_path / "plan.png"
    found = answer("solve", str(EXAMPLES / "swap.yaml"), "--optimise", "--report", str(path))
    page = opened(path)
    assert page.one("html").attributes["data-ready"] == "1"
    assert page.one("h1").text == "swap"
    assert marks(page.one("figure")) == found["actions"] + found["migrations"]
    rows = [[cell.text for cell in row.all("td")] for row in page.one("tbody").all("tr")]
    assert [(row[0], row[3], row[4]) for row in rows] == [
        (step["id"], step["action"], ", ".join(step["after"])) for step in found["steps"]
    ]
    assert len(page.all("g", "link")) == sum(len(step["after"]) for step in found["steps"])
    assert CHROMIUM is not None
    subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000",
         f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={picture}", path.as_uri()],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert picture.read_bytes().startswith(PNG)


def test_the_page_of_what_is_impossible_says_why(tmp_path: Path) -> None:
    path = tmp_path / "none.html"
    found = answer("solve", str(EXAMPLES / "impossible.yaml"), "--report", str(path), code=1)
    why = parsed(path.read_text()).one("section")
    assert [" ".join(line.text.split()) for line in why.all("li")] == found["explanation"]


def test_a_page_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    swap = str(EXAMPLES / "swap.yaml")
    assert refusals("solve", swap, "--report", str(tmp_path)) == [("file-not-writable", "")]
