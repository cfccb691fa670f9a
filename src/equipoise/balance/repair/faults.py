"""Faults: what is wrong and cannot be repaired, which rules block the repair, and what helps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from equipoise.balance.repair.failover import is_spare, original_vm
from equipoise.balance.repair.placement_state import (
    PlacementProblem,
    PlacementState,
    ProblemKind,
    problem_rules,
)
from equipoise.capacity.ledger import SIZES
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.value import Value

NAMES_SHOWN: Final = 4
"""How many names a sentence lists at most."""


class BalanceFault(Value):
    """A problem that no recommended move repairs."""

    code: str
    """A key of ``CODES``, e.g. ``keep-apart``."""
    subject: str
    detail: str
    rules: tuple[str, ...] = ()
    """The rules that are broken, or that prevent a repair."""
    vms: tuple[str, ...] = ()
    """The VMs of the problem."""
    unblock: str = ""
    """What the operator can do."""
    figures: Mapping[str, float] = {}
    """The amounts behind the sentence, in MHz and MiB."""
    hosts: tuple[str, ...] = ()
    """The standby hosts that would help."""


def build_fault(placement_state: PlacementState, problem: PlacementProblem) -> BalanceFault:
    """Return the fault of a problem, with the obstacles on each host."""
    broken = problem_rules(placement_state, problem)
    members = placement_state.members(problem)
    movable = [vm for vm in members if vm not in placement_state.pinned]
    obstacles = [find_host_obstacles(placement_state, vm) for vm in movable[:NAMES_SHOWN]]
    rules = dict.fromkeys([*broken, *(rule for item in obstacles for rule in item.rules)])
    sentences = [f"{vm} {item.sentence}" for vm, item in zip(movable, obstacles, strict=False)]
    remedies = dict.fromkeys(remedy for item in obstacles for remedy in item.remedies)
    if members and not movable:
        sentences.append(f"{join_names(members)} {'is' if len(members) == 1 else 'are'} pinned")
        remedies[f"unpin {'it' if len(members) == 1 else 'them'}"] = None
    return BalanceFault(
        code=_code(placement_state, problem),
        subject=_subject(placement_state, problem),
        detail="; ".join(
            [_describe(placement_state, problem, broken[0] if broken else None), *sentences]
        ),
        rules=tuple(map(str, rules)),
        vms=tuple(members),
        unblock="; or ".join(remedies),
    )


class HostObstacles:
    """The obstacles of one VM on every other host."""

    def __init__(self) -> None:
        self._why: dict[str, list[HostId]] = defaultdict(list)
        self.rules: list[RuleId] = []
        self._remedies: list[str] = []

    def add(
        self, host: HostId, reason: str, remedy: str = "", rules: Sequence[RuleId] = ()
    ) -> None:
        """Add the obstacle on a host, its remedy, and the rules that cause it."""
        self._why[reason].append(host)
        self.rules += rules
        if remedy:
            self._remedies.append(remedy)

    @property
    def remedies(self) -> list[str]:
        """The first few remedies."""
        return list(dict.fromkeys(self._remedies))[:NAMES_SHOWN]

    @property
    def sentence(self) -> str:
        """The obstacles in words; hosts with the same obstacle are listed together."""
        parts = [f"{join_names(hosts)}: {reason}" for reason, hosts in self._why.items()]
        return f"has no target host ({'; '.join(parts)})" if parts else "has no target host"


def find_host_obstacles(
    placement_state: PlacementState,
    vm: VmId,
    refusing: Mapping[HostId, Sequence[RuleId]] | None = None,
) -> HostObstacles:
    """Return what prevents a VM from moving to each other host.

    ``refusing`` are further rules that refuse the VM on a host.
    """
    obstacles = HostObstacles()
    for host in placement_state.snapshot.hosts:
        if host == placement_state.host_of[vm]:
            continue
        rules = (refusing or {}).get(host, ())
        if rules:
            obstacles.add(host, f"rule {rules[0]}", f"relax rule {rules[0]}", rules)
        else:
            _add_obstacle(placement_state, vm, host, obstacles)
    return obstacles


def _add_obstacle(
    placement_state: PlacementState, vm: VmId, host_id: HostId, obstacles: HostObstacles
) -> None:
    """Add the first obstacle of a VM on a host."""
    candidate, host = placement_state.vms[vm], placement_state.snapshot.hosts[host_id]
    # Lasting obstacles come first: freeing capacity does not help where a rule forbids the host.
    if host_id in placement_state.closed:
        verbs = {HostState.STANDBY: "wake", HostState.FAILED: "repair"}
        # A host on which the VM never fits is no help, whatever its state.
        useless = (
            placement_state.oversized_resource(vm, host_id)
            or host.cores < candidate.vcpus
            or placement_state.banning_rules(vm, host_id)
        )
        remedy = "" if useless else f"{verbs.get(host.state, 'open')} {host_id}"
        obstacles.add(host_id, placement_state.closed[host_id], remedy)
    elif bans := placement_state.banning_rules(vm, host_id):
        remedy = "" if is_spare(vm) else f"allow {host_id} in rule {bans[0]}"
        obstacles.add(host_id, f"rule {bans[0]}", remedy, bans)
    elif host.cores < candidate.vcpus:
        obstacles.add(host_id, f"fewer cores than the {candidate.vcpus} vCPUs of the VM")
    elif too_large := placement_state.oversized_resource(vm, host_id):
        obstacles.add(host_id, f"it has less {too_large} than the VM needs")
    elif conflicts := placement_state.conflicts(vm, host_id):
        rule, other = conflicts[0]
        remedy = "" if other == candidate.ft_pair else f"move {other} off {host_id}"
        obstacles.add(host_id, f"rule {rule} keeps it apart from {other}", remedy, [rule])
    elif shortages := placement_state.shortages(vm, host_id):
        short = shortages[0]
        missing = f"{short.need - max(0, short.free):,} {short.resource}"
        obstacles.add(host_id, f"{missing} are missing", f"free {missing} on {host_id}")
    elif placement_state.is_ft_mismatch(vm, host_id):
        obstacles.add(host_id, "not compatible with the host of its FT partner")
    elif separated := placement_state.separated(vm, host_id):
        rules = [rule for rule, _ in separated]
        why = f"rule {rules[0]} keeps it together with VMs on other hosts"
        obstacles.add(host_id, why, rules=rules)
    else:
        obstacles.add(host_id, "other VMs would have no target host then")


def join_names(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    shown, more = ", ".join(names[:NAMES_SHOWN]), len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _code(placement_state: PlacementState, problem: PlacementProblem) -> str:
    if problem.kind != ProblemKind.OVER_RESERVED:
        return problem.kind
    excesses = placement_state.capacity.excesses(HostId(problem.subject))
    return "overcommitted" if excesses.keys() & SIZES else problem.kind


def describe_excess(placement_state: PlacementState, host: HostId) -> str:
    """Return what a host has committed beyond its capacity."""
    capacity = placement_state.capacity
    parts = [
        f"{capacity.committed(host, name):,} {name} of {capacity.limits[host].get(name, 0):,}"
        for name in capacity.excesses(host)
    ]
    return f"more is committed on {host} than it has: {', '.join(parts)}"


def _subject(placement_state: PlacementState, problem: PlacementProblem) -> str:
    if problem.kind in {ProblemKind.KEEP_APART, ProblemKind.KEEP_TOGETHER}:
        return str(problem_rules(placement_state, problem)[0])
    return problem.subject


def _describe(
    placement_state: PlacementState, problem: PlacementProblem, rule: RuleId | None
) -> str:
    """Return the problem in words."""
    vms = placement_state.members(problem)
    match problem.kind:
        case ProblemKind.KEEP_APART:
            hosts, group_size = (
                len(placement_state.open_hosts()),
                _group_size(placement_state, problem),
            )
            many = f" ({group_size} VMs, {hosts} hosts)" if group_size > hosts else ""
            return f"{join_names(vms)} share hosts, which rule {rule} forbids{many}"
        case ProblemKind.KEEP_TOGETHER:
            return f"{join_names(vms)} are on different hosts, which rule {rule} forbids"
        case ProblemKind.FT_INCOMPATIBLE:
            return f"{join_names(vms)} are on hosts that are not compatible"
        case ProblemKind.OVER_RESERVED:
            return describe_excess(placement_state, HostId(problem.subject))
        case _:
            host = placement_state.host_of[VmId(problem.subject)]
            if host is None:
                name = VmId(problem.subject)
                lost = f"{original_vm(name)} cannot restart if its host fails"
                return lost if is_spare(name) else f"{name} has no host"
            desired = placement_state.snapshot.hosts[host].requested
            cause = f"rule {rule}" if rule else f"{host} goes into {desired}"
            return f"{problem.subject} must leave {host} ({cause})"


def _group_size(placement_state: PlacementState, problem: PlacementProblem) -> int:
    return len(placement_state.rules.apart[int(problem.subject)].vms)
