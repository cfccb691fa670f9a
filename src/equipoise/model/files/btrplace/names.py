"""What VMs, nodes and resources are called: numbers there, names here.

The VM 7 is ``vm7`` and the node 7 is ``node7``. Resources keep their names but for two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from equipoise.model.files.btrplace.form import NUMBER_MAX
from equipoise.model.problem import Problem
from equipoise.model.quantity import HostId, ResourceName, VmId

OURS: Final = {"cpu": ResourceName("cpu_units"), "memory": ResourceName("memory_units")}
"""In rules of ours ``cpu`` and ``memory`` are what is reserved of a host, not named resources."""
_THEIRS: Final = {ours: theirs for theirs, ours in OURS.items()}


def vm_name(number: int) -> VmId:
    """What the VM of a number is called."""
    return VmId(f"vm{number}")


def host_name(number: int) -> HostId:
    """What the node of a number is called."""
    return HostId(f"node{number}")


def our_resource(theirs: str) -> ResourceName:
    """What a resource of theirs is called here."""
    return OURS.get(theirs, ResourceName(theirs))


def their_resource(ours: str) -> str:
    """What a resource of ours is called there."""
    return _THEIRS.get(ResourceName(ours), ours)


class Numbering(NamedTuple):
    """The numbers of a problem's VMs and hosts.

    Those that came from BtrPlace have the number that is in their name. If a single one of the VMs
    has none in its name, all are numbered in the order of the problem; the hosts likewise.
    """

    vms: dict[str, int]
    hosts: dict[str, int]

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Number a problem's VMs and hosts."""
        cluster = problem.cluster
        return cls(
            numbered([vm.id for vm in cluster.vms], "vm"),
            numbered([host.id for host in cluster.hosts], "node"),
        )

    @property
    def vm_names(self) -> dict[int, VmId]:
        """The VMs by their numbers."""
        return {number: VmId(name) for name, number in self.vms.items()}

    @property
    def host_names(self) -> dict[int, HostId]:
        """The hosts by their numbers."""
        return {number: HostId(name) for name, number in self.hosts.items()}


def numbered(names: Sequence[str], prefix: str) -> dict[str, int]:
    """Number what has a name such as ``switch7``, by it if all have one."""
    own = {name: _number_in(name, prefix) for name in names}
    if all(number is not None for number in own.values()):
        return {name: number for name, number in own.items() if number is not None}
    return {name: place for place, name in enumerate(names)}


def _number_in(name: str, prefix: str) -> int | None:
    digits = name.removeprefix(prefix)
    if digits == name or not (digits.isascii() and digits.isdigit()):
        return None
    number = int(digits) if len(digits) <= len(str(NUMBER_MAX)) else NUMBER_MAX + 1
    return number if str(number) == digits and number <= NUMBER_MAX else None
