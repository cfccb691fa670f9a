"""A page, read as a browser reads it: elements with their attributes and text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "hr", "link", "img"}


@dataclass
class Element:
    """One element."""

    name: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def all(self, name: str | None = None, kind: str | None = None) -> list[Element]:
        """Every element inside, of a name or a class if one is given."""
        found = []
        for child in self.children:
            fits = name in (None, child.name)
            if fits and (kind is None or kind in child.attributes.get("class", "").split()):
                found.append(child)
            found += child.all(name, kind)
        return found

    def one(self, name: str | None = None, kind: str | None = None) -> Element:
        """The only such element."""
        found = self.all(name, kind)
        assert len(found) == 1, f"{len(found)} of {name} {kind}"
        return found[0]

    @property
    def text(self) -> str:
        """All words inside, without those for scripts."""
        inner = [child.text for child in self.children if child.name not in {"script", "style"}]
        return " ".join([*self.words, *inner]).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("document", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].name == tag, f"{self._open[-1].name} ends as {tag}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._open[-1].words.append(data.strip())

    def close(self) -> None:
        super().close()
        assert self._open == [self.root], f"{self._open[-1].name} never ends"


def parsed(page: str) -> Element:
    """Read a page; one whose elements do not nest is refused."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.root
