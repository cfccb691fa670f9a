"""From bytes to the records of a file; and when that fails, everything that is wrong with it."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from equipoise.errors import InvalidInput
from equipoise.model.files.findings import Enough, Findings
from equipoise.model.files.json_tree import read_json
from equipoise.model.files.shape import examine
from equipoise.model.files.text import Language, check_size_of, refuse, text_of

F = TypeVar("F", bound=msgspec.Struct)

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def decoded(content: bytes, source: str, form: type[F]) -> F:
    """Decode a file at full speed, or say what is wrong with its shape.

    Of a key that is given twice the last one counts, as it does for BtrPlace: programs write these
    files, and to look for doubled keys would take several times as long as all the rest.
    """
    check_size_of(len(content), source, Language.JSON)
    text_of(content, source)
    try:
        made: F = _decoder(form).decode(content.removeprefix(BYTE_ORDER_MARK))
        return made
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        _explain(content, source, form, str(error))


def raise_if_any(found: Findings, content: bytes, source: str) -> None:
    """Say all that was found, each with its line, which costs another look at the file."""
    if found:
        lines = read_json(text_of(content, source), source)
        raise InvalidInput(source, found.problems(lines.line_of))


@cache
def _decoder(form: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(form)


def _explain(content: bytes, source: str, form: type, verdict: str) -> NoReturn:
    tree = read_json(text_of(content, source), source)
    found = Findings(tree.findings)
    with suppress(Enough):
        examine(tree.root, form, found)
    if not found:
        # Where two decoders differ, such as NaN in a place that nobody asks for.
        refuse(source, f"this is not JSON: {verdict}", "let BtrPlace write it again")
    raise InvalidInput(source, found.problems(tree.line_of))
