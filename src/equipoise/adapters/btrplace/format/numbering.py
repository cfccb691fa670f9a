"""Numbering: BtrPlace has numbers for VMs, nodes and resources, the model has ids.

The VM 7 is ``vm7`` and the node 7 is ``node7``. Resources keep their names, except two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from equipoise.adapters.btrplace.format.records import NUMBER_MAX
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import HostId, ResourceName, VmId

RENAMED_RESOURCES: Final = {
    "cpu": ResourceName("cpu_units"),
    "memory": ResourceName("memory_units"),
}
"""In rules of the model ``cpu`` and ``memory`` are reservations, not named resources."""
_BTRPLACE_NAMES: Final = {
    model_name: btrplace_name for btrplace_name, model_name in RENAMED_RESOURCES.items()
}


def vm_id(number: int) -> VmId:
    """Return the id of a VM by its number."""
    return VmId(f"vm{number}")


def host_id(number: int) -> HostId:
    """Return the id of a node by its number."""
    return HostId(f"node{number}")


def from_btrplace_resource(btrplace_name: str) -> ResourceName:
    """Return the name in the model of a resource of BtrPlace."""
    return RENAMED_RESOURCES.get(btrplace_name, ResourceName(btrplace_name))


def to_btrplace_resource(model_name: str) -> str:
    """Return the name in BtrPlace of a resource of the model."""
    return _BTRPLACE_NAMES.get(ResourceName(model_name), model_name)


class Numbering(NamedTuple):
    """The numbers of a problem's VMs and hosts.

    VMs that came from BtrPlace keep the number in their id. If one VM has no number in its id, all
    are numbered in the order of the problem. The same holds for hosts.
    """

    vms: dict[str, int]
    hosts: dict[str, int]

    @classmethod
    def of(cls, problem: PlanningProblem) -> Self:
        """Return the numbering of a problem."""
        cluster = problem.cluster
        return cls(
            assign_numbers([vm.id for vm in cluster.vms], "vm"),
            assign_numbers([host.id for host in cluster.hosts], "node"),
        )

    @property
    def vm_names(self) -> dict[int, VmId]:
        """The VMs by their numbers."""
        return {number: VmId(name) for name, number in self.vms.items()}

    @property
    def host_names(self) -> dict[int, HostId]:
        """The hosts by their numbers."""
        return {number: HostId(name) for name, number in self.hosts.items()}


def assign_numbers(names: Sequence[str], prefix: str) -> dict[str, int]:
    """Return a number for each name: that in the name, as in ``switch7``, if all have one."""
    own = {name: _number_in(name, prefix) for name in names}
    if all(number is not None for number in own.values()):
        return {name: number for name, number in own.items() if number is not None}
    return {name: position for position, name in enumerate(names)}


def _number_in(name: str, prefix: str) -> int | None:
    digits = name.removeprefix(prefix)
    if digits == name or not (digits.isascii() and digits.isdigit()):
        return None
    number = int(digits) if len(digits) <= len(str(NUMBER_MAX)) else NUMBER_MAX + 1
    return number if str(number) == digits and number <= NUMBER_MAX else None
