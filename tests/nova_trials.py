"""Short trials for Nova's filters: a VM ``v`` that comes to a host ``h``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.trial import Trial
from equipoise.model.action import Action, Boot
from equipoise.model.host import Host
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Requirement

BOOT_V_ON_H = Boot(vm=VmId("v"), target=HostId("h"))


def asleep(name: str, host: str) -> Vm:
    return a_vm(name, host, state=VmState.SLEEPING)


def a_demand(name: str, **arguments: Any) -> Requirement:
    """A constraint of the library; sets may be given as lists."""
    specification = library_constraints()[name]
    frozen = {
        key: frozenset(value) if isinstance(value, list) else value
        for key, value in arguments.items()
    }
    continuous = "continuous" in specification.constraints[name].marks
    return Requirement(specification, name, frozen, continuous=continuous)


def a_placement(
    demand: Requirement,
    *,
    host: Host | None = None,
    vm: Vm | None = None,
    vms: Iterable[Vm] = (),
    others: Iterable[Action] = (),
) -> Trial:
    """A trial with hosts ``h`` and ``g``, where ``v`` is booted on ``h``, and others come too."""
    snapshot = a_cluster(host or a_host("h"), a_host("g"), vms=[vm or a_vm("v"), *vms])
    steps = (a_step(f"o{n}", action) for n, action in enumerate(others))
    return Trial(demand, snapshot, (*steps, a_step("s", BOOT_V_ON_H)))
