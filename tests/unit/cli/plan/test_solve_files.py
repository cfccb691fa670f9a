"""``equipoise solve`` looks before it searches whether what it finds could be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.cli.plan import solve as command
from equipoise.cli.plan.solve import SolveOptions
from equipoise.errors import InvalidInput
from equipoise.files import to_json
from equipoise.model.host import HostState, RequestedHostState
from equipoise.model.problem import DesiredHostState, PlanningProblem
from equipoise.model.quantity import HostId
from equipoise.model.vm import VmState
from planning import a_problem

H1 = HostId("h1")
NO_MAINTENANCE = (
    "hosts.h1: BtrPlace plans cannot express maintenance (remove it, or leave out --btrplace)"
)


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a search starts."""

    def search(*_: Any, **__: Any) -> None:
        pytest.fail("it searched before it looked")

    monkeypatch.setattr(command, "solve_with_broken_rules", search)


def refusal(folder: Path, problem: PlanningProblem, **options: Any) -> str:
    path = folder / "problem.json"
    path.write_text(to_json(problem))
    with pytest.raises(InvalidInput) as refused:
        command.run(path, SolveOptions(**options), as_json=True)
    return str(refused.value)


def small(**fields: Any) -> PlanningProblem:
    return a_problem([a_host("h1"), a_host("h2")], [], **fields)


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize("option", ["output", "report", "stream"])
def test_an_unwritable_file_is_rejected_before_the_search(option: str, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "x.yaml"
    why = "cannot be written: no such file or directory (name another file)"
    assert refusal(tmp_path, small(), **{option: path}) == f"{path}: {why}"


@pytest.mark.usefixtures("never")
def test_a_btrplace_plan_needs_an_output_file(tmp_path: Path) -> None:
    message = refusal(tmp_path, small(), as_btrplace=True)
    assert message == "--btrplace: the option needs an output file (add -o FILE)"


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (small(hosts={H1: DesiredHostState.MAINTENANCE}), NO_MAINTENANCE),
        (a_problem([a_host("h1", requested=RequestedHostState.MAINTENANCE)], []), NO_MAINTENANCE),
        (
            a_problem(
                [a_host("h1", state=HostState.MAINTENANCE)], [], hosts={H1: DesiredHostState.ONLINE}
            ),
            NO_MAINTENANCE,
        ),
        (
            a_problem(
                [a_host("h1", state=HostState.STANDBY), a_host("h2")],
                [a_vm("v1", "h1", state=VmState.SLEEPING), a_vm("v2", "h2")],
            ),
            "vms.v1: the VM v1 is on h1, which is not on",
        ),
    ],
)
def test_a_problem_that_btrplace_cannot_express_is_rejected_before_the_search(
    problem: PlanningProblem, message: str, tmp_path: Path
) -> None:
    output = tmp_path / "plan.json"
    assert message in refusal(tmp_path, problem, as_btrplace=True, output=output)


@pytest.mark.parametrize("state", [HostState.ON, HostState.MAINTENANCE])
def test_a_host_that_keeps_its_state_can_be_expressed(state: HostState, tmp_path: Path) -> None:
    aim = (
        DesiredHostState.MAINTENANCE if state is HostState.MAINTENANCE else DesiredHostState.ONLINE
    )
    path, plan = tmp_path / "problem.json", tmp_path / "plan.json"
    hosts = [a_host("h1", state=state), a_host("h2")]
    path.write_text(to_json(a_problem(hosts, [a_vm("v1", "h2")], hosts={H1: aim})))
    assert command.run(path, SolveOptions(as_btrplace=True, output=plan), as_json=True) == 0
    assert b'"actions":[]' in plan.read_bytes()
