"""Moves before the gate: the moves of a sub-iteration are a plan of migrations, judged by
``plan.verify`` as any other: by room, by the states of hosts, by groups and by rules.

What is judged is the part of the cluster that the moves can affect: the rest stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.model.action import Migrate
from equipoise.model.plan import Plan, Step
from equipoise.model.quantity import GroupId, HostId, PlanId, RuleId, StepId, VmId
from equipoise.model.rule import KeepApart, Rule, Satisfy
from equipoise.model.snapshot import Snapshot
from equipoise.model.upgrade.work import VmMove
from equipoise.plan import Refusal, verify
from equipoise.upgrade.cluster import part_of
from equipoise.upgrade.state import State


def admitted(state: State, moves: Sequence[VmMove]) -> tuple[tuple[VmMove, ...], str]:
    """The moves that pass together, and why the others do not."""
    why = refusal(state, moves)
    return (_passing(state, (), tuple(moves)) if why else tuple(moves)), why


def _passing(
    state: State, kept: tuple[VmMove, ...], more: tuple[VmMove, ...]
) -> tuple[VmMove, ...]:
    """Add to moves that pass those of others that pass with them: halve what is refused."""
    if not refusal(state, (*kept, *more)):
        return (*kept, *more)
    if len(more) == 1:
        return kept
    middle = len(more) // 2
    kept = _passing(state, kept, more[:middle])
    return _passing(state, kept, more[middle:])


def refusal(state: State, moves: Sequence[VmMove]) -> str:
    """Say why the gate does not let moves pass that begin side by side; nothing if it does."""
    if not moves:
        return ""
    steps = tuple(
        Step(
            id=StepId(f"move-{move.vm}"),
            action=Migrate(vm=move.vm, source=move.source, target=move.target),
            end_ms=max(1, state.settings.vm_move_s * 1000),
        )
        for move in moves
    )
    apart = tuple(_apart(state, moves))
    mends = tuple(rule.id for rule in apart)  # who comes from a host with a peer mends that
    plan = Plan(id=PlanId("vms"), steps=steps, mends=mends)
    verdict = verify(_affected(state, moves, apart), plan)
    return verdict.violations[0].detail if isinstance(verdict, Refusal) else ""


def _affected(state: State, moves: Sequence[VmMove], apart: Sequence[Rule]) -> Snapshot:
    """The hosts that VMs leave and go to with all that runs there, and whom their rules name."""
    hosts = dict.fromkeys(one for move in moves for one in (move.source, move.target))
    moving = dict.fromkeys(move.vm for move in moves)
    rules, named = _rules_about(state, set(moving))
    also = moving | named
    if any(isinstance(one, Satisfy) for one in rules):  # a formula may look at anything
        hosts |= dict.fromkeys(state.places)
        also = dict.fromkeys(state.seats)
    return Snapshot.of(part_of(state, tuple(hosts), tuple(also), (*rules, *apart)))


def _rules_about(state: State, moving: set[VmId]) -> tuple[list[Rule], dict[VmId, None]]:
    """The hard rules that moves can break, and the VMs that they name."""
    rules: list[Rule] = []
    named: dict[VmId, None] = {}
    for rule in state.campaign.cluster.rules:
        if isinstance(rule, Satisfy):
            rules.append(rule)
        elif not moving.isdisjoint(rule.vms):
            rules.append(rule)
            named |= {one: None for one in rule.vms if one in state.seats}
    return rules, named


def _apart(state: State, moves: Sequence[VmMove]) -> Iterator[KeepApart]:
    """For each group, whom its moving VMs could meet: each other, and who is at their targets."""
    met: dict[GroupId, dict[VmId, None]] = {}
    coming: dict[GroupId, dict[HostId, None]] = {}
    for move in moves:
        group = state.seats[move.vm].group
        if group is not None:
            met.setdefault(group, {})[move.vm] = None
            coming.setdefault(group, {})[move.target] = None
    for group, targets in coming.items():
        for host in targets:
            peers = (vm for vm in state.residents.get(host, ()) if state.seats[vm].group == group)
            met[group] |= dict.fromkeys(peers)
        if len(met[group]) > 1:
            yield KeepApart(id=RuleId(f"group:{group}"), vms=tuple(met[group]), continuous=True)
