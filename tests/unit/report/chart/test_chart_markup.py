"""The only function that puts text into a page."""

from __future__ import annotations

import json

import pytest

from equipoise.report.chart.markup import embed_json, embed_trusted, tag, text, void_tag

NASTY = "</script><img src=x onerror=alert(1)>&\"'"


def test_text_and_attributes_are_escaped() -> None:
    made = tag("p", text(NASTY), title=NASTY)
    assert "<img" not in made
    assert made.count('"') == 2
    assert "&amp;" in made


def test_what_does_not_print_is_replaced() -> None:
    assert text("a\x00b\x1b[31mc\u202ed\ne") == "a?b?[31mc?d e"


def test_attributes_are_named_as_in_html() -> None:
    assert tag("g", class_="a", data_rows=3, x=1.25) == '<g class="a" data-rows="3" x="1.2"></g>'
    assert void_tag("input", checked=True, hidden=False, id=None) == "<input checked>"


def test_figures_carried_to_the_script_cannot_leave_their_element() -> None:
    made = embed_json({"name": NASTY})
    inner = made.removeprefix('<script type="application/json">').removesuffix("</script>")
    assert "<" not in inner
    assert json.loads(inner) == {"name": NASTY}


def test_a_style_sheet_that_would_end_itself_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        embed_trusted("style", "</style>")
