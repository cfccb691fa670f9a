"""The gate for VM moves: ``plan.verify`` checks the moves of a sub-iteration as a plan.

The snapshot for the gate holds only the part of the cluster that the moves can affect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.model.action import Migrate
from equipoise.model.plan import Plan, Step
from equipoise.model.quantity import GroupId, HostId, PlanId, RuleId, StepId, VmId
from equipoise.model.rule import KeepApart, Rule, Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.upgrade.work import VmMove
from equipoise.plan import Refusal, verify
from equipoise.upgrade.inventory_view import partial_inventory
from equipoise.upgrade.state import UpgradeState


def admit_moves(state: UpgradeState, moves: Sequence[VmMove]) -> tuple[tuple[VmMove, ...], str]:
    """Return the moves that pass the gate together, and why the others do not."""
    whole = whole_blocks(state, moves)
    reason = refusal_reason(state, whole)
    if not reason:
        text = "" if len(whole) == len(moves) else "VMs of an affinity group can only move together"
        return whole, text
    return whole_blocks(state, _passing_moves(state, (), whole)), reason


def whole_blocks(state: UpgradeState, moves: Sequence[VmMove]) -> tuple[VmMove, ...]:
    """Return the moves that leave no VM of an affinity group behind on its host."""
    if not state.cluster.together:
        return tuple(moves)
    target_of = {move.vm: move.target for move in moves}
    return tuple(
        move
        for move in moves
        if all(target_of.get(mate) == move.target for mate in state.cluster.block_of(move.vm))
    )


def _passing_moves(
    state: UpgradeState, kept: tuple[VmMove, ...], more: tuple[VmMove, ...]
) -> tuple[VmMove, ...]:
    """Add the moves of ``more`` that pass together with ``kept``. Refused lists are halved."""
    if not refusal_reason(state, (*kept, *more)):
        return (*kept, *more)
    if len(more) == 1:
        return kept
    # Halving finds the refused moves with few calls of the gate if most pass.
    middle = len(more) // 2
    kept = _passing_moves(state, kept, more[:middle])
    return _passing_moves(state, kept, more[middle:])


def refusal_reason(state: UpgradeState, moves: Sequence[VmMove]) -> str:
    """Return why the gate refuses moves that start side by side; empty if it admits them."""
    if not moves:
        return ""
    steps = tuple(
        Step(
            id=StepId(f"move-{move.vm}"),
            action=Migrate(vm=move.vm, source=move.source, target=move.target),
            # At least 1 ms: the gate judges the moment in which the VM is on both hosts.
            end_ms=max(1, state.settings.vm_move_s * 1000),
        )
        for move in moves
    )
    apart = tuple(_anti_affinity_rules(state, moves))
    # A move away from a host shared with a group member repairs the anti-affinity rule.
    repairs = tuple(rule.id for rule in apart)
    plan = Plan(id=PlanId("vms"), steps=steps, repairs=repairs)
    verdict = verify(_affected_snapshot(state, moves, apart), plan)
    return verdict.violations[0].detail if isinstance(verdict, Refusal) else ""


def _affected_snapshot(
    state: UpgradeState, moves: Sequence[VmMove], apart: Sequence[Rule]
) -> Snapshot:
    """Return sources and targets with all their VMs, and the VMs that their rules name."""
    hosts = dict.fromkeys(host for move in moves for host in (move.source, move.target))
    moving = dict.fromkeys(move.vm for move in moves)
    rules, named = _rules_about(state, set(moving))
    other_vms = moving | named
    if any(isinstance(rule, Satisfy) for rule in rules):  # a formula can read the whole cluster
        hosts |= dict.fromkeys(state.cluster.compute_hosts)
        other_vms = dict.fromkeys(state.cluster.placements)
    return Snapshot.of(partial_inventory(state, tuple(hosts), tuple(other_vms), (*rules, *apart)))


def _rules_about(state: UpgradeState, moving: set[VmId]) -> tuple[list[Rule], dict[VmId, None]]:
    """Return the hard rules that moves can break, and the VMs that they name."""
    rules: list[Rule] = []
    named: dict[VmId, None] = {}
    for rule in state.campaign.cluster.rules:
        if isinstance(rule, Satisfy):
            rules.append(rule)
        elif not moving.isdisjoint(rule.vms):
            rules.append(rule)
            named |= {vm: None for vm in rule.vms if vm in state.cluster.placements}
    return rules, named


def _anti_affinity_rules(state: UpgradeState, moves: Sequence[VmMove]) -> Iterator[KeepApart]:
    """Yield, for each group, a rule on its moving VMs and the members on their targets."""
    members: dict[GroupId, dict[VmId, None]] = {}
    targets_of: dict[GroupId, dict[HostId, None]] = {}
    for move in moves:
        for group in state.cluster.placements[move.vm].groups:
            members.setdefault(group, {})[move.vm] = None
            targets_of.setdefault(group, {})[move.target] = None
    for group, targets in targets_of.items():
        for host in targets:
            residents = (
                vm
                for vm in state.cluster.residents.get(host, ())
                if group in state.cluster.placements[vm].groups
            )
            members[group] |= dict.fromkeys(residents)
        if len(members[group]) > 1:
            yield KeepApart(id=RuleId(f"group:{group}"), vms=tuple(members[group]), continuous=True)
