"""Ids, generated names and times of objects: all from counters, so that two runs are equal."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

# Without vowels, so that no generated name is a word.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_GENERATED_MAX: Final = 58
_DAY_S: Final = 86_400


class Identities:
    """The source of ids and names. The same seed and the same calls give the same ones."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._uids: dict[str, int] = {}
        self._names: dict[str, int] = {}

    def uid(self, of: str, *, drawn: bool = True) -> str:
        """Return an id in the form of a UUID; one that is not drawn is not used up.

        ``of`` names the collection and the object, so that an object has the same id whatever else
        was created: a replay leaves out the events that schedulers write.
        """
        count = self._uids.get(of, 0)
        digest = blake2b(f"{self._seed}/uid/{of}/{count}".encode(), digest_size=16).digest()
        if drawn:
            self._uids[of] = count + 1
        text = digest.hex()
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"

    def name(self, prefix: str) -> str:
        """Return a name for ``generateName``."""
        count = self._names.get(prefix, 0)
        digest = blake2b(f"{self._seed}/name/{prefix}/{count}".encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        self._names[prefix] = count + 1
        suffix = ""
        for _ in range(_SUFFIX_LENGTH):
            number, index = divmod(number, len(_LETTERS))
            suffix += _LETTERS[index]
        return prefix[:_GENERATED_MAX] + suffix


def rfc3339(wall_ms: int) -> str:
    """Return a time of day with seconds, as ``creationTimestamp`` has it."""
    seconds = wall_ms // 1000
    return f"{_date(seconds // _DAY_S)}T{_clock(seconds % _DAY_S)}Z"


def _clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def _date(day: int) -> str:
    """Return the date of a day since 1970, in the Gregorian calendar."""
    # Years begin in March here, so that the leap day is the last one; an era has 400 years.
    shifted = day + 719_468
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_index = (5 * day_of_year + 2) // 153
    day_of_month = day_of_year - (153 * month_index + 2) // 5 + 1
    month = month_index + 3 if month_index < 10 else month_index - 9  # noqa: PLR2004
    year = era * 400 + year_of_era + (month <= 2)  # noqa: PLR2004
    return f"{year:04}-{month:02}-{day_of_month:02}"
