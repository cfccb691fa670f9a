"""What should be switched, for people and machines: the part of an answer that is about power."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from equipoise.cli.answer import console, fitted, plain, table
from equipoise.model.quantity import HostId
from equipoise.model.words import counted
from equipoise.power.advice import Code, PowerAdvice, Sleep, Wake
from equipoise.power.score import Scores


def rows(advice: PowerAdvice) -> Iterator[dict[str, object]]:
    """Recommendations in the form of the others: the moves that empty a host stand before it."""
    for wake in advice.wakes:
        yield _row("power_on", wake, to=wake.host, code=wake.code)
    for move in advice.moves:
        yield {
            **_row(
                "migrate", advice.wakes[0], source=move.source, to=move.target, code=Code.WAKE_RULE
            ),
            "vm": move.vm,
            "reason": "a rule is broken where it is",
        }
    for sleep in advice.sleeps:
        for one in sleep.going:
            yield {
                **_row("migrate", sleep, source=sleep.host, to=one.target, code=Code.SLEEP),
                "vm": one.vm,
                "reason": f"{sleep.host} is to sleep",
                "gain": 0.0,
                "cost": 0.0,
                "gains": {},
                "costs": {},
            }
        after = [one.vm for one in sleep.going]
        yield {
            **_row("power_off", sleep, source=sleep.host, code=Code.SLEEP),
            "after": after,
        }


def _row(
    action: str,
    one: Sleep | Wake,
    *,
    code: Code,
    source: HostId | None = None,
    to: HostId | None = None,
) -> dict[str, object]:
    cost = dict(one.cost) if isinstance(one, Sleep) else {}
    return {
        "action": action,
        "vm": None,
        "from": source,
        "to": to,
        "priority": one.priority,
        "code": code,
        "reason": one.reason,
        "gain": one.gain.get("watts", one.gain.get("high_score", 0.0)),
        "cost": cost.get("cpu_mhz_s", 0.0),
        "gains": dict(one.gain),
        "costs": cost,
        "risks": {},
        "considered": [],
        "after": [],
        "automatic": one.automatic,
    }


def document(advice: PowerAdvice) -> dict[str, object]:
    """The scores, what was found in one sentence, and why other hosts are left as they are."""
    return {
        "summary": advice.summary,
        "scores": {"before": _scores(advice.before), "after": _scores(advice.after)},
        "sleeps": [one.host for one in advice.sleeps],
        "wakes": [one.host for one in advice.wakes],
        "mends": list(advice.mends),
        "watts_saved": sum(one.gain["watts"] for one in advice.sleeps),
        "kept": [
            {"host": one.host, "code": one.code, "sentence": one.sentence} for one in advice.told
        ],
    }


def _scores(scores: Scores) -> dict[str, object]:
    return {
        kind: {"cpu": round(cpu, 6), "memory": round(memory, 6)}
        for kind, (cpu, memory) in zip(("high", "low"), scores, strict=True)
    }


def show(advice: PowerAdvice, asked: Collection[str]) -> None:
    """The same for people; of hosts that are left as they are, those that were asked for."""
    out = console()
    out.print(f"[bold]power[/bold]: {plain(advice.summary)}")
    if advice.sleeps or advice.wakes:
        out.print(_switches(advice))
    for move in advice.moves:
        where = f"{plain(move.vm)} goes from {plain(move.source)} to {plain(move.target)}"
        out.print(f"then {where}, for the rules")
    told = [one for one in advice.told if "all" in asked or one.host in asked]
    if told:
        some = table("host", "code", "why it is left as it is")
        for one in told:
            some.add_row(plain(one.host), one.code, plain(one.sentence))
        out.print(fitted(some))
    elif advice.told and not asked:
        kept = counted(len(advice.told), "host")
        out.print(f"{kept} left as they are: '--why HOST' or '--why all' tells the reasons")


def _switches(advice: PowerAdvice) -> object:
    found = table("host", "becomes", "prio", "moves", "watts", "because", right=("prio", "moves"))
    for wake in advice.wakes:
        ask = "" if wake.automatic else " ask"
        found.add_row(plain(wake.host), "on", f"{wake.priority}{ask}", "", "", plain(wake.reason))
    for sleep in advice.sleeps:
        ask = "" if sleep.automatic else " ask"
        found.add_row(
            plain(sleep.host),
            "standby",
            f"{sleep.priority}{ask}",
            str(len(sleep.going)),
            f"-{sleep.gain['watts']:.0f}",
            plain(sleep.reason),
        )
    return fitted(found)
