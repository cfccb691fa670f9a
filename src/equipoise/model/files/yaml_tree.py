"""YAML to a tree, through PyYAML's parser; or one clear sentence about why it cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from equipoise.model.files.compose import Composer
from equipoise.model.files.text import check_printable, refuse
from equipoise.model.files.tree import Tree
from equipoise.model.files.words import printable

if TYPE_CHECKING:
    from yaml import MarkedYAMLError


def read_yaml(text: str, source: str) -> Tree:
    """Read YAML with all that can be found wrong in its values, or refuse what is not YAML."""
    import yaml  # noqa: PLC0415  (a start that reads no YAML does not pay for it)

    check_printable(text, source)
    composer = Composer(source)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        while loader.check_event():
            event = loader.get_event()
            composer.take(type(event).__name__, event)
    except yaml.MarkedYAMLError as error:
        _refuse_syntax(error, text, source, composer.open_line)
    except (yaml.YAMLError, ValueError) as error:  # the slow loader lets some of these through
        refuse(source, f"this is not YAML: {error}", "see the examples")
    finally:
        loader.dispose()
    if composer.documents == 0:
        refuse(source, "the file is empty but for comments", "describe something in it", 1)
    return Tree(composer.root, composer.line_of, composer.findings)


_HINTS: Final = {
    "mapping values are not allowed": "indent alike, and quote text with ': ' in it",
    "could not find expected ':'": "write 'key: value', with a blank behind the colon",
    "did not find expected key": "indent keys of one mapping alike",
    "did not find expected '-' indicator": "indent entries of one list alike",
    "did not find expected ',' or": "close the bracket, with commas between its entries",
    "did not find expected node content": "give a value, or take the bracket or comma out",
    "cannot start any token": "put the text in quotes",
    "undefined tag handle": "leave the tag out",
}
"""The cure by a part of what PyYAML complains about."""


def _refuse_syntax(
    error: MarkedYAMLError, text: str, source: str, open_line: int | None
) -> NoReturn:
    complaint = str(error.problem)
    mark, start = error.problem_mark, error.context_mark
    lines = text.splitlines()
    line = mark.line if mark else 0
    what = f"this is not YAML: {printable(complaint)}"
    cure = next((cure for part, cure in _HINTS.items() if part in complaint), "see the examples")
    if not "".join(lines[line:]).strip():
        begun = start.line + 1 if start and start.line < line else open_line
        what = f"the file ends too early: what starts on line {begun} is not closed"
        cure = "close the bracket or the quotes"
    elif mark and lines[line][mark.column : mark.column + 1] == "\t":
        what, cure = "a tab indents this line", "indent with blanks"
    elif error.context and start and start.line < line:
        what += f" ({printable(error.context)} that starts on line {start.line + 1})"
    refuse(source, what, cure, line + 1)
