"""``equipoise recommend``: what one pass would do with a cluster, and why; nothing is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from equipoise.balance.advice import Advice, Advised, Code
from equipoise.balance.advise import Pass, advise
from equipoise.balance.explain import Explainer, Told
from equipoise.balance.mending.fault import Fault
from equipoise.balance.wishes import after_moves
from equipoise.cli.advice import power
from equipoise.cli.answer import console, fitted, plain, print_json, table
from equipoise.cli.read import read_inventory
from equipoise.errors import InvalidInput, Problem
from equipoise.model.action import PowerOff, describe
from equipoise.model.estimate import Estimates
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.words import counted
from equipoise.place.host_settings import HostPool, HostPools, changes, host_pools
from equipoise.power.advice import PowerAdvice
from equipoise.power.advise import advise_power

if TYPE_CHECKING:
    from rich.table import Table

ALL = "all"
POWER = "power"
DECIDERS = ("balance", POWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What else somebody wants to know."""

    why: Sequence[str] = ()
    """VMs and hosts to explain, or ``all``."""
    seed: int = 0
    deciders: Sequence[str] = ()
    """Who is asked besides balance."""


def run(path: Path, questions: Questions, *, as_json: bool) -> int:
    """Print what is recommended; 1 if something is wrong that no move mends."""
    for name in questions.deciders:
        if name not in DECIDERS:
            what, cure = (
                f"there is no decider {name!r} to be asked",
                f"one of {', '.join(DECIDERS)}",
            )
            raise InvalidInput(str(path), [Problem(key="--with", what=what, cure=cure)])
    inventory = read_inventory(path)
    snapshot = Snapshot.of(inventory, at_ms=_now_ms() if inventory.power.windows else 0)
    began = perf_counter()
    done = advise(snapshot, Estimates(), seed=questions.seed, alternatives=True)
    switched = None
    if POWER in questions.deciders:
        switched = advise_power(snapshot, Estimates(), seed=questions.seed)
    wall_s = perf_counter() - began
    told = explained(done, questions.why, str(path))
    if as_json:
        found = document(done, told)
        if switched is not None:
            found = _with_power(found, switched)
        print_json(found | {"wall_s": round(wall_s, 4)})
    else:
        show(done, told)
        if switched is not None:
            power.show(switched, questions.why)
    return 1 if done.advice.faults else 0


def _now_ms() -> int:
    """The time of the week, for windows of a policy: since midnight on Monday, here."""
    now = datetime.now().astimezone()
    return 1000 * (86_400 * now.weekday() + 3600 * now.hour + 60 * now.minute + now.second)


def _with_power(found: dict[str, object], switched: PowerAdvice) -> dict[str, object]:
    moves = found["recommendations"]
    assert isinstance(moves, list)
    return found | {
        "recommendations": [*moves, *power.rows(switched)],
        "power": power.document(switched),
    }


def explained(done: Pass, names: Sequence[str], source: str) -> list[Told]:
    """What is to be said about those that were asked for."""
    explainer, snapshot = Explainer(done), done.snapshot
    if ALL in names:
        names = [*snapshot.vms, *snapshot.hosts]
    unknown = [name for name in names if name not in snapshot.vms and name not in snapshot.hosts]
    if unknown:
        cure = "name a VM or a host of the inventory, or 'all'"
        problems = [
            Problem(key=one, what="there is no such VM or host", cure=cure) for one in unknown
        ]
        raise InvalidInput(source, problems)
    return [
        explainer.vm(VmId(name)) if name in snapshot.vms else explainer.host(HostId(name))
        for name in names
    ]


def document(done: Pass, told: Sequence[Told]) -> dict[str, object]:
    """The answer as the JSON contract wants it."""
    advice = done.advice
    now = host_pools(done.snapshot)
    then = after_moves(done.snapshot, ((one.vm, one.target) for one in advice.moves))
    return {
        "recommendations": [*map(_move, advice.moves), *_switches(advice)],
        "faults": [as_row(fault) for fault in advice.faults],
        "imbalance": {"before": round(advice.before, 6), "after": round(advice.after, 6)},
        "summary": advice.summary,
        "fewest_moves": advice.fewest,
        "rejected": [
            {"what": one.subject, "code": one.code, "detail": one.detail} for one in advice.rejected
        ],
        "host_pools": _host_pools(now),
        "host_pool_changes": _pool_changes(now, host_pools(then)),
        "explanations": [
            {"subject": one.subject, "code": one.code, "sentence": one.sentence} for one in told
        ],
    }


def as_row(fault: Fault) -> dict[str, object]:
    """A fault for machines."""
    return {
        "code": fault.code,
        "subject": fault.subject,
        "detail": fault.detail,
        "rules": list(fault.rules),
        "vms": list(fault.vms),
        "unblock": fault.unblock,
    }


