"""A section of a page: a heading, a sentence that says what to see, and the thing itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from equipoise.report.chart.markup import Markup, tag, text


class Section(NamedTuple):
    """One part of a page."""

    name: str
    """Where links lead to."""
    title: str
    see: str
    """What to see in it."""
    body: Markup

    def markup(self) -> Markup:
        """The section as it stands in the page."""
        heading = tag("h2", text(self.title))
        see = tag("p", text(self.see), class_="see")
        return tag("section", heading, see, self.body, id=self.name)


def listed(
    columns: Sequence[str], rows: Sequence[Sequence[Markup]], *, right: Sequence[str] = ()
) -> Markup:
    """Make a table; the columns in ``right`` hold numbers."""
    sides = ["number" if column in right else None for column in columns]
    heads = [
        tag("th", text(column), scope="col", class_=side)
        for column, side in zip(columns, sides, strict=True)
    ]
    body = [
        tag("tr", *(tag("td", cell, class_=side) for cell, side in zip(row, sides, strict=True)))
        for row in rows
    ]
    return tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *body))
