"""``equipoise demo``: the main idea, in a minute, without a file or a host."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from typing import Final, NamedTuple

from equipoise.cli.answer import clock, console, fitted, plain, print_json, table
from equipoise.cli.check import show_violations
from equipoise.cli.report import show
from equipoise.cli.show import headline, host_table
from equipoise.cli.simulate import Outcome, document, simulate, tell_journal
from equipoise.cli.story import tell
from equipoise.model.action import EnterMaintenance, Migrate, describe
from equipoise.model.plan import Plan
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan import Refusal, verify
from equipoise.report import check_folder, compare, differences, read_run, write_run
from equipoise.report.folder import SUMMARY
from equipoise.sim.builtin import builtin
from equipoise.store import MemoryJournal

PAGE: Final = "comparison.html"


def run(out: Path, *, as_json: bool) -> int:
    """Show, step by step, what happens and why: two drains, then a cluster that is balanced."""
    good, broken = (
        simulate(builtin(name), MemoryJournal()) for name in ("first-steps", "broken-drain")
    )
    without, with_balance = _balanced(out)
    run_a, run_b = read_run(without.folder), read_run(with_balance.folder)
    (out / PAGE).write_text(compare(run_a, run_b), encoding="utf-8")
    if as_json:
        runs = (good, broken, without.outcome, with_balance.outcome)
        print_json({"runs": [document(one) for one in runs], "report": str(out / PAGE)})
        return 0
    before = Snapshot.of(good.result.scenario.cluster)
    plan = good.result.scenario.plan
    assert plan is not None
    _heading("1. A cluster")
    _show_cluster(before)
    _heading("2. A plan: take r2 into maintenance")
    _show_plan(plan)
    _heading("3. Two shortcuts, and what the gate says of them")
    _show_shortcuts(before, plan)
    _heading("4. The plan is accepted and carried out; this is its journal")
    tell_journal(good.journal)
    _show_cluster(good.result.snapshot)
    _heading("5. The same plan, but r3 dies on the way")
    tell_journal(broken.journal)
    _show_end(broken)
    _heading("6. Thirty hosts, 400 VMs, an hour: Table 1 of the DRS paper, left alone and balanced")
    _show_comparison(without.folder, with_balance.folder, out / PAGE)
    return 0


class _Kept(NamedTuple):
    """A run and where it was written."""

    outcome: Outcome
    folder: Path


def _balanced(out: Path) -> tuple[_Kept, _Kept]:
    """The same cluster without and with the balance decider, each written into a folder."""
    scenario = builtin("drs-table1")
    kept = []
    for name, deciders in (("alone", ()), ("balanced", scenario.deciders)):
        folder = out / name
        if (folder / SUMMARY).exists():  # of the last demo
            rmtree(folder)
        check_folder(folder)
        journal = MemoryJournal()
        outcome = simulate(scenario.but(deciders=deciders), journal)
        write_run(folder, document(outcome), outcome.result.record, journal, tell)
        kept.append(_Kept(outcome, folder))
    return kept[0], kept[1]


def _show_comparison(alone: Path, balanced: Path, page: Path) -> None:
    run_a, run_b = read_run(alone), read_run(balanced)
    show(run_a, run_b, [one for one in differences(run_a, run_b) if one.better in {"A", "B"}])
    out = console()
    out.print("The paper has 55.68 / 65.94 % without and 73.74 / 94.99 % with 166 moves.")
    for one in (alone, balanced):
        out.print(f"A page for each run: {plain(str(one / 'report.html'))}", soft_wrap=True)
    out.print(f"Both side by side:   {plain(str(page))}", soft_wrap=True)
    out.print("Next: equipoise recommend FILE, equipoise scenarios, equipoise show FILE")


def shortcuts(plan: Plan) -> tuple[tuple[str, Plan], ...]:
    """Two variants of the plan that look harmless and are not."""
    web = Migrate(vm=VmId("web-2"), source=HostId("r2"), target=HostId("r3"))
    hasty = EnterMaintenance(host=HostId("r2"))
    return (
        (
            "Spare the waking of r4: web-2 goes to r3",
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
            "Spare ten seconds: r2 goes down while web-2 is still leaving",
            plan.but(
                steps=tuple(
                    step.but(action=hasty, start_ms=66_000, end_ms=70_000, after=())
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
    console().print(headline(snapshot))
    console().print(host_table(snapshot))


def _show_plan(plan: Plan) -> None:
    rows = table("step", "from", "to", "what", "after", right=("from", "to"))
    for step in plan.steps:
        rows.add_row(
            step.id,
            clock(step.start_ms),
            clock(step.end_ms),
            describe(step.action),
            ", ".join(step.after),
        )
    console().print(fitted(rows))


def _show_shortcuts(snapshot: Snapshot, plan: Plan) -> None:
    for words, variant in shortcuts(plan):
        console().print(words)
        verdict = verify(snapshot, variant)
        assert isinstance(verdict, Refusal)
        show_violations(verdict.violations)


def _show_end(outcome: Outcome) -> None:
    out, result, journal = console(), outcome.result, outcome.journal
    lost = [vm.id for vm in result.snapshot.vms.values() if vm.host is None]
    out.print(f"\nNo VM is lost: {', '.join(lost)} wait to be started elsewhere.")
    same = journal.snapshot() == result.snapshot
    out.print(
        f"The journal has {len(journal)} events (sha256 {journal.sha256()[:16]}); "
        f"replaying it gives {'the identical' if same else 'ANOTHER'} cluster."
    )
