"""Why an action may not start now: the preconditions of every action, in one place.

The gate asks it for each planned start, the executor asks it again at each real one.
"""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.action import (
    Action,
    Allocate,
    EnterMaintenance,
    Forge,
    HostAction,
    Kill,
    Migrate,
    PowerOff,
    Reinstantiate,
    Resume,
    RoleAction,
    VmAction,
)
from equipoise.model.change.lifecycle import HOST_PASSAGES, passage
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, ProcessorId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.ledger import Ledger
from equipoise.plan.objection import Objection
from equipoise.plan.role_objections import role_objections


def objections(ledger: Ledger, action: Action) -> tuple[Objection, ...]:
    """List everything that speaks against starting an action in the present state."""
    if isinstance(action, HostAction):
        return tuple(_host_action(ledger, action))
    if isinstance(action, RoleAction):
        return tuple(role_objections(ledger.draft, action))
    return tuple(_vm_action(ledger, action))


def _host_action(ledger: Ledger, action: HostAction) -> Iterator[Objection]:
    draft, name = ledger.draft, action.host
    host = draft.hosts.get(name)
    if host is None:
        yield Objection("known", f"there is no host {name}")
        return
    needed, _ = HOST_PASSAGES[type(action)]
    if host.state is not needed:
        yield Objection("host_life", f"{name} is {host.state}, not {needed}")
    busy = {running.step.id: None for running in draft.running_at(name)}
    for vm in draft.residents(name):  # not every action names the host it happens on
        busy.update((running.step.id, None) for running in draft.running_on(vm))
    for step in busy:
        yield Objection("host_life", f"{name} is still part of step {step}")
    if isinstance(action, PowerOff | EnterMaintenance):
        left = [vm for vm in draft.residents(name) if not draft.vms[vm].agent]
        if left:
            yield Objection("host_empty", f"{name} still has {_listed(left)}")
        for duty in draft.duties.held.get(ProcessorId(name), ()):
            yield Objection("host_empty", f"{name} still runs {duty.role} of {duty.group}")


def _vm_action(ledger: Ledger, action: VmAction) -> Iterator[Objection]:
    draft = ledger.draft
    vm = draft.vms.get(action.vm)
    if vm is None:
        yield Objection("known", f"there is no VM {action.vm}")
        return
    for running in draft.running_on(vm.id):
        yield Objection("one_action", f"{vm.id} is still part of step {running.step.id}")
    yield from _vm_life(vm, action)
    if isinstance(action, Migrate | Reinstantiate | Resume):
        yield from _host_ready(ledger, action.source, "source")
    elif vm.host is not None:
        yield from _being_switched(ledger, vm.host, "source")
    if isinstance(action, Allocate) and vm.host is not None:
        yield from _room_for_growth(ledger, vm, action)
    way = passage(action)
    if way is None:
        return
    if way.host_after is not None and way.state_after is VmState.RUNNING:
        yield from _target(ledger, vm, way.host_after)


def _vm_life(vm: Vm, action: VmAction) -> Iterator[Objection]:
    way = passage(action)
    if way is not None and vm.state is not way.state_before:
        yield Objection("vm_life", f"{vm.id} is {vm.state}, not {way.state_before}")
    elif way is not None and vm.host != way.host_before:
        yield Objection("vm_life", f"{vm.id} is on {vm.host}, not on {way.host_before}")
    match action:
        case Migrate() | Reinstantiate() if action.source == action.target:
            yield Objection("vm_life", f"{vm.id} is already on {action.target}")
        case Migrate() | Reinstantiate() | Resume() if vm.agent and action.source != action.target:
            yield Objection("agent_stays", f"{vm.id} is an agent of {vm.host} and stays with it")
        case Allocate() if vm.state is not VmState.RUNNING:
            yield Objection("vm_life", f"{vm.id} is {vm.state}, not running")
        case Kill() if vm.state is VmState.TERMINATED:
            yield Objection("vm_life", f"{vm.id} is already terminated")
        case Forge() | Reinstantiate() if vm.template is None:
            yield Objection("vm_life", f"{vm.id} has no template to be forged from")
        case Reinstantiate() if not vm.replaceable:
            yield Objection("vm_life", f"{vm.id} is not replaceable, so it is not made anew")


def _host_ready(ledger: Ledger, name: HostId, role: str) -> Iterator[Objection]:
    host = ledger.draft.hosts.get(name)
    if host is None:
        yield Objection("known", f"there is no host {name}")
        return
    if host.state is not HostState.ON:
        yield Objection("host_on", f"{role} {name} is {host.state}, not on")
    yield from _being_switched(ledger, name, role)


def _being_switched(ledger: Ledger, name: HostId, role: str) -> Iterator[Objection]:
    for running in ledger.draft.running_at(name):
        if running.step.footprint.switched == name:
            yield Objection("host_on", f"{role} {name} is being switched by {running.step.id}")


def _target(ledger: Ledger, vm: Vm, name: HostId) -> Iterator[Objection]:
    draft = ledger.draft
    yield from _host_ready(ledger, name, "target")
    host = draft.hosts.get(name)
    if host is None:
        return
    if vm.vcpus > host.cores:
        yield Objection("fits", f"{vm.id} has {vm.vcpus} vCPUs, {name} only {host.cores} cores")
    if vm.ft_pair is not None and name in ledger.occupied(vm.ft_pair):
        yield Objection("ft_pair", f"{vm.ft_pair}, the other half of {vm.id}, is on {name}")
    if name not in ledger.occupied(vm.id):  # who already holds room there needs no more
        yield from _room(ledger, vm, host)


def _room(ledger: Ledger, vm: Vm, host: Host) -> Iterator[Objection]:
    used = ledger.usage(host.id)
    needs = [
        ("MHz of CPU", vm.cpu.reservation_mhz, used.cpu_mhz, host.usable_cpu_mhz),
        ("MiB of memory", vm.memory.reservation_mib, used.memory_mib, host.usable_memory_mib),
    ]
    needs += [
        (str(name), amount, used.named.get(name, 0), host.capacity.get(name, 0))
        for name, amount in vm.consumption.items()
    ]
    # Only what this VM adds is its fault: a host that is already too full may still lose VMs.
    for resource, need, held, capacity in needs:
        if need > 0 and held + need > capacity:
            yield Objection(
                "capacity",
                f"{vm.id} needs {need} {resource} on {host.id}, "
                f"which has {max(0, capacity - held)} of {capacity} left",
            )


def _room_for_growth(ledger: Ledger, vm: Vm, action: Allocate) -> Iterator[Objection]:
    assert vm.host is not None
    host = ledger.draft.hosts[vm.host]
    held = ledger.usage(host.id).named.get(action.resource, 0)
    capacity = host.capacity.get(action.resource, 0)
    growth = action.amount - vm.consumption.get(action.resource, 0)
    if growth > 0 and held + growth > capacity:
        yield Objection(
            "capacity",
            f"{vm.id} needs {growth} more {action.resource} on {host.id}, "
            f"which has {max(0, capacity - held)} of {capacity} left",
        )


def _listed(names: list[VmId]) -> str:
    shown, more = ", ".join(names[:3]), len(names) - 3
    return f"{shown} and {more} more" if more > 0 else shown
