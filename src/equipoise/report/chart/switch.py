"""A switch over a picture; it works by the style sheet alone, without a script."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.report.chart.markup import Markup, joined, tag, text, void


def switched(name: str, views: Sequence[str], picture: Markup) -> Markup:
    """Choose among the parts of a picture that have the classes ``view v0``, ``view v1``, ...

    ``name`` tells the switch from others in the page.
    """
    return tag("div", *(_choice(name, *each) for each in enumerate(views)), picture,
               class_="switched")  # fmt: skip


def _choice(name: str, place: int, words: str) -> Markup:
    given = f"{name}-{place}"
    choice = void(
        "input", type="radio", name=name, id=given, class_=f"v{place}", checked=place == 0
    )
    return joined([choice, tag("label", text(words), for_=given)])
