"""The power part of ``equipoise recommend`` as text."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from equipoise.cli.output import console, fit_to_terminal, make_table, printable
from equipoise.model.quantity import format_count
from equipoise.power.advice import PowerAdvice

if TYPE_CHECKING:
    from rich.table import Table


def show_power(advice: PowerAdvice, why: Collection[str]) -> None:
    """Print the power advice; of the hosts that stay as they are, those named in ``why``."""
    out = console()
    out.print(f"[bold]power[/bold]: {printable(advice.summary)}")
    if advice.standbys or advice.wakes:
        out.print(_host_table(advice))
    for move in advice.moves:
        vm, source, target = map(printable, (move.vm, move.source, move.target))
        out.print(f"then migrate {vm} from {source} to {target}, to satisfy the rules")
    explained = [host for host in advice.skipped if "all" in why or host.host in why]
    if explained:
        rows = make_table("host", "code", "reason why its power state stays")
        for host in explained:
            rows.add_row(printable(host.host), host.code, printable(host.sentence))
        out.print(fit_to_terminal(rows))
    elif advice.skipped and not why:
        count = format_count(len(advice.skipped), "host")
        out.print(f"{count} unchanged: '--why HOST' or '--why all' shows the reasons")


def _host_table(advice: PowerAdvice) -> Table:
    rows = make_table(
        "host", "becomes", "prio", "moves", "watts", "reason", right=("prio", "moves")
    )
    for wake in advice.wakes:
        priority = f"{wake.priority}{'' if wake.automatic else ' ask'}"
        rows.add_row(printable(wake.host), "on", priority, "", "", printable(wake.reason))
    for standby in advice.standbys:
        rows.add_row(
            printable(standby.host),
            "standby",
            f"{standby.priority}{'' if standby.automatic else ' ask'}",
            str(len(standby.evacuations)),
            f"-{standby.gain['watts']:.0f}",
            printable(standby.reason),
        )
    return fit_to_terminal(rows)
