"""Sets of host numbers: one bit per host in an integer, and texts of intervals such as ``0-3 7``.

Integers of Python have any length, and their operations run at the speed of C. So the union of two
sets of 5,000 hosts takes less time than one step of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

_RUNS_TRIED: Final = 4
"""After so many runs of neighbours, ``lowest_bits`` bisects: faster if the hosts are scattered."""


_SPARE_FEW: Final = 3
"""Up to so many members too many are taken away one by one."""


def bits_of(hosts: Iterable[int]) -> int:
    """Return the set of these numbers."""
    bits = 0
    for number in hosts:
        bits |= 1 << number
    return bits


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """Yield the first number of each run of neighbours, and the first one after it."""
    while bits:
        low = bits & -bits
        carried = bits + low  # the carry ends at the first bit after the run
        run = bits & ~carried
        yield low.bit_length() - 1, run.bit_length()
        bits ^= run


def hosts_of(bits: int) -> tuple[int, ...]:
    """Return the numbers in ascending order."""
    carried = bits + (bits & -bits)
    if not bits & carried:  # one run, as most often: the carry leaves none of its bits
        return tuple(range((bits & -bits).bit_length() - 1, bits.bit_length())) if bits else ()
    numbers: list[int] = []
    for first, end in _runs(bits):
        numbers.extend(range(first, end))
    return tuple(numbers)


def lowest_bits(bits: int, count: int) -> int:
    """Return the ``count`` lowest members of a set that has at least so many."""
    spare = bits.bit_count() - count
    if spare <= _SPARE_FEW:
        for _ in range(spare):
            bits ^= 1 << (bits.bit_length() - 1)
        return bits
    if count == 1:
        return bits & -bits
    taken = 0
    rest = bits
    for _ in range(_RUNS_TRIED):
        low = rest & -rest
        run = rest & ~(rest + low)
        size = run.bit_count()
        if size >= count:
            return taken | ((low << count) - low)
        taken |= run
        rest ^= run
        count -= size
    # The smallest length whose lower part has enough members.
    low_end, high_end = 0, rest.bit_length()
    while low_end < high_end:
        middle = (low_end + high_end) // 2
        if (rest & ((1 << middle) - 1)).bit_count() < count:
            low_end = middle + 1
        else:
            high_end = middle
    return taken | (rest & ((1 << low_end) - 1))


def format_host_set(hosts: Iterable[int]) -> str:
    """Return the canonical text: disjoint, maximal, ascending intervals."""
    numbers = tuple(hosts)
    return str(numbers[0]) if len(numbers) == 1 else format_bits(bits_of(numbers))


def format_bits(bits: int) -> str:
    """Return the canonical text of a set of bits."""
    return " ".join(
        str(first) if first + 1 == end else f"{first}-{end - 1}" for first, end in _runs(bits)
    )


_HOSTS_MAX: Final = 10_000_000
"""A larger number is a mistake, and its set would fill the memory."""
_DIGITS: Final = len(str(_HOSTS_MAX))


def parse_host_set(text: str) -> tuple[int, ...]:
    """Return the hosts of a text, ascending and once each; ``ValueError`` for any other text."""
    if text.isdecimal() and len(text) < _DIGITS:
        return (int(text),)  # one host, which is the most frequent text
    hosts: set[int] = set()
    for part in text.replace(",", " ").split():
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part!r:.60} is neither a number nor an interval")
        low = int(first)
        high = int(last) if dash else low
        if low > high:
            raise ValueError(f"{part!r} ends before it begins")
        if high > _HOSTS_MAX:
            raise ValueError(f"{part!r} has a number above {_HOSTS_MAX}")
        hosts.update(range(low, high + 1))
    return tuple(sorted(hosts))


class FreeHosts:
    """The hosts that a job can be given now. Jobs receive the lowest numbers first."""

    __slots__ = ("asleep", "available", "bits", "count", "delay_s", "everything")

    def __init__(self, count: int) -> None:
        self.bits = (1 << count) - 1
        self.count = count
        self.everything = self.bits
        self.available = self.bits
        """All hosts that are in service, free or not."""
        self.asleep = 0
        """Hosts that a job would have to wait for: they sleep, or they are switching."""
        self.delay_s: Callable[[int], float] = _no_delay
        """Returns how long a job would wait until all these hosts are awake."""

    def __len__(self) -> int:
        return self.count

    def remove(self, bits: int) -> None:
        """Remove hosts, all of which are free."""
        self.bits &= ~bits
        self.count = self.bits.bit_count()

    def add(self, bits: int) -> None:
        """Add hosts that have become free; those out of service stay away."""
        self.bits |= bits & self.available
        self.count = self.bits.bit_count()

    def choose(self, count: int, among: int) -> int:
        """Return so many of these hosts: awake ones first, then the lowest numbers."""
        asleep = self.asleep & among
        if not asleep:
            return lowest_bits(among, count)
        awake = among ^ asleep
        missing = count - awake.bit_count()
        if missing <= 0:
            return lowest_bits(awake, count)
        return awake | lowest_bits(asleep, missing)


def _no_delay(hosts: int) -> float:
    del hosts
    return 0.0
