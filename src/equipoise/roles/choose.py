"""Which of the filled slots a preferred role takes, so that least is lost, then least is moved.

Roles choose in the order of the group: a later one works around an earlier one. Where a role leaves
the choice open, all choices are compared, up to a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Final, NamedTuple

from equipoise.model.quantity import ProcessorId, RoleId, SlotId
from equipoise.model.roles.layout import Choose, RolePreference
from equipoise.model.words import counted
from equipoise.roles.meaning import layout_meaning
from equipoise.roles.standing import Standing

OPTIONS_MAX: Final = 70
"""Of more choices for one role only the one that moves least is looked at."""
LEAVES_MAX: Final = 4000
"""So many combinations are looked at."""
NONE_LEFT: Final = "no slot of its list is left"


class Cost(NamedTuple):
    """What is to be small, in this order."""

    lost: int
    """Roles without a holder, and holders that are missing."""
    moved: int
    """Roles that are stopped where they could go on; to pass by a warm standby counts as two."""
    slots_moved: int
    """Processors that change their slot, or lose it."""
    imbalance_pct: float
    """The most load of a member less the least."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a group should be like."""

    slots: Mapping[SlotId, ProcessorId]
    """Who fills which slot, only those in service."""
    holders: Mapping[RoleId, tuple[ProcessorId, ...]]
    """Who should hold each role."""
    cost: Cost
    why: Mapping[RoleId, str] = field(default_factory=dict)
    """By what rule each role is where it is."""


def target_for(at: Standing, slots: Mapping[SlotId, ProcessorId]) -> Target:
    """The best that can be made of a filling."""
    return _Search(at, slots).best()


