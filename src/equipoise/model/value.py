"""Base types: a frozen record, a frozen map, a sharded map for many entries, and disjoint sets.

``pause_gc`` stops the garbage collector while many of them are created.
"""

from __future__ import annotations

import gc
from collections.abc import Hashable, ItemsView, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, NoReturn, Self, TypeVar, dataclass_transform
from zlib import crc32

import msgspec

K = TypeVar("K")
V = TypeVar("V")


class _KeywordOnly(msgspec.StructMeta):
    """Sets ``kw_only`` for every subclass, because msgspec does not inherit it.

    Without it a field with a default could not precede a field without one.
    """

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True} | options)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(
    msgspec.Struct,
    metaclass=_KeywordOnly,
    frozen=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """A frozen record. ``value.but(field=new)`` returns a changed copy.

    A frozen record cannot refer to itself, so ``gc=False`` spares the garbage collector its scan.

    The encoder writes all fields, also defaults. So equal values have equal bytes, and a journal
    keeps its meaning when a default changes.
    """

    def but(self, **changes: Any) -> Self:
        """Return a copy with the given fields changed."""
        return msgspec.structs.replace(self, **changes)


class FrozenMap(dict[K, V]):
    """A dict that cannot be changed. It reads as fast as a dict and keeps the insertion order.

    ``MappingProxyType`` cannot be pickled, and copying it is slow.
    """

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("a FrozenMap cannot be changed; create a new one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    # Pickle would fill the copy of a dict subclass through ``__setitem__``, which refuses.
    def __reduce__(self) -> tuple[type[Self], tuple[dict[K, V]]]:
        return type(self), (dict(self),)

    def but(self, changes: Mapping[K, V]) -> FrozenMap[K, V]:
        """Return a copy in which ``changes`` are added or replaced."""
        return FrozenMap({**self, **changes})


ShardValue = TypeVar("ShardValue")
ShardKey = TypeVar("ShardKey", bound=str)

# 128 shards: a change of a map of 10,000 entries copies about 80 of them and the tuple of shards.
_SHARD_COUNT: Final = 128
_EMPTY_SHARDS: Final[tuple[dict[Any, Any], ...]] = ({},) * _SHARD_COUNT


class ShardedMap(Mapping[ShardKey, ShardValue], Generic[ShardKey, ShardValue]):
    """An immutable map whose changed copies share most entries.

    A copy with one change costs one of 128 shards instead of the whole map. The order of iteration
    depends only on the keys, not on the history of changes.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[dict[ShardKey, ShardValue], ...] = _EMPTY_SHARDS) -> None:
        self._parts = parts

    def put(self, key: ShardKey, value: ShardValue) -> ShardedMap[ShardKey, ShardValue]:
        """Return a copy in which one entry is added or replaced."""
        # crc32, not hash(): the hash of a str differs between processes, and so would the order.
        number = crc32(key.encode()) % _SHARD_COUNT
        shard = {**self._parts[number], key: value}
        return ShardedMap((*self._parts[:number], shard, *self._parts[number + 1 :]))

    def drop(self, key: ShardKey) -> ShardedMap[ShardKey, ShardValue]:
        """Return a copy without one entry."""
        number = crc32(key.encode()) % _SHARD_COUNT
        shard = {name: value for name, value in self._parts[number].items() if name != key}
        return ShardedMap((*self._parts[:number], shard, *self._parts[number + 1 :]))

    def __getitem__(self, key: ShardKey) -> ShardValue:
        return self._parts[crc32(key.encode()) % _SHARD_COUNT][key]

    def get(self, key: ShardKey, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        return self._parts[crc32(key.encode()) % _SHARD_COUNT].get(key, default)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._parts[crc32(key.encode()) % _SHARD_COUNT]

    def __iter__(self) -> Iterator[ShardKey]:
        for part in self._parts:
            yield from sorted(part)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ShardedMap({dict(self.items())})"

    def items(self) -> ItemsView[ShardKey, ShardValue]:
        """Return all entries, in the order of iteration."""
        return {name: self[name] for name in self}.items()


@contextmanager
def pause_gc() -> Iterator[None]:
    """Pause the garbage collector: its scans take longer than the creation of many values."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


Item = TypeVar("Item", bound=Hashable)


class DisjointSets(Generic[Item]):
    """Disjoint classes of items. Elements that are no items can connect items."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = tuple(items)
        self._root: dict[Item, Item] = {item: item for item in self._items}

    def find(self, element: Item) -> Item:
        """Return the representative of the class of an element."""
        root = self._root
        while root.setdefault(element, element) != element:
            # Path halving keeps the chains short, so a search is nearly constant.
            root[element] = root[root[element]]
            element = root[element]
        return element

    def join(self, left: Item, right: Item) -> bool:
        """Merge two classes. Return whether they were different."""
        first, second = self.find(left), self.find(right)
        # The left class keeps its representative. Callers rely on it: the first item names a group.
        self._root[second] = first
        return first != second

    def classes(self) -> dict[Item, list[Item]]:
        """Return the items of each class by representative, in the order of the items."""
        members: dict[Item, list[Item]] = {}
        for item in self._items:
            members.setdefault(self.find(item), []).append(item)
        return members
