"""Figures in their printed form."""

from __future__ import annotations

import pytest

from equipoise.model.quantity import format_count
from equipoise.report.format import (
    format_amount,
    format_duration,
    format_moment,
    format_number,
    format_percent,
    format_price,
    shorten_end,
    shorten_middle,
    with_unit,
)


@pytest.mark.parametrize(
    ("value", "words"),
    [(12345.6, "12,346"), (123.4, "123"), (12.34, "12.3"), (1.5, "1.5"), (0.12345, "0.123"),
     (3.0, "3"), (-0.0001, "0"), (0, "0"), (float("nan"), "-"), (None, "-"), (-1234.5, "-1,234")],
)  # fmt: skip
def test_a_number_has_three_digits_or_so(value: float | None, words: str) -> None:
    assert format_number(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(100, "100 %"), (99.999, "99.99 %"), (99.951, "99.95 %"), (99.1, "99.1 %"), (50.04, "50 %"),
     (0, "0 %"), (None, "-")],
)  # fmt: skip
def test_what_is_not_quite_all_never_reads_as_if_it_were(value: float | None, words: str) -> None:
    assert format_percent(value) == words
    assert with_unit(value, "%") == words


@pytest.mark.parametrize(
    ("at_s", "words"),
    [(0, "0:00"), (65, "0:01:05"), (3600 * 14 + 300, "14:05"), (86400 * 1.5, "36:00"),
     (86400 * 3 + 3600, "3 d 1:00")],
)  # fmt: skip
def test_a_moment_is_hours_and_minutes_and_days_where_there_are_many(
    at_s: float, words: str
) -> None:
    assert format_moment(at_s) == words


def test_an_exact_moment_always_has_seconds() -> None:
    assert format_moment(3600, exact=True) == "1:00:00"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2.5, "2.5 s"), (90, "1 min 30 s"), (3600, "1 h"), (5400, "90 min"), (7320, "2 h 2 min"),
     (86400, "24 h"), (86400 * 9, "9 d"), (86400 * 2 + 7200, "2 d 2 h"), (-90, "-1 min 30 s"),
     (None, "-"), (0, "0 s")],
)  # fmt: skip
def test_a_duration_has_its_two_largest_units(seconds: float | None, words: str) -> None:
    assert format_duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "recorded", "words"),
    [(1500, "mhz", "1,500 MHz"), (2500, "mhz", "2.5 GHz"), (5 * 1024**2, "mib", "5 TiB"),
     (300 * 1024, "mib", "300 GiB"), (4270, "watts", "4.27 kW"), (12, "watts", "12 W")],
)  # fmt: skip
def test_an_amount_is_in_the_unit_that_reads_best(value: float, recorded: str, words: str) -> None:
    assert format_amount(value, recorded) == words


def test_names_are_cut_in_the_middle_and_sentences_at_the_end() -> None:
    assert shorten_middle("rack-17.example.com-003", 12) == "rack-1…m-003"
    assert len(shorten_middle("x" * 50, 12)) == 12
    assert shorten_middle("short", 12) == "short"
    assert shorten_end("a long sentence", 7) == "a long…"


def test_one_is_not_plural() -> None:
    assert format_count(1, "host") == "1 host"
    assert format_count(1200, "host") == "1,200 hosts"


@pytest.mark.parametrize(
    ("value", "words"),
    [(1234.5, "1,234.50 EUR"), (0.3, "0.30 EUR"), (0.0125, "0.013 EUR"), (0.0, "0.00 EUR"),
     (-2.0, "-2.00 EUR"), (0.00001, "0 EUR")],
)  # fmt: skip
def test_prices_have_cents(value: float, words: str) -> None:
    assert format_price(value, "EUR") == words


def test_a_price_may_have_no_currency() -> None:
    assert format_price(3.0, "") == "3.00"