def _move(one: Advised) -> dict[str, object]:
    return {
        "action": "migrate",
        "vm": one.vm,
        "from": one.source,
        "to": one.target,
        "priority": one.priority,
        "code": one.code,
        "reason": one.reason,
        "gain": one.gain.get("imbalance", 0.0),
        "cost": one.cost.get("cpu_mhz_s", 0.0),
        "gains": dict(one.gain),
        "costs": dict(one.cost),
        "risks": dict(one.risk),
        "considered": [
            {"host": other.subject, "code": other.code, "detail": other.detail}
            for other in one.considered
        ],
        "after": list(one.after),
        "automatic": one.automatic,
    }


def _switches(advice: Advice) -> list[dict[str, object]]:
    return [
        {
            "action": "power_off" if isinstance(one.action, PowerOff) else "enter_maintenance",
            "vm": None,
            "from": one.host,
            "to": None,
            "priority": 1,
            "code": Code.EVACUATE,
            "reason": f"{one.host} is to go into {one.wish}",
            "gain": 0.0,
            "cost": 0.0,
            "gains": {},
            "costs": {},
            "risks": {},
            "considered": [],
            "after": list(one.after),
            "automatic": one.automatic,
        }
        for one in advice.switches
    ]


def _host_pools(pools: HostPools) -> list[dict[str, object]]:
    """What each hypervisor should be told about the pools."""
    return [
        {"host": host, "pool": pool, **_settings(settings)}
        for host, some in pools.items()
        for pool, settings in some.items()
    ]


def _pool_changes(now: HostPools, then: HostPools) -> list[dict[str, object]]:
    """What they should be told otherwise once all is done."""
    return [
        {
            "host": one.host,
            "pool": one.pool,
            "before": None if one.before is None else _settings(one.before),
            "after": None if one.after is None else _settings(one.after),
        }
        for one in changes(now, then)
    ]


def _settings(settings: HostPool) -> dict[str, object]:
    return {
        "cpu": {
            "reservation_mhz": settings.cpu.reservation,
            "limit_mhz": settings.cpu.limit,
            "shares": settings.cpu.shares,
        },
        "memory": {
            "reservation_mib": settings.memory.reservation,
            "limit_mib": settings.memory.limit,
            "shares": settings.memory.shares,
        },
    }


def show(done: Pass, told: Sequence[Told]) -> None:
    """The same for people."""
    out, advice = console(), done.advice
    count = len(advice.moves)
    head = "nothing to do" if not count + len(advice.switches) else counted(count, "move")
    out.print(f"[bold]{plain(done.snapshot.name)}[/bold]: {head}; {plain(advice.summary)}")
    if advice.moves:
        out.print(_moves_table(advice))
    for switch in advice.switches:
        waits = f" once {', '.join(switch.after)} left" if switch.after else ""
        out.print(f"then {describe(switch.action)}{plain(waits)}")
    _show_next_best(advice)
    if not advice.fewest:
        out.print("rules may be mended with fewer moves: the search ran out of patience")
    show_faults(advice.faults)
    if advice.rejected:
        rows = table("given up", "code", "because")
        for gone in advice.rejected[:20]:
            rows.add_row(plain(gone.subject), gone.code, plain(gone.detail))
        out.print(fitted(rows))
    if told:
        rows = table("who", "code", "why")
        for each in told:
            rows.add_row(plain(each.subject), each.code, plain(each.sentence))
        out.print(fitted(rows))
    elif not advice.moves:
        out.print("'--why all' tells for every VM and host why nothing is done with it")


def _show_next_best(advice: Advice) -> None:
    for one in advice.moves:
        for other in one.considered[:1]:
            said = f"next best was {plain(other.subject)} ({plain(other.detail)})"
            console().print(f"  {plain(one.vm)}: {said}")


def show_faults(faults: Sequence[Fault]) -> None:
    """What stays wrong, and what would help."""
    out = console()
    for fault in faults:
        out.print(f"[red]fault[/red] {fault.code}, {plain(fault.subject)}: {plain(fault.detail)}")
        if fault.unblock:
            out.print(f"      what would help: {plain(fault.unblock)}")


def _moves_table(advice: Advice) -> Table:
    rows = table(
        "VM", "from", "to", "prio", "imbalance", "takes", "after", "because",
        right=("prio", "imbalance", "takes"),
    )  # fmt: skip
    for one in advice.moves:
        gain = one.gain.get("imbalance")
        rows.add_row(
            plain(one.vm),
            plain(one.source),
            plain(one.target),
            str(one.priority) + ("" if one.automatic else " ask"),
            "" if gain is None else f"{-gain:+.3f}",
            f"{one.cost['seconds']:.0f} s",
            plain(", ".join(one.after)),
            plain(one.reason),
        )
    return fitted(rows)
