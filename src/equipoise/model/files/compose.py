"""YAML's events to plain values, from the bottom up, with the line of every key and list entry.

Nothing here recurses and no alias is expanded: it stands for the very same value again. So neither
deep nesting nor a bomb of aliases costs more than the file is long.
"""

from __future__ import annotations

import math
from typing import Any, Final

from equipoise.model.files.findings import FOUND_MAX, Finding
from equipoise.model.files.scalar import plain_value
from equipoise.model.files.text import DEPTH_MAX, refuse
from equipoise.model.files.tree import BROKEN
from equipoise.model.files.words import Path, is_sound, printable, twice_shown

ALIASED_MAX: Final = 1_000_000
"""How many values all aliases together may stand for."""

_CORE: Final = "tag:yaml.org,2002:"
_TAGS: Final = {
    "ScalarEvent": (None, "!", _CORE + "str"),
    "SequenceStartEvent": (None, "!", _CORE + "seq"),
    "MappingStartEvent": (None, "!", _CORE + "map"),
}


class _Sign(str):
    """What stands in the place of a key but is none; told from text by its identity."""

    __slots__ = ()


_AWAITED: Final = _Sign("?")
"""The key itself comes next."""
_UNUSABLE: Final = _Sign("?")
"""The key is no text, so that its value is read and forgotten."""
_MERGE: Final = _Sign("<<")
"""The value is a mapping whose entries are to be added."""


class _Open:
    """A list or mapping whose end has not been read."""

    __slots__ = (
        "anchor",
        "is_sound",
        "key",
        "key_line",
        "line",
        "lines",
        "merged",
        "size",
        "value",
    )

    def __init__(self, value: Any, lines: Any, event: Any) -> None:
        self.value = value
        self.lines = lines
        self.is_sound = True
        self.anchor: str | None = event.anchor
        self.line: int = event.start_mark.line + 1
        self.key: str = _AWAITED
        self.key_line = 0
        self.merged: list[tuple[Any, int]] = []
        self.size = 1
        """How many values it stands for, with its aliases expanded."""

    @property
    def awaits_key(self) -> bool:
        return self.key is _AWAITED and type(self.value) is dict


