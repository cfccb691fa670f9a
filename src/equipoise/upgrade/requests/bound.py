"""Who understands whom, and which sets hang together by that.

Resources of several sets can be one unit. If one of the sets is taken back, another can go on only
if what it leads to understands what is left; else it is taken back as well. So sets that hang
together are complete together: what is complete is not taken back any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import Method, UpgradeUnit, Work
from equipoise.upgrade.graph.bonds import presence
from equipoise.upgrade.requests.heirs import Goal, goals
from equipoise.upgrade.requests.project import projected
from equipoise.upgrade.requests.talk import talk
from equipoise.upgrade.state import Bond, Part, Progress, Standing, State

Odds = dict[ResourceId, dict[ResourceId, None]]


def at_odds(state: State) -> Odds:
    """Who does not understand whom, with the versions that are there now."""
    found: Odds = {}
    for one, other, bond in _clashing(state):
        mixed = any(_is_on(state, one, o) != _is_on(state, other, o) for o in bond.orders)
        if mixed and not _understand(state, bond, dict(one.components), dict(other.components)):
            found.setdefault(one.resource.id, {})[other.resource.id] = None
            found.setdefault(other.resource.id, {})[one.resource.id] = None
    return found


def in_the_way(state: State) -> Odds:
    """Whom each resource would meet in service and not understand, now or when they are changed."""
    found: Odds = {}
    now = at_odds(state)
    for one, other, bond in _clashing(state):
        ends = one.resource.id, other.resource.id
        later = _will_clash(state, bond, one, other)
        for here, there in ((one, other), (other, one)):
            serves = there.active and there.operational and ends[1] in now.get(ends[0], ())
            comes = later and bool(there.levels) and there.can_be_changed
            if serves or comes:
                found.setdefault(here.resource.id, {})[there.resource.id] = None
    return found


def _clashing(state: State) -> Iterator[tuple[Part, Part, Bond]]:
    for bond in state.bonds:
        ends = _ends(state, bond)
        if ends is not None:
            yield *ends, bond


def _will_clash(state: State, bond: Bond, one: Part, other: Part) -> bool:
    """Whether two do not understand each other once all that is left was done with them."""
    mixed = any(bool(_sets(state, one, o)) != bool(_sets(state, other, o)) for o in bond.orders)
    return mixed and not _understand(state, bond, projected(one), projected(other))


def torn(state: State) -> dict[SetId, str]:
    """The sets that cannot be completed any more because another was taken back or left half done,
    each with the reason."""
    found = _built_on_sand(state)
    for one, other, bond in _clashing(state):
        if not (one.operational and other.operational and _will_clash(state, bond, one, other)):
            continue
        for order in bond.orders:
            for done, stays in ((one, other), (other, one)):
                if not _sets(state, stays, order):
                    names = done.resource.id, stays.resource.id
                    why = f"{names[0]} would not understand {names[1]}, which stays as it is"
                    found = dict.fromkeys(_sets(state, done, order), why) | found
    for unit in state.units.values():
        found |= _intertwined(state, unit)
    return found


def _built_on_sand(state: State) -> dict[SetId, str]:
    """Sets that were worked out as if an older request were done, which is taken back."""
    found: dict[SetId, str] = {}
    for one, other, bond in _across(state):
        newer = [work.set for _, work in _forward([one])]
        if newer and not talk(state, bond.dependency, projected(one), projected(other)):
            names = one.resource.id, other.resource.id
            why = f"{names[0]} would not understand {names[1]}, which stays as it is"
            found |= dict.fromkeys(newer, why)
    return found


def _across(state: State) -> Iterator[tuple[Part, Part, Bond]]:
    """Dependencies between what several requests may be about, seen from each end."""
    for bond in state.bonds if state.taken_up > 1 else ():
        one = state.parts.get(bond.dependency.dependent)
        other = state.parts.get(bond.dependency.sponsor)
        if one is None or other is None or not (one.operational and other.operational):
            continue
        if (one.sets or other.sets) and presence(state, bond) is not None:
            yield one, other, bond
            yield other, one, bond


def _builders(state: State) -> Iterator[set[SetId]]:
    """A set, and the one of an older request without which it would not understand somebody."""
    for one, other, bond in _across(state):
        newer = {work.set for _, work in _forward([one])}
        for _, work in _forward([other]):
            before = dict(projected(other))
            if work.before is None:
                before.pop(work.component, None)
            else:
                before[work.component] = work.before
            older = state.standings[work.set].order
            sets = {each for each in newer if state.standings[each].order > older}
            if sets and not talk(state, bond.dependency, projected(one), before):
                yield sets | {work.set}


def _intertwined(state: State, unit: UpgradeUnit) -> dict[SetId, str]:
    """Sets that change one resource of a unit, or switch links in it, go back together."""
    found: dict[SetId, str] = {}
    for those in _knots(state, unit):
        sets = {one: None for part in those for one in _at_work(state, part)}
        back = [one for one in sets if state.standings[one].progress is Progress.UNDOING]
        for one in sets:
            standing = state.standings[one]
            same = [each for each in back if state.standings[each].order == standing.order]
            if standing.progress is Progress.SCHEDULED and same:
                name = those[0].resource.id
                found[one] = f"it changes {name} together with set {same[0]}, which is taken back"
    return found


def _knots(state: State, unit: UpgradeUnit) -> list[list[Part]]:
    """Where sets cannot be told apart: on each resource, and in all of a unit that is switched."""
    parts = [state.parts[ResourceId(one)] for one in unit.resources if one in state.parts]
    return [parts] if unit.method is Method.MODIFIED_SPLIT_LINKS else [[one] for one in parts]


def bound_to(state: State, standing: Standing) -> set[SetId]:
    """The sets that are complete only together with a set, itself among them."""
    found = {standing.id}
    if not state.units and state.taken_up < 2:  # noqa: PLR2004
        return found
    pairs = [*_pairs(state), *_builders(state)]
    grows = True
    while grows:
        near = {one for those in pairs if not found.isdisjoint(those) for one in those}
        grows = not near <= found
        found |= near
    return {
        one
        for one in found
        if one == standing.id or state.standings[one].progress is Progress.SCHEDULED
    }


def _pairs(state: State) -> Iterator[set[SetId]]:
    """Sets that meet along a clashing dependency or in a unit, or want the same in it."""
    for one, other, bond in _clashing(state):
        for order in bond.orders:
            yield {*_sets(state, one, order), *_sets(state, other, order)}
    wanted = _wanted(state)
    for unit in state.units.values():
        for those in _knots(state, unit):
            yield {one for part in those for one in _at_work(state, part)}
            yield from (_wanting_the_same(part, work, wanted) for part, work in _forward(those))


def _wanted(state: State) -> dict[Goal, set[SetId]]:
    """What sets under way lead to."""
    found: dict[Goal, set[SetId]] = {}
    for standing in state.standings.values():
        if standing.progress is Progress.SCHEDULED:
            for goal in goals(state, standing):
                found.setdefault(goal, set()).add(standing.id)
    return found


def _forward(parts: list[Part]) -> Iterator[tuple[Part, Work]]:
    for part in parts:
        left = (work for level in part.levels for work in level.works)
        yield from ((part, work) for work in (*left, *part.applied) if not work.undoing)


def _wanting_the_same(part: Part, work: Work, wanted: dict[Goal, set[SetId]]) -> set[SetId]:
    return {work.set} | wanted.get((part.resource.id, work.component, work.after), set())


def _ends(state: State, bond: Bond) -> tuple[Part, Part] | None:
    """The two ends of a dependency along which versions may clash, if both are there."""
    if not bond.orders:
        return None
    one = state.parts.get(bond.dependency.dependent)
    other = state.parts.get(bond.dependency.sponsor)
    if one is None or other is None or not (one.present and other.present):
        return None
    return one, other


def _understand(state: State, bond: Bond, *components: dict[ComponentId, str]) -> bool:
    return not bond.dependency.incompatible and talk(state, bond.dependency, *components)


def _is_on(state: State, part: Part, order: int) -> bool:
    """Whether a request has changed a resource."""
    return any(state.standings[work.set].order == order for work in part.applied)


def _sets(state: State, part: Part, order: int) -> list[SetId]:
    """The sets of a request that have changed a resource or will, and do not leave it again."""
    left = [work for level in part.levels for work in level.works]
    back = {(work.set, work.component) for work in left if work.undoing}
    stay = [work.set for work in part.applied if (work.set, work.component) not in back]
    stay += [work.set for work in left if not work.undoing]
    return [one for one in dict.fromkeys(stay) if state.standings[one].order == order]


def _at_work(state: State, part: Part) -> list[SetId]:
    """The sets that have something on a resource, or something left to do with it."""
    left = [work.set for level in part.levels for work in level.works]
    done = [work.set for work in part.applied]
    open_ = (one for one in dict.fromkeys((*left, *done)))
    return [one for one in open_ if state.standings[one].progress is not Progress.ENDED]
