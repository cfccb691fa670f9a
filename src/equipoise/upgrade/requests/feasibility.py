"""Change sets that can never succeed, found before any change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from equipoise.model.inventory import Tenant
from equipoise.model.quantity import HostId, ResourceId, format_count
from equipoise.model.upgrade.catalog import Recipe
from equipoise.model.upgrade.graph import ProtectionGroup
from equipoise.model.upgrade.infrastructure import Dependency, DependencyKind
from equipoise.model.upgrade.request import ChangeKind, ChangeSet, RequestedChange
from equipoise.model.upgrade.wall_clock import parse_window
from equipoise.model.upgrade.work import UpgradeUnit
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.graph.dependencies import constituents_needed
from equipoise.upgrade.graph.in_service import Outages, outages_with, present_constituents
from equipoise.upgrade.graph.protection import protection_groups
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests.complementary import InfeasibleSet
from equipoise.upgrade.requests.dependency_changes import removed_resources
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.resources import main_component
from equipoise.upgrade.vms.pinned import pinned_to


def check_protections(state: UpgradeState, set_: ChangeSet) -> None:
    """Refuse a set if a protection group can never spare a resource, or keeps too few members."""
    guarded = [group for group in protection_groups(state) if group.in_service_min]
    if not guarded:
        return
    removed = removed_resources(set_)
    touched = dict.fromkeys(id_ for change in set_.changes for id_ in change.resources)
    for resource in touched:
        if resource in removed:
            continue  # rule 2: nothing depends on it when it is removed
        out = _out_of_service_with(state, resource)
        for group in guarded:
            _check_taken_out(group, out.intersection(group.members))
    for group in guarded:
        _check_remaining(state, group, removed)


def _check_taken_out(group: ProtectionGroup, leaving: set[ResourceId]) -> None:
    if leaving and len(group.members) - len(leaving) < group.in_service_min:
        text = (
            f"protection group {group.id} needs {group.in_service_min} of {len(group.members)} "
            f"members in service at any time: {', '.join(sorted(leaving))} can never be taken out"
        )
        raise InfeasibleSet("protection-group-short", text)


def _check_remaining(state: UpgradeState, group: ProtectionGroup, removed: set[ResourceId]) -> None:
    """Refuse the removal of members if the group has a declared minimum."""
    declared = next(
        described.in_service_min
        for described in state.campaign.cluster.groups
        if described.id == group.id
    )
    remaining = [member for member in group.members if member not in removed]
    if declared is not None and len(remaining) < min(declared, len(group.members)):
        text = f"protection group {group.id} needs {declared} members; {len(remaining)} remain"
        raise InfeasibleSet("protection-group-short", text)


def _out_of_service_with(state: UpgradeState, resource: ResourceId) -> set[ResourceId]:
    """Return the resources that a resource takes out of service, all others being in service."""
    groups = grouping(state)
    if resource not in groups.group_of:
        return set()
    return set(outages_with(state, groups.members[groups.group_of[resource]], already={}))


def check_feasible(state: UpgradeState, set_: ChangeSet) -> None:
    """Raise ``InfeasibleSet`` if no sequence of events can complete a set."""
    # Cheap checks first. The order also decides which of several reasons the operator reads.
    _check_time(state, set_)
    _check_windows(state, set_)
    _check_aggregates(state, set_)
    check_protections(state, set_)
    _check_dependents(state, set_)
    _check_replacements(state, set_)
    _check_capacity(state, set_)


def _check_time(state: UpgradeState, set_: ChangeSet) -> None:
    """Refuse a set whose longest work alone exceeds the allowed duration."""
    most_s = set_.completion_s_max
    for id_, recipe in _recipes(state, set_):
        if most_s is not None and recipe.duration_s > most_s:
            text = (
                f"the change of {id_} takes {recipe.duration_s} s; "
                f"the set must be complete after {most_s} s"
            )
            raise InfeasibleSet("duration-too-long", text)


def _check_windows(state: UpgradeState, set_: ChangeSet) -> None:
    """Refuse a set if no window is long enough for its longest work."""
    dated = [window for window in set_.windows if isinstance(window, str)]
    if (dated or set_.complete_by is not None) and state.began_unix_ms is None:
        text = "it names dates, and the run has none: a simulation needs simulation.starts_at"
        raise InfeasibleSet("no-start-date", text)
    if not set_.windows:
        return
    widest_s = max(
        parse_window(window).longest_s
        if isinstance(window, str)
        else min(window.closes_s, window.every_s) - window.opens_s
        for window in set_.windows
    )
    for id_, recipe in _recipes(state, set_):
        if recipe.duration_s + recipe.undo_s > widest_s:
            text = (
                f"the change of {id_} takes up to {recipe.duration_s + recipe.undo_s} s "
                f"with its recovery; the longest window is {widest_s} s"
            )
            raise InfeasibleSet("window-too-short", text)


def _recipes(state: UpgradeState, set_: ChangeSet) -> Iterator[tuple[ResourceId, Recipe]]:
    """Yield each present resource of a set that changes, with its recipe."""
    for change in set_.changes:
        for id_ in change.resources:
            resource_state = state.resources.states.get(id_)
            if resource_state is None or change.version is None:
                continue
            component = change.component or main_component(resource_state.resource)
            description = state.catalog.get((component, change.version))
            recipe = None if description is None else description.upgrade or description.install
            if recipe is not None and resource_state.components.get(component) != change.version:
                yield id_, recipe


def _check_aggregates(state: UpgradeState, set_: ChangeSet) -> None:
    """Refuse a set that changes a constituent of an aggregate that needs all of them."""
    touched = {id_ for change in set_.changes for id_ in change.resources}
    removed = removed_resources(set_)
    constituents: dict[ResourceId, list[ResourceId]] = {}
    for tracked in state.resources.dependencies:
        dependency = tracked.dependency
        if dependency.kind is DependencyKind.AGGREGATION and tracked.set is None:
            constituents.setdefault(dependency.dependent, []).append(dependency.sponsor)
    for aggregate, members in constituents.items():
        needed = constituents_needed(state, state.resources.states[aggregate])
        changed = [member for member in members if member in touched]
        # If not even one constituent can be missing, no batch is ever legal.
        if changed and aggregate not in removed and len(members) - 1 < needed:
            text = (
                f"{aggregate} needs {needed} of its {len(members)} constituents at any time: "
                f"{changed[0]} can never be taken out"
            )
            raise InfeasibleSet("constituents-short", text)


def _check_dependents(state: UpgradeState, set_: ChangeSet) -> None:
    """Refuse a set with a resource that takes too much out of service, whatever the load is."""
    removed = removed_resources(set_)
    for change in set_.changes:
        for id_ in change.resources:
            if id_ in removed or change.does is not ChangeKind.UPGRADE:
                continue
            reason = lasting_obstacle(state, id_, {})
            if reason is not None:
                raise InfeasibleSet(*reason)


def lasting_obstacle(state: UpgradeState, resource: ResourceId, lost: Outages) -> Reason | None:
    """Return why a resource can never be taken out while some are lost, or None."""
    groups = grouping(state)
    if resource not in groups.group_of:
        return None
    members = groups.members[groups.group_of[resource]]
    out = outages_with(state, members, already=lost)
    because = f" because {next(iter(lost))} is lost" if lost else ""
    for id_ in out:
        needed = constituents_needed(state, state.resources.states[id_])
        constituents = present_constituents(state, id_)
        left = sum(member not in out and member not in lost for member in constituents)
        if constituents and left < needed and id_ not in members:
            text = f"{resource} cannot be taken out{because}: {id_} needs {needed} constituents"
            return Reason("constituents-short", f"{text}, {left} would stay in service")
    if groups.hosts_of.get(groups.group_of[resource]) or not state.cluster.placements:
        return None
    gone = {host for id_ in (*lost, *out) for host in groups.hosts_of.get(groups.group_of[id_], ())}
    bearing = {host.host for host in state.cluster.compute_hosts.values() if host.vms_max}
    if gone and bearing <= gone:
        text = f"{resource} cannot be taken out{because}: all hosts depend on it"
        return Reason("not-evacuable", text)
    return None


def _check_replacements(state: UpgradeState, set_: ChangeSet) -> None:
    """Refuse a replacement that cannot be built beside the old VM-supporting resource."""
    for change in set_.changes:
        for new in change.new:
            description = state.catalog.get((main_component(new), new.version))
            needed = (
                max(description.constituents_min or 0, description.storing_min or 0)
                if description
                else 0
            )
            built_on = _sponsors_of_kind(change.dependencies, DependencyKind.AGGREGATION, new.id)
            _check_cycle(state, change, new.id, built_on, needed)
            if change.replaces is None:
                continue
            dependencies = [tracked.dependency for tracked in state.resources.dependencies]
            hosts = (
                _sponsors_of_kind(dependencies, DependencyKind.AGGREGATION, change.replaces)
                | built_on
            )
            # Both storages work until the data are moved, so each needs its own hosts.
            needed += constituents_needed(state, state.resources.states[change.replaces])
            if hosts and len(hosts) < needed:
                text = (
                    f"{change.replaces} and {new.id} need {needed} hosts together; "
                    f"there are {len(hosts)}"
                )
                raise InfeasibleSet("replacement-hosts-short", text)


def _sponsors_of_kind(
    dependencies: Iterable[Dependency], kind: DependencyKind, dependent: ResourceId
) -> set[ResourceId]:
    """Return the sponsors of a resource of one kind."""
    return {
        dependency.sponsor
        for dependency in dependencies
        if dependency.kind is kind and dependency.dependent == dependent
    }


def _check_cycle(
    state: UpgradeState,
    change: RequestedChange,
    new: ResourceId,
    built_on: set[ResourceId],
    needed: int,
) -> None:
    """Refuse a new resource that is built on its own clients.

    Hosts that need a new resource for their VMs change after it exists, so it can only be built on
    other hosts.
    """
    group_of = grouping(state).group_of
    clients = {
        group_of[dependency.dependent]
        for dependency in change.dependencies
        if dependency.kind.is_vm_supporting
        and dependency.sponsor == new
        and dependency.dependent in group_of
    }
    free = [resource for resource in built_on if group_of.get(resource) not in clients]
    if built_on and len(free) < needed:
        text = f"{new} needs {needed} constituents that do not wait for it; it has {len(free)}"
        raise InfeasibleSet("replacement-cycle", text)


def _check_capacity(state: UpgradeState, set_: ChangeSet) -> None:
    """Refuse a set if no compute host can be spared even with every tenant at its minimum."""
    hosts: dict[HostId, None] = {}
    for change in set_.changes:
        for id_ in change.resources:
            host = state.resources.states[id_].resource.host
            if (
                host is not None
                and host in state.cluster.compute_hosts
                and state.cluster.compute_hosts[host].vms_max
            ):
                hosts[host] = None
    if not hosts:
        return
    shortage = capacity_shortage(state, 1) or _reserve_shortage(state) or pinned_to(state, hosts)
    if shortage is not None:
        raise InfeasibleSet(*shortage)


def _reserve_shortage(state: UpgradeState) -> Reason | None:
    """Return why the reserve for failures leaves no host for the VMs, or None."""
    hosts = [host for host in state.cluster.compute_hosts.values() if host.vms_max]
    failover = state.settings.failover_hosts
    if not state.cluster.placements or failover < len(hosts):
        return None
    text = (
        f"failover_hosts reserves {format_count(failover, 'host')}; the cluster has "
        f"{format_count(len(hosts), 'host')} for VMs"
    )
    return Reason("capacity-too-small", text)


def capacity_shortage(state: UpgradeState, out: int) -> Reason | None:
    """Return why so many hosts can never be out, even with every tenant at its minimum."""
    capacities = sorted(
        (host.vms_max for host in state.cluster.compute_hosts.values() if host.vms_max),
        reverse=True,
    )
    # The smallest hosts are out in the best case: a set is refused only if it can never succeed.
    kept = capacities[: max(0, len(capacities) - out)]
    # The largest hosts fail or are reserved in the worst case.
    kept = kept[min(state.settings.failover_hosts, len(kept)) :]
    least = sum(
        # A tenant cannot have more VMs apart than there are hosts.
        min(tenant.sla.vms_min, len(capacities))
        for tenant in state.cluster.tenants.values()
    )
    largest = max((tenant.sla.vms_min for tenant in state.cluster.tenants.values()), default=0)
    if least <= sum(kept) and (largest <= len(kept) or not _has_anti_affinity(state)):
        return None
    text = (
        f"with {format_count(out, 'host')} out and {state.settings.failover_hosts} in reserve, "
        f"{len(kept)} hosts remain with capacity for {sum(kept)} VMs; "
        f"tenants need {least} VMs or more"
    )
    return Reason("capacity-too-small", text)


def unit_shortage(state: UpgradeState, unit: UpgradeUnit) -> Reason | None:
    """Return why the hosts that a unit deactivates can never be spare, or None."""
    out = unit.degraded_hosts
    shortage = (capacity_shortage(state, out) or _limit_shortage(state, out)) if out else None
    if shortage is None:
        return None
    text = f"unit {unit.id} keeps {format_count(out or 0, 'host')} deactivated: {shortage}"
    return Reason(shortage.code, text)


def _limit_shortage(state: UpgradeState, out: int) -> Reason | None:
    """Return why tenants at the limit of their SLA do not fit beside so many deactivated hosts.

    A unit starts only if they do, whatever the load is (5.1.4.2). Hosts that are down may recover,
    so they count.
    """
    # This reading does not keep capacity in the old partition for tenants of the new one.
    if state.settings.readings.sides_alone:
        return None
    resources = grouping(state).by_host
    capacities = sorted(
        (
            compute_host.vms_max
            for host, compute_host in state.cluster.compute_hosts.items()
            if compute_host.vms_max
            and all(state.resources.states[id_].operational for id_ in resources.get(host, ()))
        ),
        reverse=True,
    )
    kept = capacities[: max(0, len(capacities) - out)]
    most = sum(tenant.sla.vms_max for tenant in state.cluster.tenants.values())
    apart = max((_vms_apart(state, tenant) for tenant in state.cluster.tenants.values()), default=0)
    if most <= sum(kept) and apart <= len(kept):
        return None
    text = (
        f"with {format_count(out, 'host')} out, {format_count(len(kept), 'host')} remain with "
        f"capacity for {sum(kept)} VMs; tenants may request {most} VMs, {apart} of them on "
        "different hosts"
    )
    return Reason("capacity-too-small", text)


def _vms_apart(state: UpgradeState, tenant: Tenant) -> int:
    """Return how many VMs of a tenant may need different hosts: new VMs join its first group."""
    if not tenant.anti_affinity:
        return 0
    group = tenant.anti_affinity[0].id
    own = (
        placement
        for placement in state.cluster.placements.values()
        if placement.tenant == tenant.id
    )
    return tenant.sla.vms_max - sum(group not in placement.groups for placement in own)


def _has_anti_affinity(state: UpgradeState) -> bool:
    return any(tenant.anti_affinity for tenant in state.cluster.tenants.values())
