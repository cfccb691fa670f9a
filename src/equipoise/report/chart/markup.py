"""Markup: the only door through which text gets into a page, and everything is escaped there.

``Markup`` is made by the functions of this file alone, so that the type checker finds whoever would
put a name or a reason into a page as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any, NewType

Markup = NewType("Markup", str)
Attribute = str | int | float | bool | None

EMPTY = Markup("")


def text(content: object) -> Markup:
    """Let text in: escaped, and without characters that do not print."""
    return Markup(escape(_printable(str(content))))


def tag(name: str, /, *children: Markup, **attributes: Attribute) -> Markup:
    """Make an element; ``class_`` is ``class``, ``data_rows`` is ``data-rows``."""
    return Markup(f"<{name}{_attributes(attributes)}>{''.join(children)}</{name}>")


def void(name: str, /, **attributes: Attribute) -> Markup:
    """Make an element that has no content, such as ``meta`` or ``input``."""
    return Markup(f"<{name}{_attributes(attributes)}>")


def joined(parts: Iterable[Markup]) -> Markup:
    """Put pieces one after the other."""
    return Markup("".join(parts))


def carried(content: Any) -> Markup:
    """Carry figures to the page's script; nothing in them can end the element they are in."""
    written = json.dumps(content, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    safe = written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(f'<script type="application/json">{safe}</script>')


def ours(name: str, content: str) -> Markup:
    """Let in a style sheet or script of this house, as it is. Never anything else."""
    assert f"</{name}" not in content, "it would end its own element"
    return Markup(f"<{name}>{content}</{name}>")


def short(value: float) -> str:
    """Write a coordinate with one digit after the point at most."""
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
    written = short(value) if isinstance(value, float) else escape(_printable(str(value)))
    return f' {name}="{written}"'


def _printable(content: str) -> str:
    if content.isprintable():
        return content
    return "".join(one if one.isprintable() else " " if one.isspace() else "?" for one in content)
