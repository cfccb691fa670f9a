"""``equipoise solve`` looks before it searches whether what it finds could be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.cli.planning import solve as command
from equipoise.cli.planning.solve import Wishes
from equipoise.errors import InvalidInput
from equipoise.model.files import to_json
from equipoise.model.host import HostState, HostWish
from equipoise.model.problem import HostAim, Problem
from equipoise.model.quantity import HostId
from equipoise.model.vm import VmState
from planning import a_problem

H1 = HostId("h1")
NO_MAINTENANCE = (
    "hosts.h1: BtrPlace has no words for maintenance (leave it out, or write no plan of BtrPlace's)"
)


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody searches."""

    def search(*_: Any, **__: Any) -> None:
        pytest.fail("it searched before it looked")

    monkeypatch.setattr(command, "solve", search)


def refusal(folder: Path, problem: Problem, **wishes: Any) -> str:
    path = folder / "problem.json"
    path.write_text(to_json(problem))
    with pytest.raises(InvalidInput) as refused:
        command.run(path, Wishes(**wishes), as_json=True)
    return str(refused.value)


def small(**fields: Any) -> Problem:
    return a_problem([a_host("h1"), a_host("h2")], [], **fields)


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize("wish", ["output", "report", "stream"])
def test_where_nothing_can_be_written_nothing_is_searched_for(wish: str, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "x.yaml"
    why = "cannot be written: no such file or directory (name another file)"
    assert refusal(tmp_path, small(), **{wish: path}) == f"{path}: {why}"


@pytest.mark.usefixtures("never")
def test_who_wants_a_plan_of_btrplaces_names_a_file_for_it(tmp_path: Path) -> None:
    told = refusal(tmp_path, small(), as_btrplace=True)
    assert told == "--btrplace: there is no file to write the plan into (name one with -o)"


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (small(hosts={H1: HostAim.MAINTENANCE}), NO_MAINTENANCE),
        (a_problem([a_host("h1", requested=HostWish.MAINTENANCE)], []), NO_MAINTENANCE),
        (
            a_problem([a_host("h1", state=HostState.MAINTENANCE)], [], hosts={H1: HostAim.ONLINE}),
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
def test_what_btrplace_cannot_say_is_not_searched_for(
    problem: Problem, told: str, tmp_path: Path
) -> None:
    said = refusal(tmp_path, problem, as_btrplace=True, output=tmp_path / "plan.json")
    assert told in said


@pytest.mark.parametrize("state", [HostState.ON, HostState.MAINTENANCE])
def test_what_stays_as_it_is_needs_no_words(state: HostState, tmp_path: Path) -> None:
    aim = HostAim.MAINTENANCE if state is HostState.MAINTENANCE else HostAim.ONLINE
    path, plan = tmp_path / "problem.json", tmp_path / "plan.json"
    hosts = [a_host("h1", state=state), a_host("h2")]
    path.write_text(to_json(a_problem(hosts, [a_vm("v1", "h2")], hosts={H1: aim})))
    assert command.run(path, Wishes(as_btrplace=True, output=plan), as_json=True) == 0
    assert b'"actions":[]' in plan.read_bytes()
