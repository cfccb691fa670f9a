"""Actions on hosts, VMs and roles: what each one touches, and the state change that it makes.

Names are imperative. An action has no times; a ``Step`` has those.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from equipoise.model.host import HostState
from equipoise.model.quantity import (
    Amount,
    HostId,
    HostKey,
    ProcessorId,
    ResourceNameKey,
    RoleGroupKey,
    RoleKey,
    Version,
    VmId,
    VmKey,
)
from equipoise.model.roles.state import GroupRole, RoleInstance
from equipoise.model.value import Value
from equipoise.model.vm import VmState


class PowerOn(Value, tag="power_on", tag_field="do"):
    """Power on a host that is in standby. It accepts VMs after the action has ended."""

    host: HostKey


class PowerOff(Value, tag="power_off", tag_field="do"):
    """Put an empty host into standby. It accepts no VMs from the start of the action on."""

    host: HostKey


class EnterMaintenance(Value, tag="enter_maintenance", tag_field="do"):
    """Take an empty host out of service. It accepts no VMs from the start of the action on."""

    host: HostKey


class LeaveMaintenance(Value, tag="leave_maintenance", tag_field="do"):
    """Bring a host back into service. It accepts VMs after the action has ended."""

    host: HostKey


class Forge(Value, tag="forge", tag_field="do"):
    """Create a VM from its template: ``init`` to ``ready``."""

    vm: VmKey


class Boot(Value, tag="boot", tag_field="do"):
    """Start a ready VM on a host. It occupies capacity there from the start of the action on."""

    vm: VmKey
    target: HostKey


class Shutdown(Value, tag="shutdown", tag_field="do"):
    """Stop a running VM. It occupies its host until the end of the action; then it is ``ready``."""

    vm: VmKey
    source: HostKey


class Migrate(Value, tag="migrate", tag_field="do"):
    """Move a running VM. It occupies both hosts and runs on the source until the end."""

    vm: VmKey
    source: HostKey
    target: HostKey


class Reinstantiate(Value, tag="reinstantiate", tag_field="do"):
    """Replace a running VM by a new instance on another host, instead of copying its memory.

    A second instance is created from the template and booted on the target; then the first one is
    shut down. The VM occupies both hosts, as in a migration, and runs on the source until the end.
    """

    vm: VmKey
    source: HostKey
    target: HostKey


class Suspend(Value, tag="suspend", tag_field="do"):
    """Suspend a running VM on its host."""

    vm: VmKey
    source: HostKey


class Resume(Value, tag="resume", tag_field="do"):
    """Resume a sleeping VM, on its own host or on another one."""

    vm: VmKey
    source: HostKey
    target: HostKey


class Allocate(Value, tag="allocate", tag_field="do"):
    """Change what a running VM consumes of a named resource."""

    vm: VmKey
    resource: ResourceNameKey
    amount: Amount


class Kill(Value, tag="kill", tag_field="do"):
    """Terminate a VM, from any state."""

    vm: VmKey


class _RoleActionBase(Value, tag_field="do"):
    """An action on a role. Either ``host`` or ``vm`` is given: the processor of the role."""

    # Two keys, not one ``processor``: a file says which of the two kinds it means.
    group: RoleGroupKey
    role: RoleKey
    host: HostKey | None = None
    vm: VmKey | None = None
    epoch: Version = 0
    """The epoch of the leader. A world refuses an epoch lower than the highest it has received."""

    @property
    def processor(self) -> ProcessorId:
        """The host or VM that runs the role."""
        return ProcessorId(self.host or self.vm or "")

    @property
    def group_role(self) -> GroupRole:
        """The role of the group, without the processor."""
        return GroupRole(self.group, self.role)

    @property
    def role_instance(self) -> RoleInstance:
        """The role of the group on its processor."""
        return RoleInstance(self.group, self.role, self.processor)


class StartRole(_RoleActionBase, tag="start_role"):
    """Start the applications of a role. The processor holds it after the action has ended."""


class StopRole(_RoleActionBase, tag="stop_role"):
    """Stop the applications of a role. The processor holds it until the action has ended."""


HostAction = PowerOn | PowerOff | EnterMaintenance | LeaveMaintenance
VmAction = Forge | Boot | Shutdown | Migrate | Reinstantiate | Suspend | Resume | Allocate | Kill
RoleAction = StartRole | StopRole
Action = HostAction | VmAction | RoleAction
Move = Migrate | Reinstantiate
"""The actions that take a running VM to another host."""


class Footprint(NamedTuple):
    """The VM and hosts that an action touches."""

    vm: VmId | None = None
    source: HostId | None = None
    """The host whose capacity the action frees at its end."""
    target: HostId | None = None
    """The host whose capacity the action occupies from its start on."""
    switched: HostId | None = None
    """The host whose state the action changes."""
    used: HostId | None = None
    """The host on which the action runs without a change of capacity."""

    @property
    def hosts(self) -> tuple[HostId, ...]:
        """Every host that the action touches, each once."""
        # A resume may name its own host as source and as target.
        return tuple(dict.fromkeys(host for host in self[1:] if host is not None))


def footprint(action: Action) -> Footprint:
    """Return the VM and hosts that an action touches."""
    match action:  # the most frequent actions first: this is a hot function
        case Migrate() | Reinstantiate() | Resume():
            return Footprint(action.vm, action.source, action.target)
        case PowerOn() | PowerOff() | EnterMaintenance() | LeaveMaintenance():
            return Footprint(switched=action.host)
        case StartRole() | StopRole():
            return Footprint(vm=action.vm, used=action.host)
        case Boot():
            return Footprint(vm=action.vm, target=action.target)
        case Shutdown() | Suspend():
            return Footprint(vm=action.vm, source=action.source)
        case Forge() | Allocate() | Kill():
            return Footprint(vm=action.vm)


def kind_of(action: Action | type[Action]) -> str:
    """Return the kind of an action, as files name it."""
    return str(action.__struct_config__.tag)


def describe(action: Action) -> str:
    """Return an action as text for tables, reasons and reports."""
    match action:
        case PowerOn() | PowerOff() | EnterMaintenance() | LeaveMaintenance():
            return _HOST_TEXTS[type(action)].format(action.host)
        case Migrate() | Reinstantiate():
            verb = "migrate" if isinstance(action, Migrate) else "reinstantiate"
            return f"{verb} {action.vm} from {action.source} to {action.target}"
        case Resume():
            place = "" if action.source == action.target else f" from {action.source}"
            return f"resume {action.vm}{place} on {action.target}"
        case Boot():
            return f"boot {action.vm} on {action.target}"
        case Shutdown():
            return f"shut down {action.vm} on {action.source}"
        case Suspend():
            return f"suspend {action.vm} on {action.source}"
        case Allocate():
            return f"allocate {action.amount} {action.resource} to {action.vm}"
        case Forge() | Kill():
            return f"{kind_of(action)} {action.vm}"
        case StartRole() | StopRole():
            verb = "start" if isinstance(action, StartRole) else "stop"
            return f"{verb} {action.role} of {action.group} on {action.processor}"


_HOST_TEXTS: Final[dict[type[HostAction], str]] = {
    PowerOn: "power on {}",
    PowerOff: "power off {}",
    EnterMaintenance: "put {} into maintenance",
    LeaveMaintenance: "take {} out of maintenance",
}


HOST_TRANSITIONS: Final[dict[type[HostAction], tuple[HostState, HostState]]] = {
    PowerOn: (HostState.STANDBY, HostState.ON),
    PowerOff: (HostState.ON, HostState.STANDBY),
    EnterMaintenance: (HostState.ON, HostState.MAINTENANCE),
    LeaveMaintenance: (HostState.MAINTENANCE, HostState.ON),
}
"""The state that a host action needs, and the state to which it leads."""

VM_TRANSITIONS: Final[dict[type[Action], tuple[VmState, VmState]]] = {
    Forge: (VmState.INIT, VmState.READY),
    Boot: (VmState.READY, VmState.RUNNING),
    Shutdown: (VmState.RUNNING, VmState.READY),
    Migrate: (VmState.RUNNING, VmState.RUNNING),
    Reinstantiate: (VmState.RUNNING, VmState.RUNNING),
    Suspend: (VmState.RUNNING, VmState.SLEEPING),
    Resume: (VmState.SLEEPING, VmState.RUNNING),
}
"""The state that an action needs of its VM, and the state to which it leads.

``Kill`` is not here, because it is allowed from every state.
"""


class VmTransition(NamedTuple):
    """The change of state and host that an action makes to a VM."""

    state_before: VmState
    host_before: HostId | None
    state_after: VmState
    host_after: HostId | None


def vm_transition(action: Action) -> VmTransition | None:
    """Return the transition of the VM of an action; ``None`` if it is not in ``VM_TRANSITIONS``."""
    states = VM_TRANSITIONS.get(type(action))
    if states is None:
        return None
    before, after = states
    touched = footprint(action)
    # A VM without a target stays where it is, as long as its state has a host.
    host_after = touched.target or (touched.source if after.has_host else None)
    return VmTransition(before, touched.source, after, host_after)