class Composer:
    """Takes the events of a file with one document in it, one at a time."""

    def __init__(self, source: str) -> None:
        self.root: Any = None
        self.documents = 0
        self.findings: list[Finding] = []
        self._source = source
        self._open: list[_Open] = []
        self._anchors: dict[str, Any] = {}
        self._lines: dict[int, Any] = {}  # by the identity of the list or mapping, as are the sizes
        self._sizes: dict[int, int] = {}
        self._root_line = 1
        self._read = 0
        self._merged = 0

    def line_of(self, path: Path) -> int | None:
        """The line of a key or list entry, or of the nearest thing around it that exists."""
        node, line = self.root, self._root_line
        for step in path:
            lines: Any = self._lines.get(id(node)) if isinstance(node, dict | list) else None
            steps = range(len(lines)) if isinstance(lines, list) else lines or ()
            if step not in steps:
                break
            line, node = lines[step], node[step]
        return line

    @property
    def open_line(self) -> int | None:
        """The line where the innermost list or mapping starts whose end has not been read."""
        return self._open[-1].line if self._open else None

    def take(self, name: str, event: Any) -> None:
        """Take one event of the class of that name."""
        if name == "ScalarEvent":
            self._take_scalar(event)
        elif name in ("SequenceStartEvent", "MappingStartEvent"):
            self._take_start(name, event)
        elif name in ("SequenceEndEvent", "MappingEndEvent"):
            self._take_end()
        elif name == "AliasEvent":
            self._take_alias(event)
        elif name == "DocumentStartEvent":
            self.documents += 1
            if self.documents > 1:
                what = "a second document starts here"
                refuse(self._source, what, "one document in one file", event.start_mark.line + 1)

    def _take_scalar(self, event: Any) -> None:
        line: int = event.start_mark.line + 1
        top = self._open[-1] if self._open else None
        is_bare = event.tag is None and event.implicit[0]
        is_allowed = self._check_tag("ScalarEvent", event)
        if top is not None and top.awaits_key:
            value = event.value
            is_merge = is_bare and value == _MERGE
            self._put_key(top, _MERGE if is_merge else value, line)
        else:
            value = self._scalar(event, is_bare, line) if is_allowed else BROKEN
            self._put(value, 1, line)
        if event.anchor is not None:
            self._anchors[event.anchor] = value

    def _scalar(self, event: Any, is_bare: bool, line: int) -> Any:
        if not is_sound(event.value):
            self._find("the text has half a character in it", "no \\ud800 to \\udfff", line)
            return BROKEN
        if not is_bare:
            return event.value
        value = plain_value(event.value)
        if type(value) is float and not math.isfinite(value):
            self._find(f"{event.value[:20]} is not a finite number", "write one that is", line)
            return BROKEN
        return value

    def _take_start(self, name: str, event: Any) -> None:
        opened = _Open([], [], event) if name == "SequenceStartEvent" else _Open({}, {}, event)
        opened.is_sound = self._check_tag(name, event)
        self._lines[id(opened.value)] = opened.lines
        self._open.append(opened)
        if event.anchor is not None:
            self._anchors[event.anchor] = opened
        if len(self._open) > DEPTH_MAX:
            what = f"nested deeper than {DEPTH_MAX} levels"
            refuse(self._source, what, "take the brackets apart", opened.line)

    def _take_end(self) -> None:
        closed = self._open.pop()
        for source, line in closed.merged:
            self._merge(closed, source, line)
        if closed.anchor is not None and self._anchors[closed.anchor] is closed:
            self._anchors[closed.anchor] = closed.value
        self._sizes[id(closed.value)] = closed.size
        self._put(closed.value if closed.is_sound else BROKEN, closed.size, closed.line)

    def _take_alias(self, event: Any) -> None:
        line: int = event.start_mark.line + 1
        name = event.anchor
        value = self._anchors.get(name, BROKEN)
        if name not in self._anchors:
            self._find(f"the alias *{name} has no anchor before it", f"define &{name} first", line)
        elif isinstance(value, _Open):
            value = BROKEN
            self._find(f"the alias *{name} lies within its own anchor", "take it out", line)
        self._put(value, self._sizes.get(id(value), 1), line)

    def _put(self, value: Any, size: int, line: int) -> None:
        """Give a finished value to the list or mapping around it."""
        self._read += 1
        if not self._open:
            self.root, self._root_line = value, line
            return
        top = self._open[-1]
        if top.key is _MERGE:
            self._merged += size  # what it adds to the size is known when it is merged
        else:
            top.size += size
        if max(self._merged, top.size - self._read) > ALIASED_MAX:
            what = f"the aliases stand for more than {ALIASED_MAX} values"
            refuse(self._source, what, "write the values out, or use fewer aliases", line)
        if type(top.value) is list:
            top.value.append(value)
            top.lines.append(line)
        elif top.key is _AWAITED:
            self._put_key(top, value, line)
        else:
            self._put_value(top, value)

    def _put_key(self, top: _Open, key: Any, line: int) -> None:
        top.key_line = line
        if isinstance(key, str) and is_sound(key):
            top.key = key
            return
        self._find("a key must be text", "write it as one word, or in quotes", line)
        top.key = _UNUSABLE

    def _put_value(self, top: _Open, value: Any) -> None:
        key, top.key = top.key, _AWAITED
        if key is _MERGE:
            sources = value if type(value) is list else [value]
            top.merged += [(source, top.key_line) for source in sources]
        elif key is _UNUSABLE:
            return
        elif key in top.value:
            what = twice_shown(top.lines[key], top.key_line)
            self._find(what, "keep one", top.lines[key], (*self._path(), key))
        else:
            top.value[key] = value
            top.lines[key] = top.key_line

    def _merge(self, closed: _Open, source: Any, line: int) -> None:
        """Add the entries of another mapping, where this one has none of its own."""
        if type(source) is not dict:
            if source is not BROKEN:
                self._find("<< takes a mapping, or a list of them", "name an alias", line)
            return
        for key, value in source.items():
            if key not in closed.value:
                closed.value[key] = value
                closed.lines[key] = self._lines[id(source)][key]
                closed.size += self._sizes.get(id(value), 1)

    def _check_tag(self, name: str, event: Any) -> bool:
        if event.tag in _TAGS[name]:
            return True
        tag = event.tag.replace(_CORE, "!!")
        line = event.start_mark.line + 1
        self._find(f"the tag {printable(tag)} is not allowed", "leave the tag out", line)
        return False

    def _find(self, what: str, cure: str, line: int, path: Path | None = None) -> None:
        """Note what is wrong, at the place that is being read if no other is given."""
        if len(self.findings) < FOUND_MAX:
            at = self._path() if path is None else path
            self.findings.append(Finding(at, what, cure, line=line))

    def _path(self) -> Path:
        return tuple(
            len(part.value) if type(part.value) is list else str(part.key)
            for part in self._open
            if part.key is not _AWAITED or type(part.value) is list
        )
