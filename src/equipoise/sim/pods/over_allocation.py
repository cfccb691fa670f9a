"""Over-allocation: pods on a node that together request more than it has.

The specification language judges it, with the constraint ``ResourceFit`` of the library. A node is
a host, a pod is a VM, and amounts are named resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from equipoise.model.host import Host
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm
from equipoise.sim.pods.node import PodNode
from equipoise.sim.pods.spec import PODS
from equipoise.spec.evaluate.view import EvaluationContext, PlanSteps, StateView
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Requirement

_CONSTRAINT: Final = "ResourceFit"


@dataclass(slots=True, kw_only=True)
class OverAllocation:
    """A resource of a node that was over-allocated, and the binding that led to it."""

    at_ms: int
    node: str
    resource: str
    requested: int
    """With the pod that led to it."""
    allocatable: int
    pod: str
    """The pod whose binding led to it; empty if the node shrank."""
    pods: tuple[str, ...]
    """All pods of the node, in the order of their bindings."""
    rejected: bool
    """Whether the node rejected the pod, so that nothing ran beyond its capacity."""
    explanation: str
    """Why the constraint is false, from the specification."""
    end_ms: int | None = None
    """When the requests fitted again; None if they do not yet."""


@cache
def _requirement(resource: str) -> Requirement:
    specification = library_constraints()[_CONSTRAINT]
    return Requirement(specification, _CONSTRAINT, {"id": resource}, continuous=True)


def judge_node(node: PodNode, resources: Iterable[str]) -> dict[str, str]:
    """Return, for each of these resources that is over-allocated, why the constraint is false."""
    view = StateView.of(_snapshot(node))
    context = EvaluationContext(view, view, view, PlanSteps(()), [view])
    found: dict[str, str] = {}
    for name in resources:
        failure = _requirement(_renamed(name)).failure(context)
        if failure is not None:
            found[name] = str(failure)
    return found


def _renamed(resource: str) -> ResourceName:
    # The language reads ``cpu`` and ``memory`` as reservations in MHz and MiB.
    return ResourceName(f"pod {resource}")


def _amounts(amounts: Mapping[str, int]) -> dict[ResourceName, int]:
    return {_renamed(name): amount for name, amount in amounts.items()}


def _snapshot(node: PodNode) -> Snapshot:
    host_id = HostId(node.name)
    host = Host(
        id=host_id, cores=1, mhz_per_core=1, memory_mib=1, capacity=_amounts(node.allocatable)
    )
    vms = {
        VmId(name): Vm(
            id=VmId(name), vcpus=1, memory_mib=1, host=host_id,
            consumption=_amounts({**pod.spec.requests, PODS: 1}),
        )
        for name, pod in node.pods.items()
    }  # fmt: skip
    return Snapshot(hosts=FrozenMap({host_id: host}), vms=FrozenMap(vms))
