"""YAML's scalars, both ways: what plain text stands for, and how a value is written.

Reading follows the core schema of YAML 1.2, so that ``state: on`` is text. Writing puts quotes
around all that YAML 1.1 would take for something else, so that older tools read the same.
"""

from __future__ import annotations

import math
import re
from typing import Final

from equipoise.model.files.words import quoted

Scalar = str | int | float | bool | None

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
"""Python reads no more, for fear of the time it takes; such a number is out of every range."""

# Words with single blanks between them, none of which can start a comment or end a key.
_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*")
_OLD_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def plain_value(text: str) -> Scalar:
    """Say what a scalar without quotes stands for."""
    if text in _WORDS:
        return _WORDS[text]
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


def scalar_text(value: Scalar) -> str:
    """Write a scalar so that YAML 1.1 and 1.2 both read it back as it is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        bare = _BARE.fullmatch(value) and value.lower() not in _OLD_WORDS
        return value if bare else quoted(value)
    if isinstance(value, float):
        return _float_text(value)
    return str(value)


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    digits, e, exponent = repr(value).partition("e")
    # YAML 1.1 takes 1e+16 for text because it misses the point.
    return digits + ("" if "." in digits else ".0") + e + exponent
