"""Short trials for BtrPlace: three hosts that are on and one that is not, and some VMs.

``a`` runs on ``h1``, ``b`` on ``h2``; ``q`` and ``r`` are ready, and ``s`` sleeps on ``h3``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.trial import Trial
from equipoise.model.action import (
    Action,
    Boot,
    Kill,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Requirement

LICENCES = {"licences": 1}
HOSTS = (
    *(a_host(name, capacity={"licences": 2}) for name in ("h1", "h2", "h3")),
    a_host("h4", capacity={"licences": 2}, state=HostState.STANDBY),
)
VMS = (
    a_vm("a", "h1", consumption=LICENCES),
    a_vm("b", "h2", consumption=LICENCES),
    a_vm("q", consumption=LICENCES),
    a_vm("r", consumption=LICENCES),
    a_vm("s", "h3", state=VmState.SLEEPING, consumption=LICENCES),
)


def a_demand(name: str, *, continuous: bool | None = None, **arguments: Any) -> Requirement:
    """A constraint of the library; what is in brackets is a set, or a set of sets."""
    home = library_constraints()[name]
    frozen = {key: _frozen(value) for key, value in arguments.items()}
    if continuous is None:
        continuous = "discrete" not in home.constraints[name].marks
    return Requirement(home, name, frozen, continuous=continuous)


def _frozen(value: Any) -> Any:
    return frozenset(map(_frozen, value)) if isinstance(value, list) else value


def a_trial(
    demand: Requirement, *steps: Step, hosts: Iterable[Host] = HOSTS, vms: Iterable[Vm] = VMS
) -> Trial:
    """A trial in that cluster; steps may all have the same id."""
    numbered = [step.but(id=f"s{number}") for number, step in enumerate(steps)]
    return Trial(demand, a_cluster(*hosts, vms=vms), tuple(numbered))


def do(action: Action, start_s: int = 0, end_s: int | None = None) -> Step:
    """A step; it takes one second by default."""
    return a_step("s", action, 1000 * start_s, 1000 * (start_s + 1 if end_s is None else end_s))


def boot(vm: str, target: str) -> Boot:
    return Boot(vm=VmId(vm), target=HostId(target))


def move(vm: str, source: str, target: str) -> Migrate:
    return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))


def stop(vm: str, source: str) -> Shutdown:
    return Shutdown(vm=VmId(vm), source=HostId(source))


def suspend(vm: str, source: str) -> Suspend:
    return Suspend(vm=VmId(vm), source=HostId(source))


def resume(vm: str, source: str, target: str) -> Resume:
    return Resume(vm=VmId(vm), source=HostId(source), target=HostId(target))


def kill(vm: str) -> Kill:
    return Kill(vm=VmId(vm))


def wake(host: str) -> PowerOn:
    return PowerOn(host=HostId(host))


def sleep(host: str) -> PowerOff:
    return PowerOff(host=HostId(host))
