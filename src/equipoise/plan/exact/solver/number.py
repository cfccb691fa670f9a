"""Numbers that are not known yet: sums of variables, by their places in a circuit."""

from __future__ import annotations

from collections.abc import Mapping


class Sum:
    """A constant and variables with their factors. It never changes."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int, terms: Mapping[int, int]) -> None:
        self.constant = constant
        self.terms = terms

    @classmethod
    def of(cls, number: Number) -> Sum:
        """A number as a sum."""
        return cls(number, {}) if isinstance(number, int) else number

    @staticmethod
    def plain(constant: int, terms: Mapping[int, int]) -> Number:
        """A sum, or a whole number if there is nothing unknown in it."""
        if all(terms.values()):
            return Sum(constant, terms) if terms else constant
        left = {index: factor for index, factor in terms.items() if factor}
        return Sum(constant, left) if left else constant

    def __add__(self, other: Number) -> Number:
        if isinstance(other, int):
            return Sum(self.constant + other, self.terms)
        terms = dict(self.terms)
        for index, factor in other.terms.items():
            terms[index] = terms.get(index, 0) + factor
        return Sum.plain(self.constant + other.constant, terms)

    __radd__ = __add__

    def __neg__(self) -> Sum:
        return Sum(-self.constant, {index: -factor for index, factor in self.terms.items()})

    def __sub__(self, other: Number) -> Number:
        return self + -other

    def __rsub__(self, other: int) -> Number:
        return -self + other

    def __mul__(self, factor: int) -> Number:
        terms = {index: one * factor for index, one in self.terms.items()}
        return Sum.plain(self.constant * factor, terms)

    __rmul__ = __mul__


Number = int | Sum
"""A number that is known, or a sum that the solver decides on."""
