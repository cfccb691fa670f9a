"""Which resources are in service: they work, and so does what they need.

A resource needs one sponsor of each kind, an aggregate its minimum of constituents. This is the one
meaning of "in service": hosts with capacity, the selection of a batch and protection groups use it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.upgrade.graph.dependencies import (
    PRESENT_NOW,
    constituents_needed,
    is_down,
    presence,
)
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.resources import ResourceState, TrackedDependency

Outages = dict[ResourceId, ResourceId]
"""Resources out of service, each with the resource that causes it."""


@dataclass(frozen=True, slots=True)
class ServiceNeeds:
    """The dependencies that service needs, by either end."""

    sponsors: dict[ResourceId, list[TrackedDependency]]
    dependents: dict[ResourceId, list[TrackedDependency]]
    """By sponsor, and by the link that realises the dependency."""


def service_needs(state: UpgradeState) -> ServiceNeeds:
    """Return the needs of all resources, from the cache of the state."""
    if state.resources.needs is None:
        needs = ServiceNeeds({}, {})
        for tracked in state.resources.dependencies:
            dependency = tracked.dependency
            if dependency.kind.is_symmetrical or dependency.kind is DependencyKind.MIGRATION:
                continue
            needs.sponsors.setdefault(dependency.dependent, []).append(tracked)
            needs.dependents.setdefault(dependency.sponsor, []).append(tracked)
            if dependency.link is not None:
                needs.dependents.setdefault(dependency.link, []).append(tracked)
        state.resources.cache_needs(needs)
    cached: ServiceNeeds = state.resources.needs
    return cached


def present_constituents(state: UpgradeState, aggregate: ResourceId) -> list[ResourceId]:
    """Return the constituents of an aggregate by the dependencies that hold now."""
    return [
        tracked.dependency.sponsor
        for tracked in service_needs(state).sponsors.get(aggregate, ())
        if tracked.dependency.kind is DependencyKind.AGGREGATION
        and presence(state, tracked) in PRESENT_NOW
    ]


def outages(state: UpgradeState) -> Outages:
    """Return the resources out of service now, each with its cause."""
    failed_hosts = _failed_hosts(state)
    cached = state.resources.outages
    if cached is None or cached[0] != failed_hosts:
        cached = failed_hosts, _outages_but(state, failed_hosts, ())
        state.resources.cache_outages(cached)
    found: Outages = cached[1]
    return found


def outages_after_return(
    state: UpgradeState, returning: Collection[ResourceId], leaving: Iterable[ResourceId] = ()
) -> Outages:
    """Return what is out of service when some resources are in service again and others left."""
    return _outages_but(state, _failed_hosts(state), returning, leaving)


def _failed_hosts(state: UpgradeState) -> tuple[HostId, ...]:
    hosts = state.cluster.compute_hosts.items()
    return tuple(host for host, compute_host in hosts if not compute_host.up)


def _outages_but(
    state: UpgradeState,
    failed_hosts: Collection[HostId],
    returning: Collection[ResourceId],
    leaving: Iterable[ResourceId] = (),
) -> Outages:
    first = {id_: id_ for id_ in state.resources.not_working if id_ not in returning}
    first |= {id_: id_ for id_ in leaving}
    if failed_hosts:
        first |= {
            id_: id_
            for id_, resource_state in state.resources.states.items()
            if resource_state.present and is_down(state, resource_state)
        }
    links = [id_ for pair in state.resources.links_off for id_ in pair]
    return first | _follow(state, first, links)


def is_in_service(state: UpgradeState, id_: ResourceId) -> bool:
    """Return whether a resource is present and in service."""
    resource_state = state.resources.states.get(id_)
    return resource_state is not None and resource_state.present and id_ not in outages(state)


def outages_with(
    state: UpgradeState,
    leaving: Iterable[ResourceId],
    already: Outages | None = None,
) -> Outages:
    """Return what leaves service if some resources do, themselves included.

    ``already`` is out of service before; by default what is out now.
    """
    before = outages(state) if already is None else already
    first = {id_: id_ for id_ in leaving if id_ not in before}
    return first | _follow(state, first, (), before)


def _follow(
    state: UpgradeState,
    first: Outages,
    cut_off: Iterable[ResourceId] = (),
    before: Collection[ResourceId] = (),
) -> Outages:
    """Return the further resources that do not work without the first ones."""
    needs = service_needs(state) if first or cut_off else ServiceNeeds({}, {})
    found: Outages = {}

    def is_out(id_: ResourceId) -> bool:
        return id_ in first or id_ in before or id_ in found

    def check(id_: ResourceId, cause: ResourceId) -> None:
        resource_state = state.resources.states.get(id_)
        if resource_state is None or not resource_state.present:
            return
        if is_out(id_) or _is_served(state, needs, resource_state, is_out):
            return
        found[id_] = cause
        queue.append(id_)

    queue = list(first)
    for id_ in cut_off:
        check(id_, id_)
    for current in queue:
        for tracked in needs.dependents.get(current, ()):
            check(tracked.dependency.dependent, current)
    return found


def _is_served(
    state: UpgradeState,
    needs: ServiceNeeds,
    resource_state: ResourceState,
    is_out: Callable[[ResourceId], bool],
) -> bool:
    """Return whether a resource has a sponsor of each kind, and its minimum of constituents."""
    serving: dict[DependencyKind, int] = {}
    for tracked in needs.sponsors.get(resource_state.resource.id, ()):
        if presence(state, tracked) not in PRESENT_NOW:
            continue
        kind = tracked.dependency.kind
        serving[kind] = serving.get(kind, 0) + _serves(state, tracked, is_out)
    return all(
        number >= (max(1, constituents_needed(state, resource_state))
                   if kind is DependencyKind.AGGREGATION else 1)
        for kind, number in serving.items()
    )  # fmt: skip


def _serves(
    state: UpgradeState, tracked: TrackedDependency, is_out: Callable[[ResourceId], bool]
) -> bool:
    """Return whether the sponsor of a dependency works and its link is on."""
    dependency = tracked.dependency
    sponsor = state.resources.states.get(dependency.sponsor)
    if sponsor is None:
        return True  # it is no resource of the campaign, such as a VM
    ends = (
        min(dependency.dependent, dependency.sponsor),
        max(dependency.dependent, dependency.sponsor),
    )
    return (
        sponsor.present
        and not is_out(dependency.sponsor)
        and not (dependency.link is not None and is_out(dependency.link))
        and ends not in state.resources.links_off
    )
