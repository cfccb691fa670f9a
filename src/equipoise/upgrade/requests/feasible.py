"""Sets that can never succeed, found before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.resource import Dependency, DependencyKind
from equipoise.model.upgrade.catalog import Recipe
from equipoise.model.upgrade.request import Change, ChangeSet
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.graph.demands import least_constituents
from equipoise.upgrade.requests.bind import removed_by
from equipoise.upgrade.requests.complete import Impossible
from equipoise.upgrade.requests.guarded import check_protections
from equipoise.upgrade.state import State, main_component


def check_feasible(state: State, set_: ChangeSet) -> None:
    """Raise ``Impossible`` if no course of events could complete a set."""
    _check_time(state, set_)
    _check_windows(state, set_)
    _check_aggregates(state, set_)
    check_protections(state, set_)
    _check_replacements(state, set_)
    _check_room(state, set_)


def _check_time(state: State, set_: ChangeSet) -> None:
    """The longest work alone takes longer than the set may."""
    most_s = set_.completion_s_max
    for id_, recipe in _recipes(state, set_):
        if most_s is not None and recipe.duration_s > most_s:
            raise Impossible(
                f"changing {id_} takes {recipe.duration_s} s, and the set must be complete "
                f"after {most_s} s"
            )


def _check_windows(state: State, set_: ChangeSet) -> None:
    """No window is long enough for the longest work in it."""
    if not set_.windows:
        return
    widest_s = max(min(one.closes_s, one.every_s) - one.opens_s for one in set_.windows)
    for id_, recipe in _recipes(state, set_):
        if recipe.duration_s + recipe.taking_back_s > widest_s:
            raise Impossible(
                f"changing {id_} takes up to {recipe.duration_s + recipe.taking_back_s} s "
                f"with its recovery, and no window is longer than {widest_s} s"
            )


def _recipes(state: State, set_: ChangeSet) -> Iterator[tuple[ResourceId, Recipe]]:
    """How the resources of a set that are there are changed; nothing where they match already."""
    for change in set_.changes:
        for id_ in change.resources:
            part = state.parts.get(id_)
            if part is None or change.version is None:
                continue
            component = change.component or main_component(part.resource)
            said = state.catalog.get((component, change.version))
            recipe = None if said is None else said.upgrade or said.install
            if recipe is not None and part.components.get(component) != change.version:
                yield id_, recipe


def _check_aggregates(state: State, set_: ChangeSet) -> None:
    """Every constituent is needed, and one of them is to be changed."""
    touched = {id_ for change in set_.changes for id_ in change.resources}
    gone = removed_by(set_)
    constituents: dict[ResourceId, list[ResourceId]] = {}
    for bond in state.bonds:
        one = bond.dependency
        if one.kind is DependencyKind.AGGREGATION and bond.set is None:
            constituents.setdefault(one.dependent, []).append(one.sponsor)
    for aggregate, those in constituents.items():
        least = least_constituents(state, state.parts[aggregate])
        changed = [one for one in those if one in touched]
        if changed and aggregate not in gone and len(those) - 1 < least:
            raise Impossible(
                f"{aggregate} needs {least} of its {len(those)} constituents at any time, "
                f"so that {changed[0]} can never be taken out"
            )


def _check_replacements(state: State, set_: ChangeSet) -> None:
    """What supports VMs is replaced: by what can be built before it is used, beside the old."""
    for change in set_.changes:
        for new in change.new:
            said = state.catalog.get((main_component(new), new.version))
            needed = max(said.constituents_min or 0, said.storing_min or 0) if said else 0
            built_on = _ends(change.dependencies, DependencyKind.AGGREGATION, new.id)
            _check_circle(state, change, new.id, built_on, needed)
            if change.replaces is None:
                continue
            bonds = [bond.dependency for bond in state.bonds]
            hosts = _ends(bonds, DependencyKind.AGGREGATION, change.replaces) | built_on
            needed += least_constituents(state, state.parts[change.replaces])
            if hosts and len(hosts) < needed:
                raise Impossible(
                    f"{change.replaces} and {new.id} side by side take {needed} hosts, "
                    f"and there are {len(hosts)}"
                )


def _ends(
    dependencies: Iterable[Dependency], kind: DependencyKind, dependent: ResourceId
) -> set[ResourceId]:
    """What a resource needs, of one kind."""
    return {one.sponsor for one in dependencies if one.kind is kind and one.dependent == dependent}


def _check_circle(
    state: State, change: Change, new: ResourceId, built_on: set[ResourceId], needed: int
) -> None:
    """Hosts that need a new infrastructure for their VMs are changed after it is there, so it can
    only be built on others.
    """
    group_of = grouping(state).group_of
    clients = {
        group_of[one.dependent]
        for one in change.dependencies
        if one.kind.is_vm_supporting and one.sponsor == new and one.dependent in group_of
    }
    free = [one for one in built_on if group_of.get(one) not in clients]
    if built_on and len(free) < needed:
        raise Impossible(
            f"{new} takes {needed} constituents that do not wait for it themselves, "
            f"and has {len(free)}"
        )


def _check_room(state: State, set_: ChangeSet) -> None:
    """Even with every tenant at its smallest, no host that runs VMs can ever be spared."""
    hosts: set[HostId] = set()
    for change in set_.changes:
        for id_ in change.resources:
            host = state.parts[id_].resource.host
            if host is not None and host in state.places and state.places[host].places:
                hosts.add(host)
    if not hosts:
        return
    why = too_small(state, 1)
    if why:
        raise Impossible(why)


def too_small(state: State, out: int) -> str:
    """Say why so many hosts can never be out at once, even with every tenant at its smallest."""
    capacities = sorted((one.places for one in state.places.values() if one.places), reverse=True)
    kept = capacities[: max(0, len(capacities) - out)]
    kept = kept[min(state.settings.failover_hosts, len(kept)) :]
    least = sum(min(one.sla.vms_min, len(capacities)) for one in state.tenants.values())
    crowd = max((one.sla.vms_min for one in state.tenants.values()), default=0)
    if least <= sum(kept) and (crowd <= len(kept) or not _is_apart(state)):
        return ""
    hosts = "one host" if out == 1 else f"{out} hosts"
    return (
        f"with {hosts} out and {state.settings.failover_hosts} in reserve, "
        f"{len(kept)} hosts with {sum(kept)} places are left; tenants have {least} VMs or more"
    )


def _is_apart(state: State) -> bool:
    return any(one.anti_affinity for one in state.tenants.values())
