"""A state that is not decided yet, as the functions of the language ask for it."""

from __future__ import annotations

from typing import Any, Protocol

from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.exact.solver.number import Number


class State(Protocol):
    """What a formula may ask of a moment. What never changes is asked of the snapshot."""

    snapshot: Snapshot

    def names(self, kind: str) -> frozenset[Any]:
        """The names of all VMs or of all hosts."""
        ...

    def vm_state(self, vm: VmId) -> Any:
        """The state of a VM."""
        ...

    def vm_host(self, vm: VmId) -> Any:
        """Where a VM lies."""
        ...

    def host_state(self, host: HostId) -> Any:
        """The state of a host."""
        ...

    def running(self, host: HostId) -> Any:
        """The VMs that run on a host."""
        ...

    def hosted(self, host: HostId) -> Any:
        """The VMs that lie on a host, and those on their way to it."""
        ...

    def consumption(self, vm: VmId, resource: str) -> Number:
        """What a VM takes of a resource."""
        ...

    def underway_on(self, vm: VmId) -> Any:
        """The actions under way on a VM."""
        ...

    def underway_at(self, host: HostId) -> Any:
        """The actions under way that touch a host."""
        ...

    def actions_on(self, vm: VmId) -> Any:
        """The actions of the plan on a VM, whenever."""
        ...

    def actions_at(self, host: HostId) -> Any:
        """The actions of the plan that touch a host, whenever."""
        ...
