"""The last check of a batch: what its groups take out of service together.

The rules judge each group alone. Two switches of one rack, or a switch and a controller behind
another one, are harmless alone and not together.
"""

from __future__ import annotations

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.graph import Modification
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.graph.dependencies import constituents_needed
from equipoise.upgrade.graph.in_service import (
    Outages,
    outages_after_return,
    outages_with,
    present_constituents,
)
from equipoise.upgrade.graph.iteration_view import IterationView
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.rules.dependency_order import removal_blocker
from equipoise.upgrade.rules.redundancy import is_taken_out


class OutageGuard:
    """What the groups of a batch take out of service, one group after the other."""

    def __init__(self, view: IterationView) -> None:
        self._view = view
        self._leaving: dict[ResourceId, None] = {}
        """The members of the groups that the batch takes out of service."""
        self._returning: set[ResourceId] = set()
        """What returns into service with the batch."""

    def missed(self, vertex: VertexId) -> Reason | None:
        """Return why a group cannot change beside those of the batch, or None."""
        lost = self._lost(vertex)
        residents = self._view.state.cluster.residents
        own = set(self._view.control.groups[vertex].members)
        for host in sorted(self._view.hosts_of(lost)):
            if residents.get(host):
                text = f"VMs run on {host}, which depends on it and has no alternative"
                return Reason("vms-depend", text)
        for id_ in lost:
            if id_ not in own and (short := self._shortage(vertex, id_, lost)):
                return short
        return None

    def hosts(self, vertex: VertexId) -> set[HostId]:
        """Return the hosts that a group takes out of service beside those of the batch."""
        partitions = self._view.host_partitions
        return {
            host
            for host in self._view.hosts_of(self._lost(vertex))
            if host in partitions.old or host in partitions.new
        }

    def take(self, vertex: VertexId) -> None:
        """Note that a group is in the batch."""
        group = self._view.control.groups[vertex]
        self._returning |= self._view.returning_members(vertex)
        if is_taken_out(group):
            self._leaving |= dict.fromkeys(group.members)

    def _before(self, vertex: VertexId) -> Outages:
        """Return what is out beside a group: what the batch takes out, not what returns with it."""
        view = self._view
        returning = self._returning | view.returning_members(vertex)
        if not returning and not self._leaving:
            return view.outages
        return outages_after_return(view.state, returning, self._leaving)

    def _lost(self, vertex: VertexId) -> Outages:
        group = self._view.control.groups[vertex]
        # Rule 2 decides about what is removed: nothing depends on it any more.
        if not is_taken_out(group) or group.modification is Modification.REMOVE:
            return {}
        return outages_with(self._view.state, group.members, self._before(vertex))

    def _shortage(self, vertex: VertexId, aggregate: ResourceId, lost: Outages) -> Reason | None:
        """Return a reason if an aggregate leaves service because too few constituents stay."""
        state = self._view.state
        group = self._view.control.groups[self._view.control.group_of[aggregate]]
        if group.modification is Modification.REMOVE and not removal_blocker(self._view, group):
            return None  # nothing uses it any more
        before = self._before(vertex)
        members = present_constituents(state, aggregate)
        left = sum(member not in lost and member not in before for member in members)
        needed = constituents_needed(state, state.resources.states[aggregate])
        if not members or left >= needed:
            return None
        text = f"{aggregate} needs {needed} constituents; with this group {left} stay in service"
        return Reason("constituents-short", text)
