"""Quantities and durations are read exactly, and what is written is read as the same amount."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.adapters.kubernetes.quantity import (
    format_bytes,
    format_milli,
    format_seconds,
    parse_amount,
    parse_duration_ms,
    parse_milli,
    parse_quantity,
)

SUFFIXES = {
    "n": "1e-9", "u": "1e-6", "m": "1e-3", "": "1", "k": "1e3", "M": "1e6", "G": "1e9",
    "T": "1e12", "P": "1e15", "E": "1e18", "Ki": str(2**10), "Mi": str(2**20),
    "Gi": str(2**30), "Ti": str(2**40), "Pi": str(2**50), "Ei": str(2**60),
}  # fmt: skip
DIGITS = st.decimals(0, 7, places=9).map(lambda number: format(number, "f"))


@given(st.sampled_from(["", "+", "-"]), DIGITS, st.sampled_from(sorted(SUFFIXES)))
def test_a_suffix_multiplies_exactly(sign: str, digits: str, suffix: str) -> None:
    expected = Fraction(digits) * Fraction(Decimal(SUFFIXES[suffix]))
    found = parse_quantity(f"{sign}{digits}{suffix}")
    assert found == (-expected if sign == "-" else expected)


@given(DIGITS, st.sampled_from("eE"), st.integers(-18, 18))
def test_an_exponent_is_a_power_of_ten(digits: str, letter: str, exponent: int) -> None:
    found = parse_quantity(f"{digits}{letter}{exponent}")
    assert found == Fraction(digits) * Fraction(10) ** exponent


@given(st.integers(0, 2**53) | st.floats(1e-20, 1e15))
def test_a_number_of_a_file_is_the_decimal_that_was_written(number: float) -> None:
    assert parse_quantity(number) == Fraction(Decimal(repr(number)))


@given(st.integers(0, 10**15))
def test_what_is_written_is_read_again(amount: int) -> None:
    assert parse_milli(format_milli(amount)) == amount
    assert parse_amount(format_bytes(amount)) == amount
    assert parse_duration_ms(format_seconds(amount)) == amount


@given(DIGITS, st.sampled_from(sorted(SUFFIXES)))
def test_whole_units_are_rounded_up(digits: str, suffix: str) -> None:
    exact = parse_quantity(digits + suffix)
    assert 0 <= parse_amount(digits + suffix) - exact < 1
    assert 0 <= parse_milli(digits + suffix) - 1000 * exact < 1


@given(st.text(max_size=12))
def test_any_other_text_is_refused_and_nothing_else_happens(text: str) -> None:
    for parse in (parse_quantity, parse_duration_ms):
        with suppress(ValueError):
            parse(text)


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.sampled_from(["h", "m", "s", "ms", "us", "ns"])),
        min_size=1,
        max_size=4,
    )
)
def test_the_parts_of_a_duration_add_up(parts: list[tuple[int, str]]) -> None:
    unit_ns = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
    total_ns = sum(number * unit_ns[unit] for number, unit in parts)
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert parse_duration_ms(text) == -(-total_ns // 10**6)


@pytest.mark.parametrize(
    "text",
    ["", " ", "1 ", "1Kib", "--1", "1e", "1e1000", "1.1.1", "0x1", "1_0", ".", "Ki", "\u0661",
     "nan", "inf", None, True, [], float("nan"), float("inf")],
)  # fmt: skip
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["", "1d", "-1s", "1h ago", "s", "1e3", None, True, float("nan")])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_duration_ms(text)
