"""The page and the tables of a study of the clock with a timeout."""

from __future__ import annotations

import csv
import io

from equipoise.documents.kubernetes import (
    ClockStudyDocument,
    ClockStudyPointRow,
    ClockStudyReferenceRow,
    EstimateRow,
)
from equipoise.report.clock_study import accuracy_words, clock_study_csv, clock_study_page
from unit.report.parsed import parsed

ODD = '<b>&"w'


def point(timeout_ms: float, step_s: float, runs: int = 3, crashes: int = 0) -> ClockStudyPointRow:
    good = runs - crashes
    figure = EstimateRow(mean=20.0 + step_s, low=19.0, high=40.0, runs=good) if good else None
    return ClockStudyPointRow(
        workload=ODD, timeout_ms=timeout_ms, max_step_s=step_s, min_delay_ms=0.0, runs=runs,
        crashes=crashes, crash_rate=crashes / runs,
        failures={"scheduler-ended": crashes} if crashes else {}, makespan_s=figure,
        mean_waiting_s=figure, wall_s=figure, distance_s=figure, accuracy=None,
        exact_runs=good, over_allocations=0,
    )  # fmt: skip


def document(*points: ClockStudyPointRow) -> ClockStudyDocument:
    reference = ClockStudyReferenceRow(
        workload=ODD, pods=3, nodes=2, makespan_s=20.0, mean_waiting_s=5.0, wall_s=1.0,
        over_allocations=0,
    )  # fmt: skip
    return ClockStudyDocument(
        scheduler="s", reference_clock="virtual", repeats=3, references=(reference,),
        points=points, runs=(), wall_s=1.0,
    )  # fmt: skip


def test_each_figure_has_a_line_for_each_step() -> None:
    text = clock_study_page(document(point(1, 1), point(5, 1), point(1, 20), point(5, 20)))
    assert "<b>" not in text
    page = parsed(text)
    charts = page.all("figure")
    # Equal runs have no accuracy to draw: a note stands for that chart.
    assert len(charts) == 5
    for chart in charts:
        assert len(chart.all("circle")) == 4
    assert len(page.all("p", "empty")) == 1
    assert len(page.all("tbody")[0].all("tr")) == 4


def test_points_without_a_good_run_have_a_crash_rate_only() -> None:
    page = parsed(clock_study_page(document(point(1, 1, crashes=3))))
    assert len(page.all("figure")) == 1
    assert len(page.all("p", "empty")) == 5


def test_an_equal_run_reads_as_exact() -> None:
    assert accuracy_words(point(1, 1)) == "exact"
    assert accuracy_words(point(1, 1, crashes=3)) == "-"


def test_the_tables_have_a_row_for_each_point() -> None:
    tables = clock_study_csv(document(point(1, 1), point(5, 1, crashes=3)))
    rows = list(csv.DictReader(io.StringIO(tables["points.csv"])))
    assert [row["makespan_s"] for row in rows] == ["21.0", ""]
    assert [row["failures"] for row in rows] == ["", "scheduler-ended=3"]
    assert tables["runs.csv"] == ""
