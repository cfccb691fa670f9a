"""Roles that hosts carry: a host leaves only if somebody else covers them meanwhile.

Who may leave is known to the room of the roles, beside this one. So whoever runs a campaign hands
the question over (``MayLeave``); without it, or without a layout, nobody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Protocol

from equipoise.model.quantity import HostId, ProcessorId
from equipoise.model.snapshot import Snapshot
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.cluster import cluster_of
from equipoise.upgrade.scene import Scene, affected_hosts
from equipoise.upgrade.state import State


class Leave(Protocol):
    """The answer: who has to stay, and why."""

    @property
    def stay(self) -> Mapping[ProcessorId, str]:
        """Those whom a role would miss, each with the reason."""
        ...


class MayLeave(Protocol):
    """Whether hosts may leave, of which others are gone already."""

    def __call__(
        self, snapshot: Snapshot, wanted: Iterable[str], gone: Iterable[str] = ()
    ) -> Leave:
        """Go through those who want to leave, in order."""
        ...


class Cover:
    """What is asked while a batch is put together: group by group more are gone."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        state = scene.state
        self._may_leave: MayLeave | None = state.may_leave
        self._asks = self._may_leave is not None and state.campaign.cluster.layout is not None
        self._gone = dict.fromkeys(_out_already(state)) if self._asks else {}

    @cached_property
    def _snapshot(self) -> Snapshot:
        return Snapshot.of(cluster_of(self._scene.state))

    def missed(self, vertex: VertexId) -> str:
        """Say which role would be lost with a group; nothing if none, or to take something back."""
        if not self._asks or self._may_leave is None or self._takes_back(vertex):
            return ""
        hosts = self._hosts(vertex)
        answer = self._may_leave(self._snapshot, hosts, self._gone)
        return next((f"{one} has to stay: {why}" for one, why in answer.stay.items()), "")

    def leaves(self, vertex: VertexId) -> None:
        """A group is in the batch."""
        if self._asks:
            self._gone |= dict.fromkeys(self._hosts(vertex))

    def _takes_back(self, vertex: VertexId) -> bool:
        return self._scene.is_undoing(vertex) or not self._scene.control.groups[vertex].changes

    def _hosts(self, vertex: VertexId) -> list[HostId]:
        """The hosts that a group is on, whether they run VMs or not, and those it cuts off."""
        parts = (self._scene.state.parts[one] for one in self._scene.control.groups[vertex].members)
        own = {part.resource.host: None for part in parts if part.resource.host is not None}
        return list(own | dict.fromkeys(sorted(affected_hosts(self._scene, vertex))))


def _out_already(state: State) -> list[HostId]:
    """Hosts with something on them that is isolated, lost or kept off."""
    return [
        part.resource.host
        for part in state.parts.values()
        if part.resource.host is not None
        and part.present
        and not (part.active and part.operational)
    ]
