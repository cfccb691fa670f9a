"""Markup: the only module that puts text into a page; it escapes everything.

Only the functions of this file make ``Markup``, so the type checker finds text that is not escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple, NewType

Markup = NewType("Markup", str)
Attribute = str | int | float | bool | None

EMPTY = Markup("")


def text(content: object) -> Markup:
    """Return text escaped and without control characters."""
    return Markup(escape(_printable(str(content))))


def tag(name: str, /, *children: Markup, **attributes: Attribute) -> Markup:
    """Return an element; ``class_`` is ``class``, ``data_rows`` is ``data-rows``."""
    return Markup(f"<{name}{_attributes(attributes)}>{''.join(children)}</{name}>")


def void_tag(name: str, /, **attributes: Attribute) -> Markup:
    """Return an element without content, such as ``meta`` or ``input``."""
    return Markup(f"<{name}{_attributes(attributes)}>")


def concat(parts: Iterable[Markup]) -> Markup:
    """Return the pieces one after the other."""
    return Markup("".join(parts))


def embed_json(content: Any) -> Markup:
    """Return a JSON element for the script of the page; its content cannot end the element."""
    written = json.dumps(content, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    safe = written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(f'<script type="application/json">{safe}</script>')


def embed_trusted(name: str, content: str) -> Markup:
    """Return a style sheet or script of this package unescaped; use it for nothing else."""
    assert f"</{name}" not in content, "it would end its own element"
    return Markup(f"<{name}>{content}</{name}>")


def px(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    written = f"{value:.1f}"
    return written[:-2] if written.endswith(".0") else written


def _attributes(attributes: dict[str, Attribute]) -> str:
    return "".join(
        _attribute(name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items()
    )


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    written = px(value) if isinstance(value, float) else escape(_printable(str(value)))
    return f' {name}="{written}"'


def _printable(content: str) -> str:
    if content.isprintable():
        return content
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "?"
        for character in content
    )


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
