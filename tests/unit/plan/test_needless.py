"""Nobody does what is of no use, whatever counts."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.model.action import Migrate, PowerOn
from equipoise.model.host import HostState
from equipoise.model.problem import Measure
from equipoise.plan.exact.solve import solve
from planning import a_problem, apart, fence

HOSTS = [
    *(a_host(name) for name in ("h1", "h2", "h3")),
    *(a_host(name, state=HostState.STANDBY) for name in ("h4", "h5")),
]
VMS = [a_vm("v1", "h1"), a_vm("v2", "h2")]
ABOUT_THE_WAY = [Measure.MTTR, Measure.MIGRATIONS, Measure.MOVED_MEMORY, Measure.MAKESPAN]
WAYS: list[dict[str, Any]] = [{}, {"optimise": True}, {"repair": True}]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("measure", ABOUT_THE_WAY)
def test_where_all_is_well_nothing_is_done(measure: Measure, way: dict[str, Any]) -> None:
    problem = a_problem(HOSTS, VMS, apart("v1", "v2", hard=False), objective=(measure,))
    answer = solve(problem, **way)
    assert answer.plan is not None
    assert answer.plan.steps == ()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("measure", list(Measure))
def test_who_has_to_move_is_all_that_moves(measure: Measure, way: dict[str, Any]) -> None:
    soft = apart("v1", "v2", hard=False)
    problem = a_problem(HOSTS, VMS, fence("v1", "h3"), soft, objective=(measure,))
    answer = solve(problem, **way)
    assert answer.plan is not None
    moves = [step.action for step in answer.plan.steps if isinstance(step.action, Migrate)]
    assert not [step for step in answer.plan.steps if isinstance(step.action, PowerOn)]
    assert len(moves) == 1
    assert all(step.start_ms == 0 for step in answer.plan.steps if step.action in moves)


def test_a_host_is_emptied_without_a_detour() -> None:
    problem = a_problem(HOSTS, VMS, objective=(Measure.HOSTS_USED,))
    answer = solve(problem, optimise=True)
    assert answer.goals == (1,)
    assert answer.plan is not None
    assert len(answer.plan.steps) == 1
