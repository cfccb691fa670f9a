"""Sets of host numbers, and their text of closed intervals such as ``0-3 7``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice


def format_host_set(hosts: Iterable[int]) -> str:
    """Return the canonical text: disjoint, maximal, ascending intervals."""
    parts: list[str] = []
    numbers = sorted(set(hosts))
    index = 0
    while index < len(numbers):
        first = last = numbers[index]
        while index + 1 < len(numbers) and numbers[index + 1] == last + 1:
            index += 1
            last = numbers[index]
        parts.append(str(first) if first == last else f"{first}-{last}")
        index += 1
    return " ".join(parts)


def parse_host_set(text: str) -> tuple[int, ...]:
    """Return the hosts of a text, ascending and once each; ``ValueError`` for any other text."""
    hosts: set[int] = set()
    for part in text.replace(",", " ").split():
        first, dash, last = part.partition("-")
        low = int(first)
        high = int(last) if dash else low
        if low > high:
            raise ValueError(f"{part!r} ends before it begins")
        hosts.update(range(low, high + 1))
    return tuple(sorted(hosts))


class FreeHosts:
    """The hosts that no job uses. Jobs receive the lowest numbers first.

    A sorted list of numbers: taking the first is one slice, and giving back merges two sorted
    lists, both at the speed of C. Hosts are few (thousands) beside jobs (millions).
    """

    def __init__(self, count: int) -> None:
        self._numbers = list(range(count))

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def lowest(self, count: int, without: frozenset[int] = frozenset()) -> tuple[int, ...]:
        """Return the lowest numbers that are not in ``without``, or fewer if there are fewer."""
        if not without:
            return tuple(self._numbers[:count])
        return tuple(islice((host for host in self._numbers if host not in without), count))

    def remove(self, hosts: tuple[int, ...]) -> None:
        """Remove these hosts, which are free."""
        if tuple(self._numbers[: len(hosts)]) == hosts:
            del self._numbers[: len(hosts)]
            return
        gone = set(hosts)
        self._numbers = [host for host in self._numbers if host not in gone]

    def give_back(self, hosts: Sequence[int]) -> None:
        """Add hosts, in ascending order, that were taken."""
        if not self._numbers or hosts[0] > self._numbers[-1]:
            self._numbers.extend(hosts)
        else:
            self._numbers = list(merge(self._numbers, hosts))
