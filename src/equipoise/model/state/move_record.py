"""What a cluster remembers of its migrations, and what follows from it: speeds and back-off.

Everything here is a pure function of the record, which the transition builds from the journal. So a
replay, and advice that reads a journal, learn the same as the loop that ran.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Final, NamedTuple

from equipoise.model.quantity import HostId, VmId

DAY_MS: Final = 24 * 60 * 60 * 1000
MOVES_REMEMBERED: Final = 16
"""The most earlier moves of one VM that are remembered."""
BACK_OFF_MAX_MS: Final = DAY_MS
"""No failure keeps a VM or a link waiting for longer."""
LINK_FAILURES_MIN: Final = 2
"""One failed migration says something of its VM; from this number on, of the link as well."""


DemandPair = tuple[float, float]
"""CPU in MHz and memory in MiB."""


class LastMove(NamedTuple):
    """The last migration of a VM."""

    ended_ms: int
    source: HostId
    target: HostId
    mib_per_s: float
    """The size of the VM divided by the duration, so it includes all copy rounds."""
    sharing: float = 1.0
    """How many migrations shared the busier of its two links, this one included."""
    demand: DemandPair | None = None
    """What the VM asked for when it ended."""
    demand_total: DemandPair | None = None
    """What all VMs asked for then."""
    earlier_ms: tuple[int, ...] = ()
    """When the earlier migrations of the VM ended, within a day before this one, oldest first."""

    def moves_since(self, at_ms: int) -> int:
        """Return how many migrations of the VM ended after a time, at most a day ago."""
        return sum(ended > at_ms for ended in (*self.earlier_ms, self.ended_ms))


class FailedMoves(NamedTuple):
    """The migrations of a VM that failed in a row; the last one in detail."""

    ended_ms: int
    source: HostId
    target: HostId
    failures: int
    """How many have failed since the last success."""
    mib_per_s_max: float | None
    """The size of the VM divided by the time until it was broken off for being too slow.

    The migration was slower than this. Without a figure, it failed for another reason.
    """
    sharing: float = 1.0


class BackOff(NamedTuple):
    """How long a VM or a link waits after failures."""

    until_ms: int
    failures: int


def with_earlier(move: LastMove, before: LastMove | None) -> LastMove:
    """Return the record of a migration with the earlier ones of its VM within a day."""
    if before is None:
        return move
    times = (*before.earlier_ms, before.ended_ms)
    recent = [at_ms for at_ms in times if at_ms > move.ended_ms - DAY_MS]
    return move._replace(earlier_ms=tuple(recent[-MOVES_REMEMBERED:]))


class MoveSpeeds:
    """The speed of each VM's next migration, as learned from the migrations so far.

    A link has a speed, which its migrations share. The speed of a migration times the number of
    those that shared its link is the speed that it would have had alone.
    """

    def __init__(
        self,
        moves: Mapping[VmId, LastMove],
        failed: Mapping[VmId, FailedMoves],
        parallel: int,
    ) -> None:
        self._moves, self._failed, self._parallel = moves, failed, parallel
        by_host: dict[HostId, list[float]] = defaultdict(list)
        for move in moves.values():
            alone = move.mib_per_s * move.sharing
            by_host[move.source].append(alone)
            by_host[move.target].append(alone)
        self._links = {host: median(speeds) for host, speeds in by_host.items()}

    def __bool__(self) -> bool:
        """Whether anything was learned."""
        return bool(self._moves or self._failed)

    def of(self, vm: VmId, host: HostId | None) -> float | None:
        """Return MiB/s of the next migration of a VM that is on a host; ``None`` if unknown.

        The next migration is assumed to share its links with as many others as the limits allow.
        """
        move = self._moves.get(vm)
        # A VM's own last migration knows its dirty-page rate; the host's median knows only the
        # network.
        if move is not None:
            alone: float | None = move.mib_per_s * move.sharing
        else:
            alone = None if host is None else self._links.get(host)
        return None if alone is None else alone / self._parallel

    def most(self, vm: VmId) -> float | None:
        """Return a speed that the next migration will not reach, because the last one did not.

        Half the speed at which it was broken off: how much of the copy was missing is not known.
        The next one that fails has run for longer, so the speed falls with each failure in a row.
        """
        failed = self._failed.get(vm)
        if failed is None or failed.mib_per_s_max is None:
            return None
        alone = failed.mib_per_s_max * failed.sharing
        return alone / self._parallel / 2


def vm_back_offs(
    failed: Mapping[VmId, FailedMoves], now_ms: int, first_ms: int
) -> dict[VmId, BackOff]:
    """Return the VMs that wait after failed migrations; each failure doubles the wait."""
    waits = {
        vm: BackOff(record.ended_ms + _wait_ms(first_ms, record.failures), record.failures)
        for vm, record in failed.items()
    }
    return {vm: wait for vm, wait in waits.items() if wait.until_ms > now_ms}


def link_back_offs(
    moves: Mapping[VmId, LastMove],
    failed: Mapping[VmId, FailedMoves],
    now_ms: int,
    first_ms: int,
) -> dict[HostId, BackOff]:
    """Return the hosts whose migration link waits: several migrations failed and none succeeded."""
    if not failed:
        return {}
    last_failure: dict[HostId, int] = {}
    for record in failed.values():
        for host in (record.source, record.target):
            last_failure[host] = max(last_failure.get(host, 0), record.ended_ms)
    success = dict.fromkeys(last_failure, -1)
    for move in moves.values():
        for host in (move.source, move.target):
            if host in success:
                success[host] = max(success[host], move.ended_ms)
    failures: dict[HostId, int] = defaultdict(int)
    for record, host in _failures_by_host(failed):
        if record.ended_ms > success[host]:
            failures[host] += 1
    waits = {
        host: BackOff(last_failure[host] + _wait_ms(first_ms, count - LINK_FAILURES_MIN + 1), count)
        for host, count in failures.items()
        if count >= LINK_FAILURES_MIN
    }
    return {host: wait for host, wait in waits.items() if wait.until_ms > now_ms}


def _failures_by_host(failed: Mapping[VmId, FailedMoves]) -> Iterator[tuple[FailedMoves, HostId]]:
    for record in failed.values():
        yield record, record.source
        yield record, record.target


def _wait_ms(first_ms: int, failures: int) -> int:
    """Return the wait after so many failures in a row: doubled with each, up to a day."""
    # The bound on the exponent keeps the number small; the limit applies long before it.
    factor: int = 2 ** min(failures - 1, 32)
    return min(BACK_OFF_MAX_MS, first_ms * factor)
