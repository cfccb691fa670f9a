"""The public API: its names, and that each answers as the command line does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.api.simulation import estimate, t_quantile
from equipoise.model.quantity import VmId
from equipoise.plan import Refusal, VerifiedPlan

ROOT = Path(__file__).parents[3]
SMALL = ROOT / "examples" / "small.yaml"


def test_every_public_name_can_be_imported_and_says_what_it_is() -> None:
    for name in eq.__all__:
        assert getattr(eq, name).__doc__, name
    assert sorted(eq.__all__) == eq.__all__
    assert set(eq.__all__) == set(eq._HOME)
    assert set(eq.__all__) <= set(dir(eq))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        eq.nothing  # noqa: B018


def test_the_import_loads_neither_numpy_nor_the_solver() -> None:
    code = "import sys, equipoise; sys.exit(bool({'numpy', 'ortools', 'msgspec'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_load_tells_files_apart_by_their_keys() -> None:
    examples = ROOT / "examples"
    assert isinstance(eq.load(SMALL), eq.Inventory)
    assert isinstance(eq.load(examples / "drain.yaml"), eq.Plan)
    assert type(eq.load(examples / "swap.yaml")).__name__ == "PlanningProblem"
    assert type(eq.load(examples / "upgrade" / "campaign.yaml")).__name__ == "UpgradeCampaign"
    assert isinstance(eq.load("first-steps"), eq.Scenario)
    assert type(eq.load("nabi-compute")).__name__ == "UpgradeCampaign"


def test_load_reports_a_missing_file_and_a_broken_one(tmp_path: Path) -> None:
    with pytest.raises(eq.InvalidInput):
        eq.load(tmp_path / "none.yaml")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(eq.InvalidInput):
        eq.load(broken)


def test_recommend_prints_its_moves() -> None:
    advice = eq.recommend(eq.load(SMALL), power=True)
    assert len(advice.moves) == 2
    assert not advice.faults
    for move in advice.moves:
        assert f"move {move.vm} from {move.source} to {move.target}" in str(advice)


def test_verify_gives_a_verified_plan_or_a_refusal() -> None:
    cluster, plan = eq.load(SMALL), eq.load(ROOT / "examples" / "drain.yaml")
    assert isinstance(eq.verify(cluster, plan), VerifiedPlan)
    assert isinstance(plan, eq.Plan)
    hasty = plan.but(steps=tuple(step.but(start_ms=0, after=()) for step in plan.steps))
    assert isinstance(eq.verify(cluster, hasty), Refusal)
    with pytest.raises(eq.InvalidInput):
        eq.verify(plan, plan)
    with pytest.raises(eq.InvalidInput):
        eq.verify(cluster, cluster)


def test_place_starts_a_new_vm_on_a_host() -> None:
    cluster = eq.load(SMALL)
    new = eq.Vm(id=VmId("new-1"), vcpus=1, memory_mib=1024)
    (placed,) = eq.place(cluster, [new]).placed
    assert placed.vm == "new-1"
    assert placed.host in {"r1", "r2", "r3"}


def test_whatif_restarts_the_vms_of_a_failed_host() -> None:
    cluster = eq.load(SMALL)
    found = eq.whatif(cluster, fail=["r1"])
    assert {vm for vm, _ in found.restarts} == {"db-1", "web-1"}
    assert not found.unplaced
    with pytest.raises(eq.InvalidInput):
        eq.whatif(cluster, fail=["r9"])


def test_solve_swaps_two_vms() -> None:
    problem = eq.load(ROOT / "examples" / "swap.yaml")
    assert eq.solve(problem).status == "solved"


class Idle:
    """A decider that proposes nothing, and counts its calls."""

    calls = 0

    def propose(self, snapshot: eq.Snapshot) -> eq.Proposal:
        type(self).calls += 1
        return eq.Proposal(decider="idle", purpose=eq.Purpose.BALANCE)


class NoDecider:
    """Has no propose method."""


def test_a_decider_of_your_own_takes_part() -> None:
    before = Idle.calls
    run = eq.simulate("first-steps", deciders=[Idle()])
    assert Idle.calls > before
    assert run.figures["migrations"] == 3
    assert len(run.frame()) == len(run.result.record.cluster)
    eq.simulate("first-steps", deciders=[Idle])
    with pytest.raises(eq.InvalidInput):
        eq.simulate("first-steps", deciders=[NoDecider])  # type: ignore[list-item]


def test_simulate_refuses_what_is_no_scenario_and_an_unknown_decider() -> None:
    with pytest.raises(eq.InvalidInput):
        eq.simulate(SMALL)
    with pytest.raises(eq.InvalidInput):
        eq.simulate("first-steps", without=["nothing"])


def test_a_sweep_has_a_row_per_setting_and_seed() -> None:
    settings = [{}, {"duration_s": 200}]
    found = eq.sweep("first-steps", seeds=range(3), settings=settings, deciders=[Idle])
    assert [(dict(row.settings), row.seed) for row in found.rows] == [
        (change, seed) for change in settings for seed in range(3)
    ]
    assert found.estimate("migrations").mean == 3
    assert found.estimate("migrations", {"duration_s": 200}).runs == 3
    assert len(found.frame()) == 6
    with pytest.raises(KeyError):
        found.estimate("migrations", {"duration_s": 1})


def test_a_sweep_in_processes_gives_the_same_rows() -> None:
    alone = eq.sweep("first-steps", seeds=range(3))
    assert eq.sweep("first-steps", seeds=range(3), workers=2) == alone


def test_the_confidence_interval_is_that_of_student() -> None:
    # Quantiles of Student's t from printed tables, for 95 % and 99 %.
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 19: 2.093, 99: 1.984}
    for freedom, quantile in table.items():
        assert t_quantile(0.975, freedom) == pytest.approx(quantile, rel=0.01)
    assert t_quantile(0.995, 9) == pytest.approx(3.250, rel=0.01)
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2
    assert found.high - found.mean == pytest.approx(4.303 / 3**0.5, rel=0.001)
    assert estimate([5.0]).high == float("inf")


def test_campaign_and_upgrade_report_their_figures() -> None:
    assert eq.campaign("faulty-A", tests=100).defects > 0
    assert eq.upgrade("nabi-compute", paper=True).status == "completed"
    with pytest.raises(eq.InvalidInput):
        eq.campaign("no-such-target")
    with pytest.raises(eq.InvalidInput):
        eq.upgrade("first-steps")


def test_a_decider_in_a_file_needs_no_packaging(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import equipoise as eq\n"
        "class Mine:\n"
        "    def propose(self, snapshot):\n"
        "        return eq.Proposal(decider='mine', purpose=eq.Purpose.BALANCE)\n"
    )
    scenario = eq.load("first-steps")
    assert isinstance(scenario, eq.Scenario)
    assert eq.simulate(scenario.but(deciders=(f"{file}:Mine",))).figures["migrations"] == 3
    for bad in (f"{file}:Yours", f"{tmp_path}/none.py:Mine"):
        with pytest.raises(eq.InvalidInput):
            eq.simulate(scenario.but(deciders=(bad,)))


def test_the_reference_is_up_to_date() -> None:
    made = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "api_reference.py")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert (ROOT / "docs" / "api.md").read_text() == made, (
        "run tools/api_reference.py > docs/api.md"
    )
