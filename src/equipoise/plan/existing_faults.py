"""Existing faults: what is wrong with a cluster before any plan.

The gate does not charge a plan with them (ADR 4). So they are named beside its verdict: broken hard
rules, hosts that are too full, and pairs on one host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from equipoise.capacity.ledger import CommittedCapacity, claimed_resources
from equipoise.model.plan import Plan, Violation
from equipoise.model.quantity import PlanId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.verify import replay_violations
from equipoise.spec.judge import Charge, SpecificationJudge
from equipoise.spec.rules import requirements_of

_NOTHING: Final = PlanId("nothing")


def existing_faults(snapshot: Snapshot) -> tuple[Violation, ...]:
    """Return what violates rules and limits before any plan, each with a code."""
    return (*_broken_rules(snapshot), *_full_hosts(snapshot), *_pairs(snapshot))


def _broken_rules(snapshot: Snapshot) -> Iterator[Violation]:
    requirements = requirements_of(snapshot.settings, snapshot).valid
    if not requirements:
        return
    judge = SpecificationJudge(requirements, charge=Charge.EVERYTHING)
    empty = Plan(id=_NOTHING, base_version=snapshot.version, steps=())
    for violation in replay_violations(snapshot, empty, [judge]):
        yield violation.but(code="already-violated")


def _full_hosts(snapshot: Snapshot) -> Iterator[Violation]:
    capacity = CommittedCapacity.of(snapshot)
    resources = claimed_resources(snapshot)
    for host in snapshot.hosts:
        for resource in resources:
            excess = -capacity.free(host, resource)
            if excess > 0:
                limit = capacity.limits[host].get(resource, 0)
                detail = f"{host} has {limit} {resource}, and its VMs hold {excess} more"
                yield Violation(constraint="capacity", at_ms=0, detail=detail, code="no-capacity")


def _pairs(snapshot: Snapshot) -> Iterator[Violation]:
    placement = snapshot.placement
    for vm in snapshot.vms.values():
        other = vm.ft_pair
        # Each pair once, in the order of the file.
        if other is None or other not in snapshot.vms or not vm.id < other:
            continue
        host = placement.get(vm.id)
        if host is not None and host == placement.get(other):
            detail = f"{vm.id} and {other}, a fault-tolerant pair, are both on {host}"
            yield Violation(constraint="ft_pair", at_ms=0, detail=detail, code="ft-pair-conflict")
