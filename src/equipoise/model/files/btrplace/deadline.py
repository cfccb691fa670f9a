"""When a migration must have ended."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SECONDS_MAX: Final = 10**9
_PARTS: Final = re.compile(r"[0-9]{1,9}(?::[0-9]{1,9}){0,2}")


class Unclear(NamedTuple):
    """Why a moment cannot be told."""

    what: str
    cure: str


def milliseconds(timestamp: int | str) -> int | Unclear:
    """Say after how many milliseconds of the plan it is, if that can be told.

    ``+H:M:S``, ``+M:S``, ``+S`` and a number of seconds count from the start of the plan.
    """
    text = str(timestamp).strip()
    parts = text.removeprefix("+")
    if not _PARTS.fullmatch(parts):
        what = "the moment cannot be read"
        return Unclear(what, "hours, minutes and seconds from the start of the plan: +0:10:00")
    if ":" in parts and parts == text:
        what = (
            f"without a + {text} is a time of day, "
            "and nobody knows at what time the plan will start"
        )
        return Unclear(what, "count from the start of the plan: +0:10:00 is after ten minutes")
    seconds = 0
    for part in parts.split(":"):
        seconds = 60 * seconds + int(part)
    if seconds > _SECONDS_MAX:
        return Unclear(f"{seconds} seconds are too many", f"at most {_SECONDS_MAX}")
    return 1000 * seconds
