"""Settling: the fewest moves after which nothing is wrong any more.

Every repair must move, for any one problem, one of the few VMs it is about. So a search that takes
one problem after the other and tries each of those VMs on each host misses none. It is asked for
ever more moves, beginning with the least that could do; what it finds first is therefore the
fewest, unless it runs out of patience and takes what comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from equipoise.balance.mending.feasible import Choice, can_be_made
from equipoise.balance.mending.standing import Problem, Standing
from equipoise.model.quantity import HostId, VmId

PATIENCE: Final = 200_000
"""How often a VM and a host are held together for the fewest moves, before any repair will do."""
PLACING: Final = 10
"""What it costs of that to place a VM in mind, ..."""
REMAINING: Final = 4
"""... and, once for so many problems, to see what is left to do."""
PER_HOST: Final = 8
"""How many for each host at the least, for one problem among many."""
DEEPER: Final = 8
"""How many moves more than the least are tried for the fewest."""


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
    hopeless = _hopeless(standing)
    standing.given_up.update(hopeless)
    found, fewest = _solved(standing, patience)
    if found is not None:
        return _settlement(standing, found, hopeless, fewest=fewest)
    done: list[Choice] = []
    left: list[Problem] = []
    wrong = [problem for problem in standing.problems if problem not in standing.given_up]
    standing.given_up.update(wrong)
    if len(wrong) == 1:
        return _settlement(standing, done, [*hopeless, *wrong], fewest=fewest)
    patience = max(PER_HOST * len(standing.snapshot.hosts), patience // len(wrong))
    for problem in wrong:
        standing.given_up.discard(problem)
        if problem not in standing.problems:
            continue
        found, _ = _solved(standing, patience)
        if found is None:
            standing.given_up.add(problem)
            left.append(problem)
        else:
            done += found
    return _settlement(standing, _merged(done), [*hopeless, *left], fewest=False)


def _hopeless(standing: Standing) -> list[Problem]:
    """The problems of which nobody may move anywhere; none of them is worth a search."""
    hosts = standing.open_hosts()
    return [
        problem
        for problem, vms in standing.problems.items()
        if problem not in standing.given_up
        and not any(
            host != standing.where[vm] and _could_be(standing, vm, host)
            for vm in vms
            if vm not in standing.fixed
            for host in hosts
        )
    ]


def _settlement(
    standing: Standing, choices: list[Choice], left: list[Problem], *, fewest: bool
) -> Settlement:
    # What was given up may have been mended with something else.
    still = tuple(problem for problem in left if problem in standing.problems)
    return Settlement(tuple(choices), still, fewest)


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
        fewer = search.blocked  # with fewer moves, though these cannot be made
        found = search.run(limit)
        if found is not None:
            return found, not fewer
        if search.tired or not search.cut:
            break
    if not (search.tired or search.cut or search.blocked):
        return None, True  # nothing was left out: there is no repair
    found = None
    if search.tired or search.cut:
        found = _Search(standing, patience // 4).run(None)
    if found is None and search.blocked:
        found = _Search(standing, patience // 4, feasible=False).run(None)
    return found, False


class _Search:
    def __init__(self, standing: Standing, patience: int, *, feasible: bool = True) -> None:
        self._standing = standing
        self._patience = patience
        self._feasible = feasible
        """Whether only moves will do that can be made one after the other."""
        self.tired = False
        """Whether it gave up."""
        self.cut = False
        """Whether something was not tried because it would be too many moves."""
        self.blocked = False
        """Whether a repair was found that cannot be made."""
        self._hosts = standing.open_hosts()

    def run(self, limit: int | None) -> list[Choice] | None:
        """Find choices with at most so many moves; the standing keeps what was found."""
        standing, self.cut = self._standing, False
        chosen: list[Choice] = []
        ways: list[Iterator[tuple[VmId, HostId]]] = []
        moved: set[VmId] = set()
        while True:
            problem = self._next()
            if problem is None and self._will_do(chosen):
                return chosen
            ways.append(self._ways_on(problem, chosen, moved, limit))
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
            self._patience -= PLACING
            vm, host = way
            chosen.append(Choice(vm, host, standing.place(vm, host)))
            moved.add(vm)

    def _will_do(self, chosen: list[Choice]) -> bool:
        if not self._feasible or can_be_made(self._standing, chosen):
            return True
        self.blocked = True
        return False

    def _ways_on(
        self, problem: Problem | None, chosen: list[Choice], moved: set[VmId], limit: int | None
    ) -> Iterator[tuple[VmId, HostId]]:
        if problem is None:
            return iter(())
        if limit is not None:
            self._patience -= len(self._standing.problems) // REMAINING
            if _moves(chosen) + self._standing.least_moves() > limit:
                self.cut = True
                return iter(())
        return self._ways(problem, moved)

    def _next(self) -> Problem | None:
        given_up = self._standing.given_up
        return next((one for one in self._standing.problems if one not in given_up), None)

    def _ways(self, problem: Problem, moved: set[VmId]) -> Iterator[tuple[VmId, HostId]]:
        """Each way to tackle a problem, the gentlest first: most often one of the first will do."""
        standing = self._standing
        fixed = standing.fixed
        vms = sorted(vm for vm in standing.members(problem) if vm not in moved and vm not in fixed)
        hosts = sorted(self._hosts, key=lambda host: (standing.pressure[host], host))
        if problem.kind == "together":  # most likely one of them goes where another one is
            near = {standing.where[vm] for vm in standing.members(problem)}
            yield from self._gentlest(vms, [host for host in hosts if host in near])
            hosts = [host for host in hosts if host not in near]
        yield from self._gentlest(vms, hosts)

    def _gentlest(
        self, vms: Sequence[VmId], hosts: Iterable[HostId]
    ) -> Iterator[tuple[VmId, HostId]]:
        """What does no harm as soon as it is found, then the rest."""
        standing = self._standing
        harmful: list[tuple[int, int, VmId, HostId]] = []
        for rank, host in enumerate(hosts):
            for vm in vms:
                self._patience -= 1
                if host == standing.where[vm] or not _could_be(standing, vm, host):
                    continue
                harm = _harm(standing, vm, host)
                if harm:
                    harmful.append((harm, rank, vm, host))
                else:
                    yield vm, host
        harmful.sort()
        yield from ((vm, host) for _, _, vm, host in harmful)


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
