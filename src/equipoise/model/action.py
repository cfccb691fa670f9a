"""Actions: what can be done to hosts and VMs. Imperative names; no times (a ``Step`` has those)."""

from __future__ import annotations

from typing import NamedTuple

from equipoise.model.quantity import (
    Amount,
    HostId,
    HostKey,
    NameKey,
    ProcessorId,
    RoleKey,
    TeamKey,
    Version,
    VmId,
    VmKey,
)
from equipoise.model.roles.duty import Duty, Post
from equipoise.model.value import Value


class PowerOn(Value, tag="power_on", tag_field="do"):
    """Wake a host from standby. VMs may come once it has ended."""

    host: HostKey


class PowerOff(Value, tag="power_off", tag_field="do"):
    """Put an empty host to standby. It hosts nothing from the start on."""

    host: HostKey


class EnterMaintenance(Value, tag="enter_maintenance", tag_field="do"):
    """Take an empty host out of service. It hosts nothing from the start on."""

    host: HostKey


class LeaveMaintenance(Value, tag="leave_maintenance", tag_field="do"):
    """Bring a host back into service. VMs may come once it has ended."""

    host: HostKey


class Forge(Value, tag="forge", tag_field="do"):
    """Make a VM from its template: ``init`` to ``ready``."""

    vm: VmKey


class Boot(Value, tag="boot", tag_field="do"):
    """Start a ready VM on a host, which is occupied from the start on."""

    vm: VmKey
    target: HostKey


class Shutdown(Value, tag="shutdown", tag_field="do"):
    """Stop a running VM; it holds its host until the end and is ``ready`` then."""

    vm: VmKey
    source: HostKey


class Migrate(Value, tag="migrate", tag_field="do"):
    """Move a running VM. It is hosted on both, and runs on the source until the end."""

    vm: VmKey
    source: HostKey
    target: HostKey


class Reinstantiate(Value, tag="reinstantiate", tag_field="do"):
    """Make a running VM anew elsewhere, from its template, instead of moving what it has in memory.

    A second instance is forged and booted on the target, then the first is shut down. It is hosted
    on both, as while it migrates, and what counts as running is the first until the end.
    """

    vm: VmKey
    source: HostKey
    target: HostKey


class Suspend(Value, tag="suspend", tag_field="do"):
    """Put a running VM to sleep where it is."""

    vm: VmKey
    source: HostKey


class Resume(Value, tag="resume", tag_field="do"):
    """Wake a sleeping VM, on its own host or on another one."""

    vm: VmKey
    source: HostKey
    target: HostKey


class Allocate(Value, tag="allocate", tag_field="do"):
    """Change what a running VM takes of a shareable resource."""

    vm: VmKey
    resource: NameKey
    amount: Amount


class Kill(Value, tag="kill", tag_field="do"):
    """End a VM for good, in whatever state it is."""

    vm: VmKey


class _OnProcessor(Value, tag_field="do"):
    """What is done with a role, on a host or in a VM: one of the two is given."""

    group: TeamKey
    role: RoleKey
    host: HostKey | None = None
    vm: VmKey | None = None
    epoch: Version = 0
    """Who asks for it: a world refuses what is lower than the highest it has seen."""

    @property
    def processor(self) -> ProcessorId:
        """The host or VM."""
        return ProcessorId(self.host or self.vm or "")

    @property
    def duty(self) -> Duty:
        """The role, wherever it is."""
        return Duty(self.group, self.role)

    @property
    def post(self) -> Post:
        """The role, and where."""
        return Post(self.group, self.role, self.processor)


class StartRole(_OnProcessor, tag="start_role"):
    """Start the applications of a role. The processor holds it once that has ended."""


class StopRole(_OnProcessor, tag="stop_role"):
    """Stop the applications of a role. The processor holds it until that has ended."""


HostAction = PowerOn | PowerOff | EnterMaintenance | LeaveMaintenance
VmAction = Forge | Boot | Shutdown | Migrate | Reinstantiate | Suspend | Resume | Allocate | Kill
RoleAction = StartRole | StopRole
Action = HostAction | VmAction | RoleAction
Move = Migrate | Reinstantiate
"""What leads a running VM to another host."""


class Footprint(NamedTuple):
    """What an action touches, whatever its kind."""

    vm: VmId | None = None
    source: HostId | None = None
    """The host whose room it frees at its end."""
    target: HostId | None = None
    """The host whose room it takes from its start on."""
    switched: HostId | None = None
    """The host whose state it changes."""
    used: HostId | None = None
    """The host on which it happens, without taking or freeing room."""

    @property
    def hosts(self) -> tuple[HostId, ...]:
        """Every host it touches, each once."""
        return tuple(dict.fromkeys(host for host in self[1:] if host is not None))


def footprint(action: Action) -> Footprint:
    """Say what an action touches."""
    match action:  # what is asked about most often comes first
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


def describe(action: Action) -> str:
    """Say an action in words, as tables and journals show it."""
    match action:
        case PowerOn() | PowerOff() | EnterMaintenance() | LeaveMaintenance():
            return _HOST_WORDS[type(action)].format(action.host)
        case Migrate() | Reinstantiate():
            anew = f"make {action.vm} of {action.source} anew on {action.target}"
            moved = f"migrate {action.vm} from {action.source} to {action.target}"
            return moved if isinstance(action, Migrate) else anew
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
            return f"{action.__struct_config__.tag} {action.vm}"
        case StartRole() | StopRole():
            verb = "start" if isinstance(action, StartRole) else "stop"
            return f"{verb} {action.role} of {action.group} on {action.processor}"


_HOST_WORDS: dict[type[HostAction], str] = {
    PowerOn: "power on {}",
    PowerOff: "power off {}",
    EnterMaintenance: "take {} into maintenance",
    LeaveMaintenance: "bring {} back from maintenance",
}
