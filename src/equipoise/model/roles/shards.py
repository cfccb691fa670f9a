"""A frozen map of many entries of which few change: a changed copy shares almost all of it.

``FrozenMap`` is copied as a whole, which is quick, but not for ten thousand entries at every event.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar
from zlib import crc32

V = TypeVar("V")
K = TypeVar("K", bound=str)

_COUNT: Final = 128
_EMPTY: Final[tuple[dict[Any, Any], ...]] = ({},) * _COUNT


class Shards(Mapping[K, V], Generic[K, V]):
    """A map from names to values, in an order that depends on the names alone."""

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[dict[K, V], ...] = _EMPTY) -> None:
        self._parts = parts

    def put(self, key: K, value: V) -> Shards[K, V]:
        """A copy in which one entry is added or replaced."""
        place = crc32(key.encode()) % _COUNT
        part = {**self._parts[place], key: value}
        return Shards((*self._parts[:place], part, *self._parts[place + 1 :]))

    def drop(self, key: K) -> Shards[K, V]:
        """A copy without one entry."""
        place = crc32(key.encode()) % _COUNT
        part = {name: value for name, value in self._parts[place].items() if name != key}
        return Shards((*self._parts[:place], part, *self._parts[place + 1 :]))

    def __getitem__(self, key: K) -> V:
        return self._parts[crc32(key.encode()) % _COUNT][key]

    def get(self, key: K, default: Any = None) -> Any:
        """The value of a name, or the default."""
        return self._parts[crc32(key.encode()) % _COUNT].get(key, default)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._parts[crc32(key.encode()) % _COUNT]

    def __iter__(self) -> Iterator[K]:
        for part in self._parts:
            yield from sorted(part)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Shards({dict(self.items())})"

    def items(self) -> ItemsView[K, V]:
        """All entries."""
        return {name: self[name] for name in self}.items()
