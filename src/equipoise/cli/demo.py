"""``equipoise demo``: the main idea, in a minute, without a file or a host."""

from __future__ import annotations

from equipoise.cli.answer import clock, console, fitted, print_json, table
from equipoise.cli.check import show_violations
from equipoise.cli.show import headline, host_table
from equipoise.cli.simulate import Outcome, document, simulate, tell_journal
from equipoise.model.action import EnterMaintenance, Migrate, describe
from equipoise.model.plan import Plan
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan import Refusal, verify
from equipoise.sim.builtin import builtin
from equipoise.store import MemoryJournal


def run(*, as_json: bool) -> int:
    """Run both built-in drains and show, step by step, what happens and why."""
    good, broken = (
        simulate(builtin(name), MemoryJournal()) for name in ("first-steps", "broken-drain")
    )
    if as_json:
        print_json({"runs": [document(good), document(broken)]})
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
    return 0


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
    out.print(
        "Next: equipoise scenarios, equipoise show FILE, equipoise check PLAN --instance FILE"
    )
