"""Disjoint sets with union and find: resources that change together, blocks, units."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class DisjointSets(Generic[T]):
    """Disjoint classes of items. Elements that are no items can connect items."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = tuple(items)
        self._root: dict[T, T] = {item: item for item in self._items}

    def find(self, element: T) -> T:
        """Return the representative of the class of an element."""
        root = self._root
        while root.setdefault(element, element) != element:
            # Path halving keeps the chains short, so a search is nearly constant.
            root[element] = root[root[element]]
            element = root[element]
        return element

    def join(self, left: T, right: T) -> bool:
        """Merge two classes. Return whether they were different."""
        first, second = self.find(left), self.find(right)
        self._root[second] = first
        return first != second

    def classes(self) -> dict[T, list[T]]:
        """Return the items of each class by representative, in the order of the items."""
        members: dict[T, list[T]] = {}
        for item in self._items:
            members.setdefault(self.find(item), []).append(item)
        return members
