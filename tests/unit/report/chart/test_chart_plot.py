"""Lines, areas and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.report.chart.frame import TimeMark, TimeSpan
from equipoise.report.chart.plot import Plot, PlotSeries, SeriesStyle, draw, sample_edges
from unit.report.parsed import Element, parsed

SPAN = TimeSpan(0, 100)


def drawn(*series: PlotSeries, **fields: Any) -> Element:
    times = np.linspace(0, 100, len(series[0].values))
    plot = Plot(label="it", span=SPAN, times=times, series=series, **fields)
    return parsed(draw(plot, empty="nothing happened"))


def line(*values: float, **fields: Any) -> PlotSeries:
    return PlotSeries(name=fields.pop("name", "one"), values=np.array(values), **fields)


def test_a_line_is_broken_where_figures_are_missing_and_a_lonely_one_is_a_dot() -> None:
    made = drawn(line(1, 2, np.nan, 3, np.nan, 4, 5))
    paths = [element for element in made.all("path", "c1") if "L" in element.attributes["d"]]
    assert len(paths) == 2
    assert len(made.all("circle")) == 1


def test_without_figures_it_says_why_and_shows_no_axes() -> None:
    made = drawn(line(np.nan, np.nan))
    assert made.text == "nothing happened"
    assert not made.all("svg")


def test_one_sample_is_a_dot() -> None:
    made = drawn(line(5.0))
    assert len(made.all("circle")) == 1


def test_columns_stand_on_each_other_and_the_scale_knows() -> None:
    made = drawn(
        line(3, 0, look=SeriesStyle.COLUMNS), line(4, 1, look=SeriesStyle.COLUMNS, colour=2)
    )
    ticks = [element.text for element in made.all("text", "end")]
    assert ticks[-1] == "8"
    assert len(made.all("path", "column")) == 2


def test_names_are_beside_the_ends_and_never_on_top_of_each_other() -> None:
    made = drawn(*(line(1, 1 + n / 1000, name=f"s{n}") for n in range(6)))
    heights = sorted(float(element.attributes["y"]) for element in made.all("text", "name"))
    assert len(heights) == 6
    assert min(np.diff(heights)) > 12


def test_a_level_is_drawn_and_named_and_inside_the_scale() -> None:
    made = drawn(line(0.1, 0.2), levels=[(0.9, "target")])
    assert "target" in made.one("figure").text
    assert made.all("text", "end")[-1].text == "1"


def test_the_unit_is_written_once_at_the_top() -> None:
    made = drawn(line(0, 100), unit="GHz")
    assert [element.text for element in made.all("text", "end")].count("100 GHz") == 1


def test_marks_carry_their_words() -> None:
    made = drawn(line(0, 1), marks=[TimeMark(50, "h1 failed")])
    assert made.one("g", "mark").one("title").text == "h1 failed"
    assert len(made.one("g", "mark").all("path")) == 2


def test_many_marks_have_no_lines_that_would_hide_the_rest() -> None:
    made = drawn(line(0, 1), marks=[TimeMark(n, "failed") for n in range(20)])
    assert all(len(element.all("path")) == 1 for element in made.all("g", "mark"))


def test_edges_are_half_way_between_samples() -> None:
    assert sample_edges(np.array([0.0, 10, 30]), TimeSpan(0, 40)).tolist() == [0, 5, 20, 40]
    assert sample_edges(np.array([0.0]), TimeSpan(0, 40)).tolist() == [0, 40]
