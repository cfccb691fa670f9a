"""Repair search: the fewest moves after which no rule is broken.

Every repair must move, for each problem, one of the few VMs it concerns. A search that takes one
problem after the other and tries each of those VMs on each host is therefore complete. It runs with
an increasing limit on the number of moves, so the first result has the fewest moves, unless the
search budget is exhausted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from equipoise.balance.repair.move_order import VmAssignment, can_run_in_sequence
from equipoise.balance.repair.placement_state import PlacementProblem, PlacementState, ProblemKind
from equipoise.model.quantity import HostId, VmId

SEARCH_BUDGET: Final = 200_000
"""The budget of the search for the fewest moves: pairs of a VM and a host that are tried."""
PLACE_COST: Final = 10
"""The cost of placing a VM, in tried pairs."""
PROBLEMS_PER_COST: Final = 4
"""The lower bound costs one tried pair per this many problems."""
BUDGET_PER_HOST_MIN: Final = 8
"""The minimum budget per host when problems are solved one by one."""
CALM_MOVES_MAX: Final = 3
"""So many moves more may be made if they avoid that a host is overloaded."""
EXTRA_MOVES_MAX: Final = 8
"""The search tries up to this many moves more than the lower bound."""


@dataclass(frozen=True, slots=True)
class RepairSearchResult:
    """The assignments that repair problems, and the problems that remain."""

    assignments: tuple[VmAssignment, ...]
    unsolved: tuple[PlacementProblem, ...]
    """The problems for which no repair was found."""
    fewest: bool
    """Whether no repair has fewer moves."""


def search_repair(
    placement_state: PlacementState, budget: int = SEARCH_BUDGET
) -> RepairSearchResult:
    """Repair all problems at once or, if that fails, one after the other."""
    # Given up before the search: one problem without a solution would make it try every combination
    # of all the others.
    unsolvable = _unsolvable_problems(placement_state)
    placement_state.abandoned.update(unsolvable)
    solution, fewest = _search_calm(placement_state, budget)
    if solution is not None:
        return _search_result(placement_state, solution, unsolvable, fewest=fewest)
    assignments: list[VmAssignment] = []
    unsolved: list[PlacementProblem] = []
    pending = [
        problem for problem in placement_state.problems if problem not in placement_state.abandoned
    ]
    placement_state.abandoned.update(pending)
    # The search that just failed was already about this problem alone.
    if len(pending) == 1:
        return _search_result(placement_state, assignments, [*unsolvable, *pending], fewest=fewest)
    budget = max(BUDGET_PER_HOST_MIN * len(placement_state.snapshot.hosts), budget // len(pending))
    for problem in pending:
        placement_state.abandoned.discard(problem)
        # A move for an earlier problem has repaired this one as well.
        if problem not in placement_state.problems:
            continue
        solution, _ = _search_calm(placement_state, budget)
        if solution is None:
            placement_state.abandoned.add(problem)
            unsolved.append(problem)
        else:
            assignments += solution
    return _search_result(
        placement_state, _merged(assignments), [*unsolvable, *unsolved], fewest=False
    )


def _unsolvable_problems(placement_state: PlacementState) -> list[PlacementProblem]:
    """Return the problems without any VM that may move to another host; no search helps."""
    hosts = placement_state.open_hosts()
    return [
        problem
        for problem, vms in placement_state.problems.items()
        if problem not in placement_state.abandoned
        and not any(
            host != placement_state.host_of[vm] and _is_allowed(placement_state, vm, host)
            for vm in vms
            if vm not in placement_state.pinned
            for host in hosts
        )
    ]


def _search_result(
    placement_state: PlacementState,
    assignments: list[VmAssignment],
    unsolved: list[PlacementProblem],
    *,
    fewest: bool,
) -> RepairSearchResult:
    """Return the result with the problems that are still open."""
    # Another repair may have solved a problem that was given up.
    remaining = tuple(problem for problem in unsolved if problem in placement_state.problems)
    return RepairSearchResult(tuple(assignments), remaining, fewest)


def _merged(assignments: list[VmAssignment]) -> list[VmAssignment]:
    """Return one assignment per VM, from its first host to its last."""
    first: dict[VmId, HostId | None] = {}
    last: dict[VmId, HostId] = {}
    for assignment in assignments:
        first.setdefault(assignment.vm, assignment.before)
        last[assignment.vm] = assignment.host
    return [VmAssignment(vm, host, first[vm]) for vm, host in last.items() if host != first[vm]]


def _search_calm(
    placement_state: PlacementState, budget: int
) -> tuple[list[VmAssignment] | None, bool]:
    """Return the fewest assignments or, if they overload a host, others that overload none."""
    if placement_state.problems.keys() <= placement_state.abandoned:
        return [], True
    before = placement_state.excess_demand()
    solution, fewest = _search_fewest(placement_state, budget)
    if not solution or not makes_overload_worse(placement_state, before):
        return solution, fewest
    for assigned in reversed(solution):
        placement_state.place(assigned.vm, assigned.before)
    other = _RepairSearch(placement_state, budget // 4, calm=True).run(
        _count_moves(solution) + CALM_MOVES_MAX
    )
    if other is not None:
        return other, fewest and _count_moves(other) == _count_moves(solution)
    for assigned in solution:
        placement_state.place(assigned.vm, assigned.host)
    return solution, fewest


def makes_overload_worse(
    placement_state: PlacementState, before: Mapping[tuple[HostId, int], int]
) -> bool:
    """Return whether the demand on a host exceeds its capacity by more than before."""
    now = placement_state.excess_demand()
    return any(excess > before.get(key, 0) for key, excess in now.items())


def _search_fewest(
    placement_state: PlacementState, budget: int
) -> tuple[list[VmAssignment] | None, bool]:
    """Return assignments that repair all problems in question, and whether they are the fewest."""
    least = placement_state.min_moves()
    search = _RepairSearch(placement_state, budget)
    # Iterative deepening. Repeating the small searches is cheap, because each limit costs many
    # times the one before.
    for limit in range(least, least + EXTRA_MOVES_MAX + 1):
        infeasible_before = search.found_infeasible  # fewer moves would do, but cannot run in order
        solution = search.run(limit)
        if solution is not None:
            return solution, not infeasible_before
        # If the limit cut nothing off, a higher limit finds nothing more.
        if search.budget_exhausted or not search.was_pruned:
            break
    if not (search.budget_exhausted or search.was_pruned or search.found_infeasible):
        return None, True  # the search was complete: there is no repair
    solution = None
    if search.budget_exhausted or search.was_pruned:
        # Some repair is better than none: without a limit, the first solution is taken.
        solution = _RepairSearch(placement_state, budget // 4).run(None)
    if solution is None and search.found_infeasible:
        # Moves that cannot run in any order are still advice: the gate refuses them, and the fault
        # names what blocks them.
        solution = _RepairSearch(placement_state, budget // 4, feasible=False).run(None)
    return solution, False


class _RepairSearch:
    """A depth-first search with a limit on moves and a budget."""

    def __init__(
        self,
        placement_state: PlacementState,
        budget: int,
        *,
        feasible: bool = True,
        calm: bool = False,
    ) -> None:
        self._placement_state = placement_state
        self._calm = calm
        """Whether no move may overload a host."""
        self._budget = budget
        self._feasible = feasible
        """Whether the moves must be able to run one after the other."""
        self.budget_exhausted = False
        """Whether the search ended because of the budget."""
        self.was_pruned = False
        """Whether the limit on moves cut off a branch."""
        self.found_infeasible = False
        """Whether a repair was found whose moves cannot run in any order."""
        self._hosts = placement_state.open_hosts()

    def run(self, limit: int | None) -> list[VmAssignment] | None:
        """Return assignments with at most ``limit`` moves; the placement state keeps them."""
        placement_state, self.was_pruned = self._placement_state, False
        chosen: list[VmAssignment] = []
        # An explicit stack: a repair of a large cluster is deeper than Python's recursion limit.
        branches: list[Iterator[tuple[VmId, HostId]]] = []
        moved: set[VmId] = set()
        while True:
            problem = self._next_problem()
            if problem is None and self._is_accepted(chosen):
                return chosen
            branches.append(self._candidates_within(problem, chosen, moved, limit))
            while True:
                candidate = next(branches[-1], None) if self._budget > 0 else None
                if candidate is not None:
                    break
                branches.pop()
                if not branches:
                    self.budget_exhausted = self._budget <= 0
                    return None
                last = chosen.pop()
                moved.discard(last.vm)
                # Undone in reverse order, so that the open problems return to what they were.
                placement_state.place(last.vm, last.before)
            self._budget -= PLACE_COST
            vm, host = candidate
            chosen.append(VmAssignment(vm, host, placement_state.place(vm, host)))
            moved.add(vm)

    def _is_accepted(self, chosen: list[VmAssignment]) -> bool:
        if not self._feasible or can_run_in_sequence(self._placement_state, chosen):
            return True
        self.found_infeasible = True
        return False

    def _candidates_within(
        self,
        problem: PlacementProblem | None,
        chosen: list[VmAssignment],
        moved: set[VmId],
        limit: int | None,
    ) -> Iterator[tuple[VmId, HostId]]:
        """Return the candidates for a problem, none if the limit would be exceeded."""
        if problem is None:
            return iter(())
        if limit is not None:
            self._budget -= len(self._placement_state.problems) // PROBLEMS_PER_COST
            if _count_moves(chosen) + self._placement_state.min_moves() > limit:
                self.was_pruned = True
                return iter(())
        return self._candidate_moves(problem, moved)

    def _next_problem(self) -> PlacementProblem | None:
        abandoned = self._placement_state.abandoned
        return next(
            (problem for problem in self._placement_state.problems if problem not in abandoned),
            None,
        )

    def _candidate_moves(
        self, problem: PlacementProblem, moved: set[VmId]
    ) -> Iterator[tuple[VmId, HostId]]:
        """Yield the moves that can repair a problem, least harmful first."""
        placement_state = self._placement_state
        pinned = placement_state.pinned
        vms = sorted(
            vm for vm in placement_state.members(problem) if vm not in moved and vm not in pinned
        )
        # The emptiest host first: the repair then leaves the least work for the rebalancer.
        hosts = sorted(self._hosts, key=lambda host: (placement_state.pressure(host), host))
        if problem.kind == ProblemKind.KEEP_TOGETHER:
            # A host of another member is the most likely target, so a rule about a few VMs does not
            # cost a trial of every host.
            near = {placement_state.host_of[vm] for vm in placement_state.members(problem)}
            yield from self._least_harmful_first(vms, [host for host in hosts if host in near])
            hosts = [host for host in hosts if host not in near]
        yield from self._least_harmful_first(vms, hosts)

    def _least_harmful_first(
        self, vms: Sequence[VmId], hosts: Iterable[HostId]
    ) -> Iterator[tuple[VmId, HostId]]:
        """Yield moves that create no problem as soon as they are found, then the others.

        A host that the demand of the VM would overload comes after all that it would not.
        """
        placement_state = self._placement_state
        overloading: list[tuple[VmId, HostId]] = []
        harmful: list[tuple[int, int, VmId, HostId]] = []
        for rank, host in enumerate(hosts):
            for vm in vms:
                self._budget -= 1
                if (
                    host == placement_state.host_of[vm]
                    or not _is_allowed(placement_state, vm, host)
                    or placement_state.worsens_abandoned(vm, host)
                    or (self._calm and placement_state.overloads(vm, host))
                ):
                    continue
                harm = _count_new_problems(placement_state, vm, host)
                if harm:
                    harmful.append((harm, rank, vm, host))
                elif placement_state.overloads(vm, host):
                    overloading.append((vm, host))
                else:
                    yield vm, host
        yield from overloading
        harmful.sort()
        yield from ((vm, host) for _, _, vm, host in harmful)


def _count_moves(chosen: list[VmAssignment]) -> int:
    return sum(assignment.before is not None for assignment in chosen)


def _is_allowed(placement_state: PlacementState, vm: VmId, host: HostId) -> bool:
    """Return whether a VM may be on a host, if other VMs move away."""
    candidate, target = placement_state.vms[vm], placement_state.snapshot.hosts[host]
    return (
        candidate.vcpus <= target.cores
        and not placement_state.banning_rules(vm, host)
        and not placement_state.oversized_resource(vm, host)
    )


def _count_new_problems(placement_state: PlacementState, vm: VmId, host: HostId) -> int:
    """Return how many problems the placement of a VM on a host creates."""
    return (
        len(placement_state.conflicts(vm, host))
        + len(placement_state.shortages(vm, host))
        + len(placement_state.separated(vm, host))
        + placement_state.is_ft_mismatch(vm, host)
    )
