"""A section of a page: a heading, a caption and the content; and HTML tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from equipoise.report.chart.markup import Markup, tag, text


class Section(NamedTuple):
    """One part of a page."""

    name: str
    """The target of links."""
    title: str
    caption: str
    """One or two sentences about the content."""
    body: Markup

    def markup(self) -> Markup:
        """Return the section as HTML."""
        heading = tag("h2", text(self.title))
        caption = tag("p", text(self.caption), class_="caption")
        return tag("section", heading, caption, self.body, id=self.name)


def html_table(
    columns: Sequence[str], rows: Sequence[Sequence[Markup]], *, right: Sequence[str] = ()
) -> Markup:
    """Return a table; the columns in ``right`` hold numbers."""
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
