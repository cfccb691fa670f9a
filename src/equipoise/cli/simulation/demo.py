"""``equipoise demo``: the main features in one minute, without a file or a host."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from typing import Final, NamedTuple

from equipoise.api.simulation import SimulationRun
from equipoise.cli.output import (
    console,
    format_time_ms,
    print_document,
    printable,
    text_table,
)
from equipoise.cli.plan.check import show_violations
from equipoise.cli.show import cluster_headline, host_table
from equipoise.cli.simulation.report import show_differences
from equipoise.cli.simulation.simulate import (
    document_of,
    print_journal,
    simulate,
)
from equipoise.documents.simulation import DemoDocument
from equipoise.model.action import EnterMaintenance, Migrate, describe
from equipoise.model.plan import Plan
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import Refusal, verify
from equipoise.report import check_folder, compare_page, differences, read_run, write_run
from equipoise.report.run_folder import SUMMARY
from equipoise.sim.builtin import builtin_scenario
from equipoise.store import MemoryJournal

PAGE: Final = "comparison.html"


def run(out: Path, *, as_json: bool) -> int:
    """Show two drains step by step, then a cluster without and with balance."""
    good, broken = (
        simulate(builtin_scenario(name), MemoryJournal())
        for name in ("first-steps", "broken-drain")
    )
    without, with_balance = _run_both(out)
    run_a, run_b = read_run(without.folder), read_run(with_balance.folder)
    (out / PAGE).write_text(compare_page(run_a, run_b), encoding="utf-8")
    if as_json:
        runs = (good, broken, without.outcome, with_balance.outcome)
        documents = tuple(document_of(outcome) for outcome in runs)
        print_document(DemoDocument(runs=documents, report=str(out / PAGE)))
        return 0
    before = Snapshot.of(good.result.scenario.cluster)
    plan = good.result.scenario.plan
    assert plan is not None
    _heading("1. A cluster")
    _show_cluster(before)
    _heading("2. A plan: take r2 into maintenance")
    _show_plan(plan)
    _heading("3. Two unsafe variants of the plan, refused by the gate")
    _show_unsafe_variants(before, plan)
    _heading("4. The plan is accepted and executed; this is its journal")
    print_journal(good.journal)
    _show_cluster(good.result.snapshot)
    _heading("5. The same plan, but r3 fails during execution")
    print_journal(broken.journal)
    _show_final_state(broken)
    _heading("6. 30 hosts, 400 VMs, one hour: Table 1 of the DRS paper, without and with balance")
    _show_comparison(without.folder, with_balance.folder, out / PAGE)
    return 0


class _SavedOutcome(NamedTuple):
    """A run and its folder."""

    outcome: SimulationRun
    folder: Path


def _run_both(out: Path) -> tuple[_SavedOutcome, _SavedOutcome]:
    """Run the same cluster without and with the balance decider, each into a folder."""
    scenario = builtin_scenario("drs-table1")
    saved = []
    for name, deciders in (("alone", ()), ("balanced", scenario.deciders)):
        folder = out / name
        if (folder / SUMMARY).exists():  # of an earlier demo
            rmtree(folder)
        check_folder(folder)
        journal = MemoryJournal()
        outcome = simulate(scenario.but(deciders=deciders), journal)
        write_run(folder, document_of(outcome), outcome.result.record, journal)
        saved.append(_SavedOutcome(outcome, folder))
    return saved[0], saved[1]


def _show_comparison(alone: Path, balanced: Path, page: Path) -> None:
    run_a, run_b = read_run(alone), read_run(balanced)
    rows = [row for row in differences(run_a, run_b) if row.better in {"A", "B"}]
    show_differences((run_a.name, run_b.name), rows)
    out = console()
    out.print(
        "The paper reports 55.68 / 65.94 % without balance and 73.74 / 94.99 % with 166 migrations."
    )
    for folder in (alone, balanced):
        out.print(f"Page of a run: {printable(str(folder / 'report.html'))}", soft_wrap=True)
    out.print(f"Comparison:    {printable(str(page))}", soft_wrap=True)
    out.print("Next: equipoise recommend FILE, equipoise scenarios, equipoise show FILE")


def unsafe_variants(plan: Plan) -> tuple[tuple[str, Plan], ...]:
    """Return two variants of the plan that look safe and are not."""
    web = Migrate(vm=VmId("web-2"), source=HostId("r2"), target=HostId("r3"))
    early = EnterMaintenance(host=HostId("r2"))
    return (
        (
            "Skip the wake of r4: web-2 moves to r3",
            plan.but(
                steps=tuple(
                    step.but(action=web, start_ms=0, end_ms=16_000, after=())
                    if step.id == "move-web"
                    else step
                    for step in plan.steps
                    if step.id != "wake"
                )
            ),
        ),
        (
            "Save ten seconds: r2 enters maintenance while web-2 still migrates",
            plan.but(
                steps=tuple(
                    step.but(action=early, start_ms=66_000, end_ms=70_000, after=())
                    if step.id == "drain"
                    else step
                    for step in plan.steps
                )
            ),
        ),
    )


def _heading(text: str) -> None:
    console().print(f"\n[bold]{text}[/bold]\n")


def _show_cluster(snapshot: Snapshot) -> None:
    console().print(cluster_headline(snapshot))
    console().print(host_table(snapshot))


def _show_plan(plan: Plan) -> None:
    rows = (
        (
            step.id,
            format_time_ms(step.start_ms),
            format_time_ms(step.end_ms),
            describe(step.action),
            ", ".join(step.after),
        )
        for step in plan.steps
    )
    columns = ("step", "start", "end", "action", "after")
    console().print(text_table(columns, rows, right=("start", "end")))


def _show_unsafe_variants(snapshot: Snapshot, plan: Plan) -> None:
    for title, variant in unsafe_variants(plan):
        console().print(title)
        verdict = verify(snapshot, variant)
        assert isinstance(verdict, Refusal)
        show_violations(verdict.violations)


def _show_final_state(outcome: SimulationRun) -> None:
    out, result, journal = console(), outcome.result, outcome.journal
    lost = [vm.id for vm in result.snapshot.vms.values() if vm.host is None]
    out.print(f"\nNo VM is lost: {', '.join(lost)} wait for a start on another host.")
    same = journal.snapshot() == result.snapshot
    out.print(
        f"The journal has {len(journal)} events (sha256 {journal.sha256()[:16]}); "
        f"its replay gives {'the identical' if same else 'ANOTHER'} cluster."
    )
