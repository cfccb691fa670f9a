"""Laws of dividing by shares, and the paper's own way of doing it as an oracle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from equipoise.place.fill import Claim, fill

TINY = 1e-6


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    floor = draw(st.integers(0, 50))
    return Claim(floor, floor + draw(st.integers(0, 100)), draw(st.integers(0, 20)))


def in_chunks(amount: float, some: list[Claim], chunk: float) -> list[float]:
    """First the floors; then chunk by chunk to whoever has least for his shares."""
    given_out = [claim.floor for claim in some]
    left = amount - sum(given_out)
    while left >= chunk:
        open_ones = [
            (given_out[place] / claim.shares, place)
            for place, claim in enumerate(some)
            if claim.shares and given_out[place] + chunk <= claim.ceiling
        ]
        if not open_ones:
            break
        given_out[min(open_ones)[1]] += chunk
        left -= chunk
    return given_out


@given(st.lists(claims(), max_size=5), st.integers(0, 400))
def test_water_fills_as_small_chunks_would(some: list[Claim], amount: int) -> None:
    found = fill(amount, some)
    if amount >= sum(claim.floor for claim in some):
        chunk = 0.25
        slowly = in_chunks(amount, some, chunk)
        room = chunk * (len(some) + 1)
        assert all(abs(a - b) <= room for a, b in zip(found, slowly, strict=True))


@given(st.lists(claims(), max_size=6), st.integers(0, 500))
def test_nobody_gets_less_than_the_floor_or_more_than_the_ceiling(
    some: list[Claim], amount: int
) -> None:
    found = fill(amount, some)
    enough = amount >= sum(claim.floor for claim in some)
    for got, claim in zip(found, some, strict=True):
        assert got <= claim.ceiling + TINY
        assert got >= claim.floor - TINY or not enough
    most = sum(claim.ceiling if claim.shares else claim.floor for claim in some)
    assert abs(sum(found) - min(amount, most)) <= TINY or not some


@given(st.lists(claims(), max_size=6), st.integers(0, 300), st.integers(0, 200))
def test_more_to_divide_takes_nothing_from_anybody(
    some: list[Claim], amount: int, more: int
) -> None:
    before, after = fill(amount, some), fill(amount + more, some)
    assert all(b <= a + TINY for b, a in zip(before, after, strict=True))


def test_the_smallest_of_shares_count_beside_the_largest() -> None:
    found = fill(500, [Claim(0, 10, 1e16), Claim(0, 1000, 1.0), Claim(0, 1000, 0.5)])
    assert [round(got, 6) for got in found] == [10, 326.666667, 163.333333]
