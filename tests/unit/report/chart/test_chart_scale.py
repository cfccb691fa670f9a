"""Round figures beside an axis."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from equipoise.report.chart.frame import LinearScale, round_ticks, time_ticks


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**12))
def test_ticks_embrace_what_is_shown_and_are_few(thousandths: int, wide: int) -> None:
    low, high = thousandths / 1000, (thousandths + wide) / 1000
    at = round_ticks(low, high)
    slack = (at[-1] - at[0]) * 1e-6
    assert at[0] <= low + slack
    assert at[-1] >= high - slack
    assert 2 <= len(at) <= 8
    assert at == sorted(at)


def test_ticks_of_nothing_still_make_a_scale() -> None:
    assert round_ticks(0, 0) == [0, 0.25, 0.5, 0.75, 1.0][: len(round_ticks(0, 0))]
    assert len(round_ticks(5, 5)) >= 2


def test_counts_have_no_halves() -> None:
    assert round_ticks(0, 1, whole=True) == [0, 1]
    for high in range(1, 60):
        for about in (2, 4):
            assert all(at == int(at) for at in round_ticks(0, high, about=about, whole=True))


@given(st.integers(0, 10**6), st.integers(1, 10**8))
def test_moments_are_within_the_span_and_leave_room_for_their_words(low: int, wide: int) -> None:
    at = [at_s for at_s, _ in time_ticks(low, low + wide)]
    assert len(at) <= 9
    assert all(low <= at_s <= low + wide for at_s in at)


def test_a_day_is_shown_in_hours_and_a_week_in_days() -> None:
    assert [words for _, words in time_ticks(0, 86400)][:3] == ["0:00", "3:00", "6:00"]
    assert [words for _, words in time_ticks(0, 7 * 86400)][:3] == ["0 d", "1 d", "2 d"]
    assert [words for _, words in time_ticks(0, 40)][:3] == ["0:00", "0:00:05", "0:00:10"]


def test_a_scale_is_a_straight_line() -> None:
    scale = LinearScale(0, 10, 100, 200)
    assert scale(0) == 100
    assert scale(5) == 150
