"""Moves that surely pass the gate, so that it need not be asked beforehand.

If everybody who comes has room and clashes with nobody while nobody has left yet, then every order
of the moves is right. That is so for most of them, and costs a hundredth of a rehearsal. The gate
judges the plan all the same before it is carried out.
"""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.balance.mending.standing import Standing
from equipoise.model.quantity import HostId, VmId
from equipoise.spec.rules import broken_rules


def surely_pass(standing: Standing, moves: Sequence[tuple[VmId, HostId]]) -> bool:
    """Whether VMs can go to hosts in any order; no if that cannot be told so simply.

    ``standing`` is how things stand before, with nothing wrong.
    """
    rules = standing.rules
    if rules.others or rules.like or standing.problems or standing.snapshot.in_flight:
        return False
    reserves = {rule for rule, _ in rules.failures}
    if reserves and any(broken_rules(standing.snapshot, reserves)):
        return False  # no move changes that, but the gate lets nothing pass meanwhile
    moving = {vm for vm, _ in moves}
    if any(not moving.isdisjoint(group.vms) for group in rules.together):
        return False  # they would be apart while they are on their way
    held: list[tuple[VmId, HostId]] = []
    try:
        for vm, host in moves:
            if standing.lacks(vm, host) or standing.clashes(vm, host):
                return False
            standing.hold(vm, host)
            held.append((vm, host))
        return True
    finally:
        for vm, host in held:
            standing.release(vm, host)
