"""Settling: the fewest moves after which nothing is wrong any more.

Every repair must move, for any one problem, one of the few VMs it is about. So a search that takes
one problem after the other and tries each of those VMs on each host misses none. It is asked for
ever more moves, beginning with the least that could do; what it finds first is therefore the
fewest, unless it runs out of patience and takes what comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from equipoise.balance.mending.standing import Problem, Standing
from equipoise.model.quantity import HostId, VmId

PATIENCE: Final = 20_000
"""How many placements are tried for the fewest moves, before any repair will do."""
DEEPER: Final = 8
"""How many moves more than the least are tried for the fewest."""


class Choice(NamedTuple):
    """A VM that is put onto a host."""

    vm: VmId
    host: HostId
    before: HostId | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What is to be done, and what cannot be."""

    choices: tuple[Choice, ...]
    left: tuple[Problem, ...]
    """The problems that no search could mend."""
    fewest: bool
    """Whether no repair has fewer moves."""


def settle(standing: Standing, patience: int = PATIENCE) -> Settlement:
    """Mend all that is wrong or, if that cannot be, one problem after the other."""
    found, fewest = _solved(standing, patience)
    if found is not None:
        return Settlement(tuple(found), (), fewest=fewest)
    done: list[Choice] = []
    left: list[Problem] = []
    wrong = [problem for problem in standing.problems if problem not in standing.given_up]
    standing.given_up.update(wrong)
    for problem in wrong:
        standing.given_up.discard(problem)
        if problem not in standing.problems:
            continue
        found, _ = _solved(standing, max(200, patience // len(wrong)))
        if found is None:
            standing.given_up.add(problem)
            left.append(problem)
        else:
            done += found
    # What was given up may have been mended with something else.
    left = [problem for problem in left if problem in standing.problems]
    return Settlement(tuple(_merged(done)), tuple(left), fewest=False)


def _merged(choices: list[Choice]) -> list[Choice]:
    """Each VM once: where it was at first, and where it is in the end."""
    first: dict[VmId, HostId | None] = {}
    last: dict[VmId, HostId] = {}
    for one in choices:
        first.setdefault(one.vm, one.before)
        last[one.vm] = one.host
    return [Choice(vm, host, first[vm]) for vm, host in last.items() if host != first[vm]]


def _solved(standing: Standing, patience: int) -> tuple[list[Choice] | None, bool]:
    """Choices that mend all that is not given up, and whether they are the fewest."""
    least = standing.least_moves()
    search = _Search(standing, patience)
    for limit in range(least, least + DEEPER + 1):
        found = search.run(limit)
        if found is not None:
            return found, True
        if search.tired:
            break
        if not search.cut:  # nothing was left out for the sake of the limit: there is no repair
            return None, True
    return _Search(standing, patience).run(None), False


class _Search:
    def __init__(self, standing: Standing, patience: int) -> None:
        self._standing = standing
        self._patience = patience
        self.tired = False
        """Whether it gave up."""
        self.cut = False
        """Whether something was not tried because it would be too many moves."""
        self._hosts = standing.open_hosts()

    def run(self, limit: int | None) -> list[Choice] | None:
        """Find choices with at most so many moves; the standing keeps what was found."""
        standing, self.cut = self._standing, False
        chosen: list[Choice] = []
        ways: list[Iterator[tuple[VmId, HostId]]] = []
        moved: set[VmId] = set()
        while True:
            problem = self._next()
            if problem is None:
                return chosen
            if limit is not None and _moves(chosen) + standing.least_moves() > limit:
                self.cut = True
                ways.append(iter(()))
            else:
                ways.append(self._ways(problem, moved))
            while True:
                way = next(ways[-1], None) if self._patience > 0 else None
                if way is not None:
                    break
                ways.pop()
                if not ways:
                    self.tired = self._patience <= 0
                    return None
                last = chosen.pop()
                moved.discard(last.vm)
                standing.place(last.vm, last.before)
            self._patience -= 1
            vm, host = way
            chosen.append(Choice(vm, host, standing.place(vm, host)))
            moved.add(vm)

    def _next(self) -> Problem | None:
        given_up = self._standing.given_up
        return next((one for one in self._standing.problems if one not in given_up), None)

    def _ways(self, problem: Problem, moved: set[VmId]) -> Iterator[tuple[VmId, HostId]]:
        """Each way to tackle a problem, the gentlest first."""
        standing = self._standing
        ways = []
        for vm in standing.members(problem):
            if vm in moved or vm in standing.fixed:
                continue
            for host in self._hosts:
                if host == standing.where[vm] or not _could_be(standing, vm, host):
                    continue
                ways.append((_harm(standing, vm, host), standing.pressure[host], vm, host))
        ways.sort()
        return iter([(vm, host) for _, _, vm, host in ways])


def _moves(chosen: list[Choice]) -> int:
    return sum(choice.before is not None for choice in chosen)


def _could_be(standing: Standing, vm: VmId, host: HostId) -> bool:
    """Whether a VM could be on a host if others made way."""
    one, there = standing.vms[vm], standing.snapshot.hosts[host]
    return one.vcpus <= there.cores and not standing.barred_by(vm, host)


def _harm(standing: Standing, vm: VmId, host: HostId) -> int:
    """How many new problems it makes to put a VM onto a host."""
    return (
        len(standing.clashes(vm, host))
        + len(standing.lacks(vm, host))
        + standing.strays(vm, host)
        + standing.unlike(vm, host)
    )