class _Search:
    """Goes through the preferences of a group, one after the other."""

    def __init__(self, at: Standing, slots: Mapping[SlotId, ProcessorId]) -> None:
        self._at, self._slots = at, slots
        self._fixed: dict[RoleId, list[ProcessorId]] = {}
        self._why: dict[RoleId, str] = {}
        for role, processor in layout_meaning(tuple(slots.items()), at.team.layout):
            here = self._fixed.setdefault(role, [])
            if processor not in here and (role, processor) not in at.isolated:
                here.append(processor)
            self._why[role] = f"the layout says so with {counted(len(slots), 'slot')} filled"
        self._apart = _companions(at.team.apart)
        self._together = _companions(at.team.together)
        self._best: tuple[Cost, dict[RoleId, tuple[ProcessorId, ...]], dict[RoleId, str]] | None
        self._best = None
        self._leaves = 0
        self._slots_moved = sum(
            1 for slot, one in at.members.items() if one in at.present and slots.get(slot) != one
        )

    def best(self) -> Target:
        lost, moved = self._fixed_cost()
        self._go(0, {}, {}, lost, moved)
        assert self._best is not None, "there is always a first choice"
        cost, chosen, why = self._best
        holders = {role: tuple(some) for role, some in self._fixed.items()}
        for role, some in chosen.items():
            holders[role] = tuple(dict.fromkeys((*holders.get(role, ()), *some)))
        return Target(self._slots, holders, cost, {**self._why, **why})

    def _fixed_cost(self) -> tuple[int, int]:
        """What the layout itself loses, and what is stopped whatever is chosen."""
        preferred = {one.role for one in self._at.team.preferences}
        named = [role for role in self._at.named if role not in preferred]
        lost = sum(1 for role in named if not self._fixed.get(role))
        moved = sum(
            1
            for processor in self._at.present
            for role in self._at.held.get(processor, ())
            if role not in preferred and processor not in self._fixed.get(role, ())
        )
        return lost, moved

    def _go(
        self,
        place: int,
        chosen: dict[RoleId, tuple[ProcessorId, ...]],
        why: dict[RoleId, str],
        lost: int,
        moved: int,
    ) -> None:
        if self._best is not None and (lost, moved) > self._best[0][:2]:
            return
        preferences = self._at.team.preferences
        if place == len(preferences):
            self._leaves += 1
            cost = Cost(lost, moved, self._slots_moved, self._imbalance(chosen))
            if self._best is None or cost < self._best[0]:
                self._best = cost, dict(chosen), dict(why)
            return
        one = preferences[place]
        allowed = self._allowed(one, chosen)
        for some, reason in self._options(one, allowed):
            moved_here = _passed_by(self._at, one, allowed, some)
            gone = sum(1 for p in self._at.present if self._at.runs(one.role, p) and p not in some)
            self._go(
                place + 1,
                {**chosen, one.role: some},
                {**why, one.role: reason},
                lost + one.count - len(some),
                moved + gone + moved_here,
            )
            if self._leaves >= LEAVES_MAX:
                return

    def _options(
        self, one: RolePreference, allowed: Sequence[ProcessorId]
    ) -> Iterator[tuple[tuple[ProcessorId, ...], str]]:
        """The choices that a role has among those that may hold it."""
        at = self._at
        count = min(one.count, len(allowed))
        pinned = at.pins.get(one.role)
        first = self._slots.get(pinned) if pinned is not None else None
        if first is not None and first in allowed:
            rest = [p for p in _kept_first(at, one, allowed) if p != first]
            yield (first, *rest[: count - 1]), f"somebody wants it in slot {pinned}"
        elif one.choose is Choose.PRIORITY and one.preempt:
            ready = [p for p in allowed if p not in at.unsettled or at.runs(one.role, p)]
            picked = (ready + [p for p in allowed if p not in ready])[:count]
            yield tuple(picked), _said_priority(at, one, self._slots, allowed, picked)
        elif one.choose is Choose.PRIORITY:
            picked = _kept_first(at, one, allowed)[:count]
            yield tuple(picked), _said_priority(at, one, self._slots, allowed, picked)
        elif one.choose is Choose.LEAST_LOADED:
            picked = self._least_loaded(one, allowed, count)
            yield tuple(picked), _said_load(at, picked)
        else:
            alone = one.role not in self._apart and one.role not in self._together
            for some in _subsets(at, one, allowed, count, alone=alone):
                yield some, _said_any(at, one, some)

    def _allowed(
        self, one: RolePreference, chosen: Mapping[RoleId, Sequence[ProcessorId]]
    ) -> list[ProcessorId]:
        """Who may hold a role, in the order of its list."""
        at, found, role = self._at, [], one.role
        partners = self._places(self._together.get(role, ()), chosen)
        strangers = [p for some in self._places(self._apart.get(role, ()), chosen) for p in some]
        for slot in one.slots:
            processor = self._slots.get(slot)
            if processor is None or processor in found or processor in strangers:
                continue
            if (role, processor) in at.isolated:
                continue
            if processor in at.doubtful and not at.runs(role, processor):
                continue
            if not partners or all(processor in some for some in partners):
                found.append(processor)
        return found

    def _places(
        self, roles: Sequence[RoleId], chosen: Mapping[RoleId, Sequence[ProcessorId]]
    ) -> list[Sequence[ProcessorId]]:
        """Where some roles are; who is nowhere yet does not count."""
        places = [(*self._fixed.get(one, ()), *chosen.get(one, ())) for one in roles]
        return [some for some in places if some]

    def _least_loaded(
        self, one: RolePreference, allowed: Sequence[ProcessorId], count: int
    ) -> list[ProcessorId]:
        at = self._at
        keep = [p for p in allowed if at.runs(one.role, p)][:count]
        free = sorted((p for p in allowed if p not in keep), key=lambda p: _load(at, p))
        if one.promotes is not None and not keep:
            free.sort(key=lambda p: not at.runs(one.promotes or one.role, p))
        if len(keep) == count and keep:
            worst = max(keep, key=lambda p: _load(at, p))
            better = next((p for p in free if p not in at.unsettled), None)
            if better is not None and _load(at, worst) - _load(at, better) > one.threshold_pct:
                return [better if p == worst else p for p in keep]
        return keep + free[: count - len(keep)]

    def _imbalance(self, chosen: Mapping[RoleId, Sequence[ProcessorId]]) -> float:
        at = self._at
        loads = {p: _load(at, p) for p in self._slots.values()}
        for places in (self._fixed, chosen):
            for role, some in places.items():
                weight = at.roles[role].weight_pct if role in at.roles else 0.0
                for p in some:
                    loads[p] += weight
        return max(loads.values()) - min(loads.values()) if loads else 0.0


