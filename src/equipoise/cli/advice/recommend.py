"""``equipoise recommend``: the actions that one pass recommends, with reasons; none is executed."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from equipoise.adapters.shell_script import check_platform, shell_script
from equipoise.api.advice import Recommendation, recommend
from equipoise.api.loading import read_inventory_with_warnings
from equipoise.balance.explain import BalanceExplainer, Explanation
from equipoise.balance.repair.faults import BalanceFault, join_names
from equipoise.balance.run_pass import PassResult
from equipoise.capacity.entitlement import entitlement_per_vm
from equipoise.cli.file_io import check_writable
from equipoise.cli.output import (
    console,
    make_table,
    print_document,
    print_warnings,
    printable,
    progress_console,
    show_existing_faults,
    text_table,
)
from equipoise.cli.plan.solve import write_plan
from equipoise.cli.show import pool_table
from equipoise.control.advice_plan import AdvicePlan
from equipoise.documents.advice import RecommendDocument, recommend_document, with_plan
from equipoise.documents.cluster import pool_rows
from equipoise.documents.json_document import ProblemRow, warning_rows
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files import override_estimates
from equipoise.model.action import Migrate, describe
from equipoise.model.action_durations import Estimates
from equipoise.model.plan import Rejection
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import HostId, VmId, format_count
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.existing_faults import existing_faults
from equipoise.power.advice import PowerAdvice

if TYPE_CHECKING:
    from rich.table import Table


ALL: Final = "all"
POWER: Final = "power"
DECIDERS: Final = ("balance", POWER)
REJECTIONS_SHOWN: Final = 20
HOSTS_SHOWN: Final = 40
WIDE: Final = 120
"""From this width on, the list of actions has the reasons."""
MINUTE_S: Final = 60
HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendOptions:
    """What is known beside the inventory, and what to write."""

    why: tuple[str, ...] = ()
    """The VMs and hosts to explain, or ``all``."""
    deciders: tuple[str, ...] = ()
    """The deciders that run besides balance."""
    history: Path | None = None
    journal: str | None = None
    link_mbps: float | None = None
    estimates: tuple[str, ...] = ()
    top: int | None = None
    output: Path | None = None
    platform: str | None = None
    """The platform of the script."""
    seed: int = 0


def run(path: Path, options: RecommendOptions, *, as_json: bool) -> int:
    """Print the recommendations; 1 if a fault or an overload remains that no move ends."""
    _check_deciders(options.deciders, path)
    if options.output is not None:
        check_writable(options.output)
    if options.platform is not None:
        check_platform(options.platform)
    inventory, warnings = read_inventory_with_warnings(path)
    # The clock is read only if the policy has windows: all other advice is reproducible.
    snapshot = Snapshot.of(inventory, at_ms=_time_of_week_ms() if inventory.power.windows else 0)
    estimates = override_estimates(Estimates(), options.estimates, "--estimate")
    began = perf_counter()
    found = recommend(
        snapshot,
        power=POWER in options.deciders,
        seed=options.seed,
        estimates=estimates,
        link_mbps=options.link_mbps,
        history=options.history,
        journal=options.journal,
        top=options.top,
    )
    wall_s = perf_counter() - began
    _write_outputs(found, options)
    assert found.result is not None
    explanations = _with_moves(found, explain_subjects(found.result, options.why, str(path)))
    script = None
    if options.platform is not None:
        script = shell_script(found.snapshot, found.plan, options.platform)
    if as_json:
        rows = warning_rows(str(path), warnings)
        document = found_document(found, explanations, script, wall_s=wall_s, warnings=rows)
        print_document(document)
    elif script:
        sys.stdout.write("\n".join(script) + "\n")
    else:
        print_warnings(str(path), warnings)
        show_advice(found, explanations, options.why)
    return 1 if found.faults else 0


def _write_outputs(found: Recommendation, options: RecommendOptions) -> None:
    """Write the plan, and note on standard error what the history names and the cluster lacks."""
    if found.unknown:
        names = printable(join_names(found.unknown))
        progress_console().print(f"the history names VMs that the cluster lacks: {names}")
    if options.output is not None:
        problem = PlanningProblem(cluster=found.snapshot.inventory())
        write_plan(found.plan, problem, options.output)
        name = printable(str(options.output))
        progress_console().print(f"written: {name}; 'equipoise check' judges it", soft_wrap=True)


def found_document(
    found: Recommendation,
    explanations: Sequence[Explanation],
    script: Sequence[str] | None,
    *,
    wall_s: float,
    warnings: tuple[ProblemRow, ...] = (),
) -> RecommendDocument:
    """Return the document of a recommendation."""
    assert found.result is not None
    assert found.actions is not None
    document = recommend_document(
        found.result, explanations, found.power, wall_s=wall_s, warnings=warnings
    )
    return with_plan(
        document,
        found.actions,
        found.imbalance,
        summary=found.summary,
        ignored=found.balance.ignored,
        unknown=found.unknown,
        commands=script,
    )


def _with_moves(
    found: Recommendation, explanations: Sequence[Explanation]
) -> Sequence[Explanation]:
    """Return the explanations, with the VMs that another decider moves."""
    moves = {step.action.vm: step for step in found.plan.steps if isinstance(step.action, Migrate)}

    def explained(known: Explanation) -> Explanation:
        step = moves.get(VmId(known.subject))
        if step is None or known.code == "moves" or not isinstance(step.action, Migrate):
            return known
        return Explanation(known.subject, "moves", f"moves to {step.action.target}: {step.reason}")

    return list(map(explained, explanations))


def _check_deciders(names: Sequence[str], path: Path) -> None:
    problems = [
        InputProblem(
            key="--with",
            what=f"there is no decider {name!r}",
            cure=f"use one of {', '.join(DECIDERS)}",
            code="unknown-name",
        )
        for name in names
        if name not in DECIDERS
    ]
    if problems:
        raise InvalidInput(str(path), problems)


def _time_of_week_ms() -> int:
    """Return the local time since Monday midnight, which the windows of a policy refer to."""
    now = datetime.now().astimezone()
    return 1000 * (86_400 * now.weekday() + 3600 * now.hour + 60 * now.minute + now.second)


def explain_subjects(result: PassResult, names: Sequence[str], source: str) -> list[Explanation]:
    """Return the explanations of the named VMs and hosts."""
    explainer, snapshot = BalanceExplainer(result), result.snapshot
    if ALL in names:
        names = [*snapshot.vms, *snapshot.hosts]
    unknown = [name for name in names if name not in snapshot.vms and name not in snapshot.hosts]
    if unknown:
        what, cure = "there is no such VM or host", "name a VM or a host of the inventory, or 'all'"
        raise InvalidInput(
            source,
            [InputProblem(key=name, what=what, cure=cure, code="unknown-name") for name in unknown],
        )
    return [
        explainer.vm(VmId(name)) if name in snapshot.vms else explainer.host(HostId(name))
        for name in names
    ]


def show_advice(
    found: Recommendation, explanations: Sequence[Explanation], why: Sequence[str]
) -> None:
    """Print a recommendation as text: the actions in order, hosts, faults and explanations."""
    out, advice, actions = console(), found.balance, found.actions
    assert actions is not None
    totals = actions.totals
    head = format_count(totals.actions, "action") if totals.actions else "no action"
    out.print(f"[bold]{printable(found.snapshot.name)}[/bold]: {head}; {printable(found.summary)}")
    if totals.actions:
        _show_actions(actions, wide=out.width >= WIDE)
        _show_hosts(actions)
    if found.power is not None:
        before, after = found.imbalance
        out.print(f"after all actions the imbalance is {after:.3f}, now it is {before:.3f}")
        show_power(found.power, why)
    if not advice.fewest and advice.moves:
        out.print("a repair with fewer moves may exist: search budget exhausted")
    show_faults(advice.unresolved)
    show_existing_faults(existing_faults(found.snapshot))
    _show_soft_rules(actions, advice.ignored)
    if why:
        _show_alternatives(actions)
        if found.snapshot.settings.pools:
            pools = pool_rows(found.snapshot, entitlement_per_vm(found.snapshot))
            out.print(pool_table(pools))
    _show_rejections((*advice.rejected, *actions.dropped))
    if explanations:
        rows = ((known.subject, known.code, known.sentence) for known in explanations)
        out.print(text_table(("VM or host", "code", "reason"), rows))
    elif totals.actions:
        out.print("'--why all' shows reasons and alternatives, '-o FILE' writes the plan")
    else:
        out.print("'--why all' explains for every VM and host why no action is recommended")


def _show_actions(actions: AdvicePlan, *, wide: bool) -> None:
    """Print the actions in the order of execution, with reasons; below on a narrow terminal."""
    columns = ["step", "action", "prio", "start", "takes", "benefit", "cost", "after"]
    rows = []
    for step, worth in zip(actions.plan.steps, actions.worth, strict=True):
        row = [
            step.id,
            describe(step.action),
            str(worth.priority) + ("" if worth.automatic else " ask"),
            _seconds(step.start_ms / 1000),
            _seconds(step.duration_ms / 1000),
            _host_seconds(worth.benefit, worth.evenness),
            _host_seconds(worth.cost),
            ",".join(step.after),
        ]
        rows.append([*row, step.reason] if wide else row)
    columns += ["reason"] * wide
    out, totals = console(), actions.totals
    out.print(_compact_table(columns, rows, right=("start", "takes", "benefit", "cost")))
    if not wide:
        reasons = [(step.id, step.reason) for step in actions.plan.steps]
        out.print(_compact_table(("step", "reason"), reasons))
    out.print(
        f"{format_count(totals.moves, 'move')}, {totals.moved_gib:,.1f} GiB; all done after "
        f"{_seconds(totals.ends_s)}. Benefit and cost are in host-seconds;\n"
        "in brackets the part that the lower imbalance itself is worth."
    )


def _show_hosts(actions: AdvicePlan) -> None:
    """Print the hosts that change, and the fullest of the others."""
    changed = [(before, after) for before, after in actions.host_loads if before != after]
    rows = [
        (
            before.host,
            _change(before.state, after.state),
            _change(f"{before.cpu:.0%}", f"{after.cpu:.0%}"),
            _change(f"{before.memory:.0%}", f"{after.memory:.0%}"),
            _change(str(before.vms), str(after.vms)),
        )
        for before, after in changed[:HOSTS_SHOWN]
    ]
    columns = ("host", "state", "CPU demand", "memory demand", "VMs")
    console().print(_compact_table(columns, rows))
    if len(changed) > HOSTS_SHOWN:
        more = format_count(len(changed) - HOSTS_SHOWN, "more host")
        console().print(f"and {more}; --json lists them all")


def _change(before: str, after: str) -> str:
    return str(before) if before == after else f"{before} to {after}"


def _compact_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: tuple[str, ...] = ()
) -> Table:
    """Return a table whose second column wraps, so that it fits a terminal of 80 columns."""
    table = make_table(*columns, right=right)
    for row in rows:
        table.add_row(*map(printable, row))
    for column in table.columns:
        # A name that is wider than the column continues on the next line.
        column.no_wrap, column.overflow = False, "fold"
    return table


def _seconds(seconds: float) -> str:
    """Return a duration such as ``45s``, ``12m30s`` or ``2h05m``."""
    whole = round(seconds)
    if whole < MINUTE_S:
        return f"{whole}s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S}m{whole % MINUTE_S:02d}s"
    return f"{whole // HOUR_S}h{whole % HOUR_S // MINUTE_S:02d}m"


def _host_seconds(figure: float | None, part: float | None = None) -> str:
    if figure is None:
        return ""
    return f"{figure:,.0f}" if part is None else f"{figure:,.0f} ({part:,.0f})"


def _show_soft_rules(actions: AdvicePlan, ignored: Sequence[str]) -> None:
    """Print the preferences that do not hold after the actions."""
    out = console()
    for rule, detail in actions.unmet:
        given_up = ", given up to repair a hard rule" if rule in ignored else ""
        out.print(f"soft rule {printable(rule)} stays unmet{given_up}: {printable(detail)}")


def _show_alternatives(actions: AdvicePlan) -> None:
    """Print the other hosts that were considered for each move."""
    rows = [
        (describe(step.action), other.subject, other.code, other.detail)
        for step, worth in zip(actions.plan.steps, actions.worth, strict=True)
        for other in worth.considered
    ]
    if rows:
        columns = ("instead of", "host", "code", "reason")
        console().print(_compact_table(columns, rows))


def _show_rejections(rejections: Sequence[Rejection]) -> None:
    if rejections:
        shown = rejections[:REJECTIONS_SHOWN]
        rows = ((rejection.subject, rejection.code, rejection.detail) for rejection in shown)
        console().print(text_table(("rejected", "code", "reason"), rows))


def show_faults(faults: Sequence[BalanceFault]) -> None:
    """Print the faults that remain, and what would make a repair possible."""
    out = console()
    for fault in faults:
        out.print(
            f"[red]fault[/red] {fault.code}, {printable(fault.subject)}: {printable(fault.detail)}"
        )
        if fault.unblock:
            out.print(f"      possible repair: {printable(fault.unblock)}")


def show_power(advice: PowerAdvice, why: Collection[str]) -> None:
    """Print the power advice; of the hosts that stay as they are, those named in ``why``."""
    out = console()
    out.print(f"[bold]power[/bold]: {printable(advice.summary)}")
    explained = [host for host in advice.skipped if "all" in why or host.host in why]
    if explained:
        rows = ((host.host, host.code, host.sentence) for host in explained)
        out.print(text_table(("host", "code", "reason why its power state stays"), rows))
    elif advice.skipped and not why:
        count = format_count(len(advice.skipped), "host")
        out.print(f"{count} unchanged: '--why HOST' or '--why all' shows the reasons")
