"""``equipoise recommend``: the actions that one pass recommends, with reasons; none is executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from equipoise.api.loading import read_inventory
from equipoise.balance.advice import BalanceAdvice
from equipoise.balance.explain import BalanceExplainer, Explanation
from equipoise.balance.repair.faults import BalanceFault
from equipoise.balance.run_pass import PassResult, run_balance_pass
from equipoise.cli.advice.power import show_power
from equipoise.cli.output import console, fit_to_terminal, make_table, print_document, printable
from equipoise.documents.advice import recommend_document
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.action import describe
from equipoise.model.estimate import Estimates
from equipoise.model.quantity import HostId, VmId, format_count
from equipoise.model.state.snapshot import Snapshot
from equipoise.power.propose import run_power_pass

if TYPE_CHECKING:
    from rich.table import Table

ALL: Final = "all"
POWER: Final = "power"
DECIDERS: Final = ("balance", POWER)
REJECTIONS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendOptions:
    """Explanations, random seed and additional deciders."""

    why: Sequence[str] = ()
    """VMs and hosts to explain, or ``all``."""
    seed: int = 0
    deciders: Sequence[str] = ()
    """Deciders that run besides balance."""


def run(path: Path, options: RecommendOptions, *, as_json: bool) -> int:
    """Print the recommendations; 1 if a fault remains that no move repairs."""
    _check_deciders(options.deciders, path)
    inventory = read_inventory(path)
    snapshot = Snapshot.of(inventory, at_ms=_time_of_week_ms() if inventory.power.windows else 0)
    began = perf_counter()
    result = run_balance_pass(snapshot, Estimates(), seed=options.seed, alternatives=True)
    power = None
    if POWER in options.deciders:
        power = run_power_pass(snapshot, Estimates(), seed=options.seed)
    wall_s = perf_counter() - began
    explanations = explain_subjects(result, options.why, str(path))
    if as_json:
        print_document(recommend_document(result, explanations, power, wall_s=wall_s))
    else:
        show_advice(result, explanations)
        if power is not None:
            show_power(power, options.why)
    return 1 if result.advice.faults else 0


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


def show_advice(result: PassResult, explanations: Sequence[Explanation]) -> None:
    """Print the advice of a pass as text."""
    out, advice = console(), result.advice
    count = len(advice.moves)
    head = "no action" if not count + len(advice.switches) else format_count(count, "move")
    name = printable(result.snapshot.name)
    out.print(f"[bold]{name}[/bold]: {head}; {printable(advice.summary)}")
    if advice.moves:
        out.print(_moves_table(advice))
    for switch in advice.switches:
        waits = f" after the moves of {', '.join(switch.after)}" if switch.after else ""
        out.print(f"then {describe(switch.action)}{printable(waits)}")
    _show_next_best(advice)
    if not advice.fewest:
        out.print("a repair with fewer moves may exist: search budget exhausted")
    show_faults(advice.faults)
    if advice.rejected:
        rows = make_table("rejected", "code", "reason")
        for rejection in advice.rejected[:REJECTIONS_SHOWN]:
            rows.add_row(printable(rejection.subject), rejection.code, printable(rejection.detail))
        out.print(fit_to_terminal(rows))
    if explanations:
        rows = make_table("VM or host", "code", "reason")
        for explanation in explanations:
            rows.add_row(
                printable(explanation.subject), explanation.code, printable(explanation.sentence)
            )
        out.print(fit_to_terminal(rows))
    elif not advice.moves:
        out.print("'--why all' explains for every VM and host why no action is recommended")


def _show_next_best(advice: BalanceAdvice) -> None:
    for move in advice.moves:
        for rejection in move.considered[:1]:
            second = f"{printable(rejection.subject)} ({printable(rejection.detail)})"
            console().print(f"  {printable(move.vm)}: the second choice is {second}")


def show_faults(faults: Sequence[BalanceFault]) -> None:
    """Print the faults that remain, and what would make a repair possible."""
    out = console()
    for fault in faults:
        out.print(
            f"[red]fault[/red] {fault.code}, {printable(fault.subject)}: {printable(fault.detail)}"
        )
        if fault.unblock:
            out.print(f"      possible repair: {printable(fault.unblock)}")


def _moves_table(advice: BalanceAdvice) -> Table:
    rows = make_table(
        "VM", "from", "to", "prio", "imbalance", "takes", "after", "reason",
        right=("prio", "imbalance", "takes"),
    )  # fmt: skip
    for move in advice.moves:
        gain = move.gain.get("imbalance")
        rows.add_row(
            printable(move.vm),
            printable(move.source),
            printable(move.target),
            str(move.priority) + ("" if move.automatic else " ask"),
            "" if gain is None else f"{-gain:+.3f}",
            f"{move.cost['seconds']:.0f} s",
            printable(", ".join(move.after)),
            printable(move.reason),
        )
    return fit_to_terminal(rows)
