"""Faults: what is wrong and cannot be mended, which rules are in the way, and what would help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from equipoise.balance.mending.failover import is_spare, original
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
    vms: tuple[str, ...] = ()
    """The VMs it is about."""
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
    members = standing.members(problem)
    movable = [vm for vm in members if vm not in standing.fixed]
    blocks = [blocks_of(standing, vm) for vm in movable[:NAMES_SHOWN]]
    rules = dict.fromkeys([*broken, *(one for b in blocks for one in b.rules)])
    said = [f"{vm} {one.sentence}" for vm, one in zip(movable, blocks, strict=False)]
    helps = dict.fromkeys(help_ for one in blocks for help_ in one.helps)
    if members and not movable:
        said.append(f"{listed(members)} may not be moved now")
        helps[f"let {'it' if len(members) == 1 else 'them'} be moved"] = None
    return Fault(
        code=CODES[problem.kind],
        subject=_subject(standing, problem),
        detail="; ".join([_wrong(standing, problem, broken[0] if broken else None), *said]),
        rules=tuple(map(str, rules)),
        vms=tuple(members),
        unblock="; or ".join(helps),
    )


class Blocks:
    """What keeps one VM from every other host."""

    def __init__(self) -> None:
        self._why: dict[str, list[HostId]] = defaultdict(list)
        self.rules: list[RuleId] = []
        self._helps: list[str] = []

    def add(self, host: HostId, reason: str, help_: str = "", rules: Sequence[RuleId] = ()) -> None:
        """Note what keeps it from a host, what would help, and the rules that are in the way."""
        self._why[reason].append(host)
        self.rules += rules
        if help_:
            self._helps.append(help_)

    @property
    def helps(self) -> list[str]:
        """What would help, the first few."""
        return list(dict.fromkeys(self._helps))[:NAMES_SHOWN]

    @property
    def sentence(self) -> str:
        """Why it can go nowhere."""
        parts = [f"{listed(hosts)}: {reason}" for reason, hosts in self._why.items()]
        return f"has nowhere to go ({'; '.join(parts)})" if parts else "has nowhere to go"


def blocks_of(standing: Standing, vm: VmId) -> Blocks:
    """Say for each host what keeps a VM from it, the same reasons together."""
    found = Blocks()
    for name in standing.snapshot.hosts:
        if name != standing.where[vm]:
            _block(standing, vm, name, found)
    return found


def _block(standing: Standing, vm: VmId, name: HostId, found: Blocks) -> None:
    one, host = standing.vms[vm], standing.snapshot.hosts[name]
    if name in standing.closed:
        cures = {HostState.STANDBY: "wake", HostState.FAILED: "repair"}
        found.add(name, standing.closed[name], f"{cures.get(host.state, 'open')} {name}")
    elif bars := standing.barred_by(vm, name):
        help_ = "" if is_spare(vm) else f"let {bars[0]} allow {name}"
        found.add(name, f"rule {bars[0]}", help_, bars)
    elif host.cores < one.vcpus:
        found.add(name, f"fewer cores than its {one.vcpus} vCPUs")
    elif too_large := standing.exceeds(vm, name):
        found.add(name, f"it has less {too_large} than the VM needs")
    elif clashes := standing.clashes(vm, name):
        rule, other = clashes[0]
        help_ = "" if other == one.ft_pair else f"move {other} off {name}"
        found.add(name, f"apart from {other} by {rule}", help_, [rule])
    elif lacks := standing.lacks(vm, name):
        resource, need, free = lacks[0]
        missing = f"{need - max(0, free):,.0f} {resource}"
        found.add(name, f"{missing} too little is free", f"free {missing} on {name}")
    elif standing.unlike(vm, name):
        found.add(name, "not compatible with the host of its other half")
    elif rules := standing.left_behind(vm, name):
        found.add(name, f"together with others by {rules[0]}", "", rules)
    else:
        found.add(name, "others would then have no place")


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
            hosts, wanted = len(standing.open_hosts()), _group_size(standing, problem)
            many = f" ({wanted} VMs, {hosts} hosts)" if wanted > hosts else ""
            return f"{listed(some)} share hosts, which {rule} forbids{many}"
        case "together":
            return f"{listed(some)} are on different hosts, which {rule} forbids"
        case "unlike":
            return f"{listed(some)} are on hosts that are not compatible"
        case "full":
            return f"more is reserved on {problem.subject} than it has"
        case _:
            host = standing.where[VmId(problem.subject)]
            if host is None:
                name = VmId(problem.subject)
                lost = f"{original(name)} could not start again if its host were lost"
                return lost if is_spare(name) else f"{name} runs nowhere"
            wish = standing.snapshot.hosts[host].requested
            cause = f"rule {rule}" if rule else f"{host} is to go into {wish}"
            return f"{problem.subject} must leave {host} ({cause})"


def _group_size(standing: Standing, problem: Problem) -> int:
    return len(standing.rules.apart[int(problem.subject)].vms)
