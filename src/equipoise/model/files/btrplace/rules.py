"""What an instance demands: as aims where it is about the state of one VM or host, else as rules.

A rule is one of kind ``satisfy`` that names a constraint of the library, which has those of
BtrPlace under their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from equipoise.model.files.btrplace import form
from equipoise.model.files.btrplace.speech import Speech
from equipoise.model.problem import HostAim, VmAim
from equipoise.model.quantity import RuleId
from equipoise.model.rule import Argument, Satisfy

Arguments = Mapping[str, Argument]

_VM_AIMS: Final[dict[type, VmAim]] = {
    form.Running: VmAim.RUNNING,
    form.Ready: VmAim.READY,
    form.Sleeping: VmAim.SLEEPING,
    form.Killed: VmAim.KILLED,
}
_HOST_AIMS: Final[dict[type, HostAim]] = {
    form.Online: HostAim.ONLINE,
    form.Offline: HostAim.OFFLINE,
}
_ALWAYS_CONTINUOUS: Final = form.Root | form.Quarantine
_NEVER_CONTINUOUS: Final = (
    form.VmWish | form.HostWish | form.Preserve | form.Seq | form.NoDelay | form.Sync
    | form.Serialize | form.Precedence | form.Deadline
)  # fmt: skip


class Wishes:
    """Takes the constraints of a file one by one."""

    def __init__(self, said: Speech) -> None:
        self.vms: dict[str, VmAim] = {}
        self.hosts: dict[str, HostAim] = {}
        self.rules: list[Satisfy] = []
        self.overbooked: dict[tuple[str, int], float] = {}
        """How many times what it has a node may give, by resource and node."""
        self._said = said

    def take_all(self, constraints: Iterable[form.Constraint]) -> None:
        """Take all of them, and find what is wrong with each."""
        for place, one in enumerate(constraints):
            self._said.path = ("constraints", place)
            if isinstance(one, form.VmWish):
                self._aim_vm(one, place)
            elif isinstance(one, form.HostWish):
                self._aim_host(one, place)
            elif isinstance(one, form.Overbook):
                self._overbook(one)
            else:
                self._rule(one, place, _ARGUMENTS[type(one)](one, self._said))

    # Two aims for one VM or host cannot both come true. The second becomes a rule, so that who
    # explains why there is no plan can name both.

    def _aim_vm(self, one: form.VmWish, place: int) -> None:
        name, aim = self._said.vm(one.vm), _VM_AIMS[type(one)]
        if self.vms.setdefault(name, aim) is not aim:
            self._rule(one, place, {"v": name})

    def _aim_host(self, one: form.HostWish, place: int) -> None:
        name, aim = self._said.host(one.node), _HOST_AIMS[type(one)]
        if self.hosts.setdefault(name, aim) is not aim:
            self._rule(one, place, {"n": name})

    def _rule(self, one: form.Constraint, place: int, arguments: Arguments) -> None:
        tag = str(one.__struct_config__.tag)
        always = isinstance(one, _ALWAYS_CONTINUOUS)
        self.rules.append(
            Satisfy(
                id=RuleId(f"{tag[0].lower()}{tag[1:]}-{place}"),
                constraint=type(one).__name__,
                arguments=arguments,
                continuous=always or (one.continuous and not isinstance(one, _NEVER_CONTINUOUS)),
            )
        )

    def _overbook(self, one: form.Overbook) -> None:
        """Note by how much a node may be overbooked; of several ratios the lowest counts.

        This makes no rule: it would come on top of the one that no host gives more than it has,
        which would still hold. So the host is said to have as much as it may give.
        """
        self._said.resource(one.resource)
        self._said.host(one.node)
        key = (one.resource, one.node)
        self.overbooked[key] = min(self.overbooked.get(key, one.ratio), one.ratio)
        self._said.check_overbooked(one)


def _of_vms(one: Any, said: Speech) -> Arguments:
    return {"vs": said.vms(one.vms)}


def _of_place(one: Any, said: Speech) -> Arguments:
    return {"v": said.vm(one.vm), "ns": said.hosts(one.nodes)}


def _of_vm(one: Any, said: Speech) -> Arguments:
    return {"v": said.vm(one.vm)}


def _of_number(one: Any, said: Speech) -> Arguments:
    return {"ns": said.hosts(one.nodes), "nb": one.amount}


def _split_among(one: form.SplitAmong, said: Speech) -> Arguments:
    return {
        "vs": said.vm_groups(one.vm_parts, "vParts"),
        "parts": said.host_groups(one.node_parts, "pParts"),
    }


def _resource_capacity(one: form.ResourceCapacity, said: Speech) -> Arguments:
    return {
        "ns": said.hosts(one.nodes),
        "id": said.resource(one.resource),
        "qty": one.amount,
    }


def _preserve(one: form.Preserve, said: Speech) -> Arguments:
    return {"v": said.vm(one.vm), "id": said.resource(one.resource), "amount": one.amount}


_ARGUMENTS: Final[dict[type, Callable[[Any, Speech], Arguments]]] = {
    form.Spread: _of_vms,
    form.Gather: _of_vms,
    form.Lonely: _of_vms,
    form.Sync: _of_vms,
    form.Serialize: _of_vms,
    form.Seq: lambda one, said: {"vs": said.queue(one.vms)},
    form.Split: lambda one, said: {"parts": said.vm_groups(one.parts, "parts")},
    form.Among: lambda one, said: {
        "vs": said.vms(one.vms),
        "parts": said.host_groups(one.parts, "parts"),
    },
    form.SplitAmong: _split_among,
    form.Fence: _of_place,
    form.Ban: _of_place,
    form.Root: _of_vm,
    form.NoDelay: _of_vm,
    form.Quarantine: lambda one, said: {"n": said.host(one.node)},
    form.MaxOnline: _of_number,
    form.RunningCapacity: _of_number,
    form.ResourceCapacity: _resource_capacity,
    form.Preserve: _preserve,
    form.Precedence: lambda one, said: {
        "before": said.vm(one.before, "vm1"),
        "after": said.vm(one.after, "vm2"),
    },
    form.Deadline: lambda one, said: {"v": said.vm(one.vm), "ms": said.by(one.timestamp)},
}
"""The arguments that the library's constraint of the same name is given."""
