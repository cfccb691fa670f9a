"""Dependencies that come and go with a set, and with whose change they do."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import Dependency, Presence
from equipoise.model.upgrade.request import Change, ChangeKind, ChangeSet, SetId
from equipoise.model.upgrade.settings import Mixing
from equipoise.model.upgrade.work import Work
from equipoise.upgrade.graph.bonds import presence
from equipoise.upgrade.state import Bond, Standing, State

Works = dict[ResourceId, list[Work]]


def bind(state: State, standing: Standing, works: Works) -> None:
    """Note which dependencies come and go with a set, and whether it divides the hosts."""
    changes = standing.set.changes
    coming = [one for change in changes for one in _coming(change)]
    gone = removed_by(standing.set)
    new = {one.id for change in changes for one in change.new}
    replaced: dict[tuple[str, ...], list[Dependency]] = {}
    for change in changes:
        for one in change.dependencies if change.does is not ChangeKind.ADD else ():
            replaced.setdefault(_key(one), []).append(one)
    for place, bond in enumerate(state.bonds):
        one = bond.dependency
        leaves = one.dependent in gone or one.sponsor in gone
        named = replaced.get(_key(one), ())
        if bond.set is None and (leaves or any(_is_meant(one, each) for each in named)):
            owner = _owner(one, gone, works, standing)
            state.bonds[place] = replace(bond, set=standing.id, owner=owner, comes=False)
    for one in coming:
        state.bind(Bond(one, standing.id, _owner(one, new, works, standing), comes=True))
    if _divides(state, standing, works, coming, gone | new):
        state.standings[standing.id] = replace(standing, divides=True)


def removed_by(set_: ChangeSet) -> set[ResourceId]:
    """The resources that a set takes away."""
    return {
        id_
        for change in set_.changes
        if change.does is ChangeKind.REMOVE and change.component is None
        for id_ in change.resources
    }


def settle(state: State, set_: SetId) -> None:
    """A set has ended: what it brought is there as any other dependency is, and what it took away
    is forgotten."""
    if not any(bond.set == set_ for bond in state.bonds):
        return
    kept: list[Bond] = []
    for bond in state.bonds:
        if bond.set != set_:
            kept.append(bond)
        elif presence(state, bond) is not None:
            kept.append(replace(bond, set=None, owner=None, comes=True))
    state.bonds, state.declared_min = [], {}
    for bond in kept:
        state.bind(bond)


def is_there(state: State, named: Dependency) -> bool:
    """Whether there is such a dependency, now or in future."""
    return any(
        _is_meant(bond.dependency, named) and presence(state, bond) is not None
        for bond in state.bonds
    )


def _is_meant(one: Dependency, named: Dependency) -> bool:
    """Of several links between the same two, one can be named; of all else there is one."""
    return _key(one) == _key(named) and (
        named.link is None or one.link is None or one.link == named.link
    )


def _key(one: Dependency) -> tuple[str, ...]:
    return one.kind, one.dependent, one.sponsor


def _divides(
    state: State, standing: Standing, works: Works, coming: list[Dependency], moved: set[ResourceId]
) -> bool:
    """Whether hosts before and after a set cannot take each other's VMs."""
    if any(one.kind.is_vm_supporting and one.sponsor in moved for one in coming):
        return True
    return state.settings.vms is Mixing.DIVIDED and any(
        (host := state.parts[id_].resource.host) is not None
        and host in state.places
        and state.places[host].places > 0
        and id_ in works
        for id_ in standing.resources
    )


def _coming(change: Change) -> tuple[Dependency, ...]:
    if change.does is ChangeKind.REMOVE:
        return ()
    return tuple(one.but(presence=Presence.FUTURE) for one in change.dependencies)


def _owner(
    one: Dependency, moving: set[ResourceId], works: Works, of: Standing
) -> ResourceId | None:
    """With whose change a dependency comes or goes: of the end that stays, if that is changed.
    Nobody: none of the ends is changed, and it comes or goes as the set ends.
    """
    stays = one.dependent if one.sponsor in moving else one.sponsor
    moves = one.sponsor if one.sponsor in moving else one.dependent
    for end in (stays, moves):
        if any(work.set == of.id for work in works.get(end, ())):
            return end
    return None