def _companions(sets: Sequence[Sequence[RoleId]]) -> dict[RoleId, list[RoleId]]:
    """For each role those that are in a set with it."""
    found: dict[RoleId, list[RoleId]] = {}
    for some in sets:
        for role in some:
            mine = found.setdefault(role, [])
            mine += (other for other in some if other != role and other not in mine)
    return found


def _load(at: Standing, processor: ProcessorId) -> float:
    return at.load_pct.get(processor, 0.0)


def _kept_first(
    at: Standing, one: RolePreference, allowed: Sequence[ProcessorId]
) -> list[ProcessorId]:
    """Who holds it, then who is warm, then in order."""
    warm = one.promotes
    return sorted(
        allowed,
        key=lambda p: (not at.runs(one.role, p), warm is None or not at.runs(warm, p)),
    )


def _passed_by(
    at: Standing,
    one: RolePreference,
    allowed: Sequence[ProcessorId],
    some: Sequence[ProcessorId],
) -> int:
    """What it counts to pass by who is warm: as two roles that move, one more than to promote it.

    So a standby is promoted, unless more would be lost by it than is gained.
    """
    warm = one.promotes
    if warm is None:
        return 0
    left = sum(1 for p in allowed if p not in some and at.runs(warm, p))
    cold = sum(1 for p in some if not at.runs(one.role, p) and not at.runs(warm, p))
    return 2 * min(left, cold)


def _subsets(
    at: Standing, one: RolePreference, allowed: Sequence[ProcessorId], count: int, *, alone: bool
) -> Iterator[tuple[ProcessorId, ...]]:
    ordered = _kept_first(at, one, allowed)
    if alone and all(at.runs(one.role, p) for p in ordered[:count]):
        keeping = sum(at.runs(one.role, p) for p in ordered)
        if keeping == count:  # nobody else has to make way for it, so that to stay is best
            yield tuple(ordered[:count])
            return
    if comb(len(ordered), count) > OPTIONS_MAX:
        even = sorted(ordered, key=lambda p: (not at.runs(one.role, p), _load(at, p)))
        yield tuple(even[:count])
        return
    yield from combinations(ordered, count)


def _said_priority(
    at: Standing,
    one: RolePreference,
    slots: Mapping[SlotId, ProcessorId],
    allowed: Sequence[ProcessorId],
    picked: Sequence[ProcessorId],
) -> str:
    if not picked:
        return NONE_LEFT
    here = [slot for slot in one.slots if slots.get(slot) in picked]
    many = len(here) > 1
    mine = f"slot{'s' if many else ''} {', '.join(here)}"
    if all(p in at.held and one.role in at.held[p] for p in picked):
        return f"it stays in {mine}"
    if set(picked) == set(allowed[: len(picked)]):
        return f"{mine} {'come' if many else 'comes'} first of those it may have"
    if one.promotes is not None and any(at.runs(one.promotes, p) for p in picked):
        return f"in {mine} is who is warm, with {one.promotes}"
    return f"who has it keeps it: {mine}"


def _said_any(at: Standing, one: RolePreference, picked: Sequence[ProcessorId]) -> str:
    if one.promotes is not None and any(at.runs(one.promotes, p) for p in picked):
        return f"it may be anywhere, and here is who is warm, with {one.promotes}"
    return "it may be anywhere, and so least is moved and load is even" if picked else NONE_LEFT


def _said_load(at: Standing, picked: Sequence[ProcessorId]) -> str:
    loads = ", ".join(f"{p} has {_load(at, p):.0f} %" for p in picked)
    return f"the least loaded: {loads}" if loads else NONE_LEFT
