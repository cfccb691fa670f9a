"""Faults: what is wrong and cannot be mended, which rules are in the way, and what would help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from equipoise.balance.mending.failover import is_spare
from equipoise.balance.mending.standing import Problem, Standing, rules_of
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.value import Value

NAMES_SHOWN: Final = 4


class Fault(Value):
    """Something that is wrong and stays so."""

    code: str
    """Stable and machine-readable, e.g. ``keep_apart``."""
    subject: str
    detail: str
    rules: tuple[str, ...] = ()
    """The rules that are broken or in the way."""
    unblock: str = ""
    """What would help."""


CODES: Final = {
    "out": "nowhere_to_go",
    "apart": "keep_apart",
    "together": "keep_together",
    "unlike": "ft_incompatible",
    "full": "over_reserved",
}


def fault_of(standing: Standing, problem: Problem) -> Fault:
    """Say what stays wrong, and why nothing helps."""
    broken = rules_of(standing, problem)
    rule = broken[0] if broken else None
    movable = [vm for vm in standing.members(problem) if vm not in standing.fixed]
    blocks = [blocks_of(standing, vm) for vm in movable[:NAMES_SHOWN]]
    rules = dict.fromkeys([*broken, *(one for b in blocks for one in b.rules)])
    said = [f"{vm} {one.sentence}" for vm, one in zip(movable, blocks, strict=False)]
    fixed = [vm for vm in standing.members(problem) if vm in standing.fixed]
    if fixed and not movable:
        said.append(f"{listed(fixed)} may not be moved now")
    helps = dict.fromkeys(help_ for one in blocks for help_ in one.helps)
    if fixed and not movable:
        helps["let them be moved"] = None
    return Fault(
        code=CODES[problem.kind],
        subject=_subject(standing, problem),
        detail="; ".join([_wrong(standing, problem, rule), *said]),
        rules=tuple(map(str, rules)),
        unblock="; or ".join(helps),
    )


class Blocks:
    """What keeps one VM from every other host."""

    def __init__(self, why: dict[str, list[HostId]], rules: list[RuleId], helps: list[str]) -> None:
        self.rules, self.helps = rules, helps
        parts = [f"{listed(hosts)}: {reason}" for reason, hosts in why.items()]
        self.sentence = (
            f"has no other host to go to ({'; '.join(parts)})" if parts else "has no host to go to"
        )


def blocks_of(standing: Standing, vm: VmId) -> Blocks:
    """Say for each host what keeps a VM from it, the same reasons together."""
    why: dict[str, list[HostId]] = defaultdict(list)
    rules: list[RuleId] = []
    helps: list[str] = []
    for name, host in standing.snapshot.hosts.items():
        if name == standing.where[vm]:
            continue
        bars, clashes = standing.barred_by(vm, name), standing.clashes(vm, name)
        lacks = standing.lacks(vm, name)
        if name in standing.closed:
            why[standing.closed[name]].append(name)
            helps.append(f"{'wake' if host.state is HostState.STANDBY else 'open'} {name}")
        elif bars:
            why[f"rule {bars[0]}"].append(name)
            rules += bars
            helps.append(f"let {bars[0]} allow {name}")
        elif host.cores < standing.vms[vm].vcpus:
            why[f"fewer cores than its {standing.vms[vm].vcpus} vCPUs"].append(name)
        elif clashes:
            rule, other = clashes[0]
            why[f"apart from {other} by {rule}"].append(name)
            rules.append(rule)
            helps.append(f"move {other} off {name}")
        elif lacks:
            resource, need, free = lacks[0]
            why[f"{need:g} {resource} needed, {max(0, free):g} free"].append(name)
            helps.append(f"free {need - max(0, free):g} {resource} on {name}")
        elif standing.unlike(vm, name):
            why["not compatible with the host of its other half"].append(name)
        else:
            why["others would then have no place"].append(name)
    return Blocks(why, rules, list(dict.fromkeys(helps))[:NAMES_SHOWN])


def listed(names: Sequence[str]) -> str:
    """Some names, in words."""
    shown, more = ", ".join(names[:NAMES_SHOWN]), len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _subject(standing: Standing, problem: Problem) -> str:
    if problem.kind in {"apart", "together"}:
        return str(rules_of(standing, problem)[0])
    return problem.subject


def _wrong(standing: Standing, problem: Problem, rule: RuleId | None) -> str:
    some = standing.members(problem)
    match problem.kind:
        case "apart":
            return f"{listed(some)} share a host, which {rule} forbids"
        case "together":
            return f"{listed(some)} are on different hosts, which {rule} forbids"
        case "unlike":
            return f"{listed(some)} are on hosts that are not compatible"
        case "full":
            return f"more is reserved on {problem.subject} than it has"
        case _:
            host = standing.where[VmId(problem.subject)]
            if host is None:
                name = problem.subject
                spare = is_spare(VmId(name))
                return f"{name} has no room to start in" if spare else f"{name} runs nowhere"
            wish = standing.snapshot.hosts[host].requested
            cause = f"rule {rule}" if rule else f"{host} is to go into {wish}"
            return f"{problem.subject} must leave {host} ({cause})"
