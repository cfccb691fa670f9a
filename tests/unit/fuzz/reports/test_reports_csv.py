"""Findings as a table: a row each, that any reader of CSV reads and no spreadsheet runs."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.fuzz.reports import CampaignAccount, render_csv
from equipoise.fuzz.trial import TrialOutcome
from unit.fuzz.reports.accounts import a_finding, a_trial, an_account


def rows(*accounts: CampaignAccount) -> list[dict[str, str]]:
    written = render_csv(accounts)
    assert written.endswith(b"\r\n")
    return list(csv.DictReader(StringIO(written.decode(), newline=""), strict=True))


def test_a_finding_is_a_row() -> None:
    (row,) = rows(an_account(a_finding(TrialOutcome.UNDER), target="mine", version="1.2"))
    why = row.pop("why")
    assert why.startswith("the scheduler accepts a plan that violates the constraint at 1000 ms: ")
    assert row == {
        "target": "mine",
        "version": "1.2",
        "seed": "3",
        "constraint": "Spread",
        "mode": "discrete",
        "class": "under-filtering",
        "harm": "introduced",
        "cause": "",
        "input_valid": "true",
        "broken_at_first": "false",
        "seen": "2",
        "number": "7",
        "message": "",
        "vms": "2",
        "hosts": "2",
        "steps": "1",
    }


def test_several_campaigns_share_one_table_with_one_header() -> None:
    both = rows(
        an_account(a_finding(TrialOutcome.OVER, a_trial("Gather"))),
        an_account(a_finding(TrialOutcome.CRASH, message="a\r\nb"), target="other"),
    )
    assert [(document["target"], document["class"], document["harm"]) for document in both] == [
        ("mine", "over-filtering", ""),
        ("other", "crash", ""),
    ]
    assert both[1]["message"] == "a\r\nb"
    assert render_csv([an_account()]).count(b"\r\n") == 1


@pytest.mark.parametrize(
    "formula",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "\x00=1", "\uff1d1"],
)  # fmt: skip
def test_formulas_are_written_as_text(formula: str) -> None:
    (row,) = rows(an_account(a_finding(TrialOutcome.CRASH, message=formula), target=formula))
    assert row["message"] == row["target"] == f"'{formula}"


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_survives(target: str, message: str) -> None:
    (row,) = rows(an_account(a_finding(TrialOutcome.CRASH, message=message), target=target))
    for given_, found in ((target, row["target"]), (message, row["message"])):
        kept = given_.encode("utf-8", "replace").decode()
        assert found in {kept, f"'{kept}"}
        assert found.lstrip()[:1] not in {"=", "+", "-", "@"}
