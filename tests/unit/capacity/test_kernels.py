"""Numeric kernels: compiled kernels call each other, and give the same bits as plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise.capacity.kernels import KernelSet
from equipoise.capacity.waterfill import Floats

FACTOR = 3.0


def scaled(figure: float) -> float:
    return figure * FACTOR + 0.1


def total(figures: Floats) -> float:
    found = 0.0
    for figure in figures:
        found += scaled(figure)
    return found


FIGURES = np.random.default_rng(1).normal(size=1000) * 10.0 ** np.arange(1000) ** 0.3


def test_plain_kernels_are_the_functions_themselves() -> None:
    kernels = KernelSet(scaled, total)
    assert kernels.plain.total is total
    assert kernels.at(fast=False) is kernels.plain


def test_compiled_kernels_give_the_same_bits() -> None:
    kernels = KernelSet(scaled, total)
    fast = kernels.at(fast=True)
    assert fast is kernels.fast
    assert fast.total is not total
    assert fast.total(FIGURES).hex() == float(total(FIGURES)).hex()


def test_kernels_are_compiled_once() -> None:
    kernels = KernelSet(scaled, total)
    assert kernels.fast is kernels.fast


def test_a_changed_callee_is_compiled_again() -> None:
    """Both versions of the callee have one name, and what was compiled is kept on disk by name."""

    def first() -> Any:
        def part(figure: float) -> float:
            return figure + 1.0

        return part

    def second() -> Any:
        def part(figure: float) -> float:
            return figure + 2.0

        return part

    results = []
    for made in (first(), second()):
        part = made
        part.__qualname__ = "part"
        results.append(KernelSet(part).fast.part(1.0))
    assert results == [2.0, 3.0]


def test_a_changed_constant_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant may come from another file, whose age the cache of Numba does not check."""
    assert KernelSet(scaled).fast.scaled(1.0) == 3.1
    monkeypatch.setitem(scaled.__globals__, "FACTOR", 5.0)
    assert KernelSet(scaled).fast.scaled(1.0) == 5.1


def test_kernels_compile_without_a_cache_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import numba  # noqa: PLC0415  (only this test wakes it up by itself)

    compile_it = numba.njit

    def without_a_place(*given: Any, **options: Any) -> Any:
        if options.get("cache"):

            def refuse(_: Any) -> Any:
                raise RuntimeError("cannot cache function: no locator available")

            return refuse
        return compile_it(*given, **options)

    monkeypatch.setattr(numba, "njit", without_a_place)
    fast = KernelSet(scaled, total).fast
    assert fast.total(FIGURES).hex() == float(total(FIGURES)).hex()
