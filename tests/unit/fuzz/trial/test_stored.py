"""Lines of files: a problem names its line, and older lines are still read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equipoise.errors import InvalidInput
from equipoise.fuzz.trial.stored import read_lines

CORPUS = Path(__file__).parents[3] / "corpus" / "faulty.jsonl"
GOOD = next(line for line in CORPUS.read_bytes().splitlines() if b'"migrate"' in line)


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    line = json.loads(GOOD)
    change(line)
    return json.dumps(line).encode()


def _strangers(line: dict[str, Any]) -> None:
    line["case"]["cluster"]["vms"][0]["host"] = "nowhere"


def _twins(line: dict[str, Any]) -> None:
    line["case"]["cluster"]["hosts"] *= 2


def _cut_off(line: dict[str, Any]) -> None:
    line["case"]["network"] = {"switches": [{"id": "sw"}], "links": []}


@pytest.mark.parametrize(
    ("line", "code", "key"),
    [
        (b"{", "syntax-error", ""),
        (b"[1]", "wrong-type", ""),
        (bytes(range(128, 200)), "syntax-error", ""),
        (b'"\xff"', "unreadable-file", ""),
        (b'{"target":"\xff"}', "unreadable-file", ""),
        (b'{"version":' + b"[" * 100_000, "too-large", ""),
        (b'{"other":' + b"[" * 100_000, "too-large", ""),
        (b"{}", "missing-key", ""),
        (changed(lambda one: one.update(version=2)), "unsupported-feature", "version"),
        (changed(lambda one: one.update(outcome="odd")), "invalid-value", "outcome"),
        (changed(lambda one: one.update(seed="odd")), "wrong-type", "seed"),
        (changed(lambda one: one.update(other=1)), "unknown-key", ""),
        (changed(lambda one: one.update(constraint="Nix")), "unknown-constraint", "constraint"),
        (changed(lambda one: one.update(specification="}")), "syntax-error", "specification"),
        (changed(lambda one: one["case"].update(arguments={})), "missing-argument", "vs"),
        (changed(_strangers), "unknown-name", "case.cluster.vms[0].host"),
        (changed(_twins), "duplicate-name", "case.cluster.hosts[2].id"),
        (changed(_cut_off), "disconnected", "case.network.links"),
    ],
)
def test_a_problem_names_its_line(line: bytes, code: str, key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        list(read_lines(b"\n".join((GOOD, b"", line, GOOD)), "cases"))
    assert caught.value.source == "cases"
    first = caught.value.problems[0]
    assert (first.line, first.code, first.key) == (3, code, key)


def test_line_ends_and_a_mark_of_order_are_no_part_of_a_case() -> None:
    (plain,) = read_lines(GOOD, "cases")
    assert list(read_lines(b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n", "cases")) == [plain]


def test_settings_of_older_versions_are_still_read() -> None:
    old = changed(lambda line: line.update(settings={"beside": "nobody", "gate": "off"}))
    (stored,) = read_lines(old, "cases")
    assert stored.settings == {"beside": "none", "gate": "off"}


def test_a_plan_of_an_older_version_is_still_read() -> None:
    def with_old_key(line: dict[str, Any]) -> None:
        line["case"]["plan"].pop("repairs", None)
        line["case"]["plan"]["mends"] = ["r"]

    (stored,) = read_lines(changed(with_old_key), "cases")
    assert stored.case.plan is not None
    assert stored.case.plan.repairs == ("r",)
