"""Roles of hosts: a host is taken out only if another host covers its roles meanwhile.

The package ``roles`` knows which hosts may be removed; it lies beside this package. So the caller
of a campaign passes the check in (``RemovalChecker``). Without it, or without a layout, no role is
checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Protocol

from equipoise.model.quantity import HostId, ProcessorId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.graph.iteration_view import IterationView, affected_hosts
from equipoise.upgrade.inventory_view import current_inventory
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.state import UpgradeState


class RemovalAnswer(Protocol):
    """The result of a removal check: the processors that must stay, with reasons."""

    @property
    def blocked(self) -> Mapping[ProcessorId, str]:
        """Processors whose removal would lose a role, each with the reason."""
        ...


class RemovalChecker(Protocol):
    """A function that checks which hosts may be removed while others are already gone."""

    def __call__(
        self, snapshot: Snapshot, wanted: Iterable[str], gone: Iterable[str] = ()
    ) -> RemovalAnswer:
        """Check the wanted hosts in order."""
        ...


class RoleCoverage:
    """The role check of one batch selection: it knows the hosts taken out so far."""

    def __init__(self, view: IterationView) -> None:
        self._view = view
        state = view.state
        self._check_removal: RemovalChecker | None = state.check_removal
        self._checks_roles = (
            self._check_removal is not None and state.campaign.cluster.layout is not None
        )
        self._gone = dict.fromkeys(_hosts_out_already(state)) if self._checks_roles else {}

    @cached_property
    def _snapshot(self) -> Snapshot:
        return Snapshot.of(current_inventory(self._view.state))

    def missed(self, vertex: VertexId) -> Reason | None:
        """Return which role would be lost with a group, or None. Undo work is always allowed."""
        if not self._checks_roles or self._check_removal is None or self._is_undo(vertex):
            return None
        hosts = self._hosts(vertex)
        answer = self._check_removal(self._snapshot, hosts, self._gone)
        for host, why in answer.blocked.items():
            return Reason("role-lost", f"{host} must stay: {why}")
        return None

    def take_out(self, vertex: VertexId) -> None:
        """Note that a group is in the batch: its hosts are gone."""
        if self._checks_roles:
            self._gone |= dict.fromkeys(self._hosts(vertex))

    def _is_undo(self, vertex: VertexId) -> bool:
        # A group without changes only returns into service and takes no host away.
        return self._view.is_undoing(vertex) or not self._view.control.groups[vertex].changes

    def _hosts(self, vertex: VertexId) -> list[HostId]:
        """Return the hosts of a group, with or without VMs, and the hosts that it cuts off."""
        resource_states = (
            self._view.state.resources.states[member]
            for member in self._view.control.groups[vertex].members
        )
        own = {
            resource_state.resource.host: None
            for resource_state in resource_states
            if resource_state.resource.host is not None
        }
        return list(own | dict.fromkeys(sorted(affected_hosts(self._view, vertex))))


def _hosts_out_already(state: UpgradeState) -> list[HostId]:
    """Return hosts with a resource that is isolated, failed or deactivated."""
    return [
        resource_state.resource.host
        for resource_state in state.resources.states.values()
        if resource_state.resource.host is not None
        and resource_state.present
        and not (resource_state.active and resource_state.operational)
    ]
