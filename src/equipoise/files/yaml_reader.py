"""YAML to a tree, through PyYAML's parser, with the line of every key and list entry.

Scalars follow the core schema of YAML 1.2, so that ``state: on`` is text. The composer does not
recurse and does not copy what an alias stands for, so that deep nesting and alias bombs cost no
more than the length of the file.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

from equipoise.files.document import (
    DEPTH_MAX,
    SEE_EXAMPLES,
    UNREADABLE,
    ParsedTree,
    check_printable,
    reject_file,
)
from equipoise.model.diagnostics import (
    DIAGNOSTICS_MAX,
    Diagnostic,
    KeyPath,
    describe_duplicate_key,
    is_encodable,
    make_printable,
)

if TYPE_CHECKING:
    from yaml import MarkedYAMLError

YamlScalar = str | int | float | bool | None

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER_STARTS: Final = frozenset("+-.0123456789")
_INT: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_DIGITS_MAX: Final = 4000
"""Python converts no more than 4300 digits. A longer number is out of every range anyway."""


def parse_scalar(text: str) -> YamlScalar:
    """Return the value of a scalar without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    # The empty text is one of the words above. Most scalars are names, which end here.
    if text[0] not in _NUMBER_STARTS:
        return text
    if _INT.fullmatch(text):
        if len(text) > _DIGITS_MAX:
            return -math.inf if text[0] == "-" else math.inf
        return int(text, 0) if text[1:2] in ("o", "x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return text


ALIASED_MAX: Final = 1_000_000
"""The most values that all aliases of a file together may stand for."""

_CORE_SCHEMA: Final = "tag:yaml.org,2002:"
_ALLOWED_TAGS: Final = {
    "ScalarEvent": (None, "!", _CORE_SCHEMA + "str"),
    "SequenceStartEvent": (None, "!", _CORE_SCHEMA + "seq"),
    "MappingStartEvent": (None, "!", _CORE_SCHEMA + "map"),
}


class _KeyMarker(str):
    """Marks the state of a mapping in place of its next key; compared by identity."""

    __slots__ = ()


_KEY_EXPECTED: Final = _KeyMarker("?")
"""The next value is a key."""
_KEY_INVALID: Final = _KeyMarker("?")
"""The key is not text: its value is read and dropped."""
_KEY_MERGE: Final = _KeyMarker("<<")
"""The next value is a mapping, or a list of mappings, to merge into this one."""


class _OpenNode:
    """A list or mapping whose end is not read yet."""

    __slots__ = (
        "anchor",
        "is_valid",
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
        self.is_valid = True
        self.anchor: str | None = event.anchor
        self.line: int = event.start_mark.line + 1
        self.key: str = _KEY_EXPECTED
        self.key_line = 0
        self.merged: list[tuple[Any, int]] = []
        self.size = 1
        """How many values it stands for, with all aliases expanded."""

    @property
    def awaits_key(self) -> bool:
        return self.key is _KEY_EXPECTED and type(self.value) is dict


class YamlComposer:
    """Builds the tree of a file with one document from the events of the parser."""

    def __init__(self, source: str) -> None:
        self.root: Any = None
        self.documents = 0
        self.diagnostics: list[Diagnostic] = []
        self._source = source
        self._open: list[_OpenNode] = []
        self._anchors: dict[str, Any] = {}
        # Lines and sizes are kept by the identity of the list or mapping.
        self._lines: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}
        self._root_line = 1
        self._read = 0
        self._merged = 0

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key or list entry, or of the innermost container that exists."""
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
        """The first line of the innermost list or mapping whose end is not read yet."""
        return self._open[-1].line if self._open else None

    def handle_event(self, name: str, event: Any) -> None:
        """Handle one event of the parser; ``name`` is its class."""
        if name == "ScalarEvent":
            self._handle_scalar(event)
        elif name in ("SequenceStartEvent", "MappingStartEvent"):
            self._handle_start(name, event)
        elif name in ("SequenceEndEvent", "MappingEndEvent"):
            self._handle_end()
        elif name == "AliasEvent":
            self._handle_alias(event)
        elif name == "DocumentStartEvent":
            self.documents += 1
            if self.documents > 1:
                what, line = "a second document starts here", event.start_mark.line + 1
                cure = "write one document in one file"
                reject_file(self._source, what, cure, line, code="syntax-error")

    def _handle_scalar(self, event: Any) -> None:
        line: int = event.start_mark.line + 1
        top = self._open[-1] if self._open else None
        is_bare = event.tag is None and event.implicit[0]
        is_allowed = self._check_tag("ScalarEvent", event)
        if top is not None and top.awaits_key:
            value = event.value
            is_merge = is_bare and value == _KEY_MERGE
            self._put_key(top, _KEY_MERGE if is_merge else value, line)
        else:
            value = self._scalar(event, is_bare, line) if is_allowed else UNREADABLE
            self._put(value, 1, line)
        if event.anchor is not None:
            self._anchors[event.anchor] = value

    def _scalar(self, event: Any, is_bare: bool, line: int) -> Any:
        if not is_encodable(event.value):
            what = "the text has half a character in it"
            self._report(what, "no \\ud800 to \\udfff", line, code="unreadable-file")
            return UNREADABLE
        if not is_bare:
            return event.value
        value = parse_scalar(event.value)
        if type(value) is float and not math.isfinite(value):
            what = f"{event.value[:20]} is not a finite number"
            self._report(what, "write a finite number", line, code="out-of-range")
            return UNREADABLE
        return value

    def _handle_start(self, name: str, event: Any) -> None:
        opened = (
            _OpenNode([], [], event) if name == "SequenceStartEvent" else _OpenNode({}, {}, event)
        )
        opened.is_valid = self._check_tag(name, event)
        self._lines[id(opened.value)] = opened.lines
        self._open.append(opened)
        if event.anchor is not None:
            # Still open: an alias inside would make the tree contain itself.
            self._anchors[event.anchor] = opened
        if len(self._open) > DEPTH_MAX:
            what = f"the file is nested deeper than {DEPTH_MAX} levels"
            cure = "remove levels of brackets"
            reject_file(self._source, what, cure, opened.line, code="too-large")

    def _handle_end(self) -> None:
        closed = self._open.pop()
        for source, line in closed.merged:
            self._merge(closed, source, line)
        if closed.anchor is not None and self._anchors[closed.anchor] is closed:
            self._anchors[closed.anchor] = closed.value
        # By identity: an alias returns the same object, and equal objects may differ in size.
        self._sizes[id(closed.value)] = closed.size
        self._put(closed.value if closed.is_valid else UNREADABLE, closed.size, closed.line)

    def _handle_alias(self, event: Any) -> None:
        line: int = event.start_mark.line + 1
        name = event.anchor
        value = self._anchors.get(name, UNREADABLE)
        if name not in self._anchors:
            what = f"the alias *{name} has no anchor before it"
            self._report(what, f"define &{name} first", line, code="unknown-name")
        elif isinstance(value, _OpenNode):
            value = UNREADABLE
            what = f"the alias *{name} lies within its own anchor"
            self._report(what, "remove it", line, code="cycle")
        self._put(value, self._sizes.get(id(value), 1), line)

    def _put(self, value: Any, size: int, line: int) -> None:
        """Add a complete value to the list or mapping around it."""
        self._read += 1
        if not self._open:
            self.root, self._root_line = value, line
            return
        top = self._open[-1]
        if top.key is _KEY_MERGE:
            self._merged += size  # the mapping grows only when it is merged: see _merge
        else:
            top.size += size
        if max(self._merged, top.size - self._read) > ALIASED_MAX:
            what = f"the aliases stand for more than {ALIASED_MAX} values"
            cure = "write the values out, or use fewer aliases"
            reject_file(self._source, what, cure, line, code="too-large")
        if type(top.value) is list:
            top.value.append(value)
            top.lines.append(line)
        elif top.key is _KEY_EXPECTED:
            self._put_key(top, value, line)
        else:
            self._put_value(top, value)

    def _put_key(self, top: _OpenNode, key: Any, line: int) -> None:
        top.key_line = line
        if isinstance(key, str) and is_encodable(key):
            top.key = key
            return
        cure = "write it as one word, or in quotes"
        self._report("a key must be text", cure, line, code="wrong-type")
        top.key = _KEY_INVALID

    def _put_value(self, top: _OpenNode, value: Any) -> None:
        key, top.key = top.key, _KEY_EXPECTED
        if key is _KEY_MERGE:
            sources = value if type(value) is list else [value]
            top.merged += [(source, top.key_line) for source in sources]
        elif key is _KEY_INVALID:
            return
        elif key in top.value:
            what = describe_duplicate_key(top.lines[key], top.key_line)
            path = (*self._path(), key)
            self._report(what, "keep one", top.lines[key], path, code="duplicate-key")
        else:
            top.value[key] = value
            top.lines[key] = top.key_line

    def _merge(self, closed: _OpenNode, source: Any, line: int) -> None:
        """Add the entries of another mapping that this one does not have."""
        if type(source) is not dict:
            if source is not UNREADABLE:
                what = "<< takes a mapping, or a list of mappings"
                self._report(what, "name an alias of a mapping", line, code="wrong-type")
            return
        for key, value in source.items():
            if key not in closed.value:
                closed.value[key] = value
                closed.lines[key] = self._lines[id(source)][key]
                closed.size += self._sizes.get(id(value), 1)

    def _check_tag(self, name: str, event: Any) -> bool:
        if event.tag in _ALLOWED_TAGS[name]:
            return True
        tag = event.tag.replace(_CORE_SCHEMA, "!!")
        line = event.start_mark.line + 1
        what = f"the tag {make_printable(tag)} is not allowed"
        self._report(what, "remove the tag", line, code="unsupported-feature")
        return False

    def _report(
        self, what: str, cure: str, line: int, path: KeyPath | None = None, *, code: str
    ) -> None:
        """Add a problem; without a path, at the value that is being read."""
        if len(self.diagnostics) < DIAGNOSTICS_MAX:
            at = self._path() if path is None else path
            self.diagnostics.append(Diagnostic(at, what, cure, line=line, code=code))

    def _path(self) -> KeyPath:
        return tuple(
            len(part.value) if type(part.value) is list else str(part.key)
            for part in self._open
            if part.key is not _KEY_EXPECTED or type(part.value) is list
        )


def read_yaml(text: str, source: str) -> ParsedTree:
    """Return the tree of a YAML text with the problems of its values; reject what is not YAML."""
    import yaml  # noqa: PLC0415  (the import is slow, and many commands read no YAML)

    check_printable(text, source)
    composer = YamlComposer(source)
    # The C parser is many times as fast; some platforms have only the Python one.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        while loader.check_event():
            event = loader.get_event()
            composer.handle_event(type(event).__name__, event)
    except yaml.MarkedYAMLError as error:
        _reject_syntax(error, text, source, composer.open_line)
    except (yaml.YAMLError, ValueError) as error:  # only the pure Python loader raises these
        reject_file(source, f"this is not YAML: {error}", SEE_EXAMPLES, code="syntax-error")
    finally:
        loader.dispose()
    if composer.documents == 0:
        what = "the file has only comments"
        reject_file(source, what, SEE_EXAMPLES, 1, code="empty-value")
    return ParsedTree(composer.root, composer.line_of, composer.diagnostics)


_CURES: Final = {
    "mapping values are not allowed": "indent all keys alike, and quote text that has ': ' in it",
    "could not find expected ':'": "write 'key: value', with a blank after the colon",
    "did not find expected key": "indent all keys of a mapping alike",
    "did not find expected '-' indicator": "indent all entries of a list alike",
    "did not find expected ',' or": "close the bracket, and put commas between its entries",
    "did not find expected node content": "write a value, or remove the bracket or comma",
    "cannot start any token": "put the text in quotes",
    "undefined tag handle": "remove the tag",
}
"""The cure for each message of PyYAML, by a part of the message."""


def _reject_syntax(
    error: MarkedYAMLError, text: str, source: str, open_line: int | None
) -> NoReturn:
    message = str(error.problem)
    mark, start = error.problem_mark, error.context_mark
    lines = text.splitlines()
    line = mark.line if mark else 0
    what = f"this is not YAML: {make_printable(message)}"
    cure = next((cure for part, cure in _CURES.items() if part in message), SEE_EXAMPLES)
    if not "".join(lines[line:]).strip():
        first_line = start.line + 1 if start and start.line < line else open_line
        what = f"the file ends too early: what starts on line {first_line} is not closed"
        cure = "close the bracket or the quotes"
    elif mark and lines[line][mark.column : mark.column + 1] == "\t":
        what, cure = "a tab indents this line", "indent with blanks"
    elif error.context and start and start.line < line:
        what += f" ({make_printable(error.context)} that starts on line {start.line + 1})"
    reject_file(source, what, cure, line + 1, code="syntax-error")
