"""Which filled slots a preferred role takes: least roles lost, then least roles moved.

Roles choose in the order of the group: a later role works around an earlier one. Where a role
allows several choices, all of them are compared, up to a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Final, NamedTuple

from equipoise.model.quantity import ProcessorId, RoleId, SlotId, format_count
from equipoise.model.roles.layout import RolePreference, SlotChoice
from equipoise.roles.assess import GroupStatus
from equipoise.roles.meaning import layout_meaning

OPTIONS_MAX: Final = 70
"""If a role has more choices, only the one that moves least is tried."""
COMBINATIONS_MAX: Final = 4000
"""The search ends after this many combinations of all roles."""
NO_SLOT_REASON: Final = "no slot of its list is available"


class AssignmentCost(NamedTuple):
    """The cost of an assignment, compared field by field in this order."""

    lost: int
    """Roles without a holder, and missing holders."""
    roles_moved: int
    """Roles that stop on a processor that could keep them. Passing over a standby counts as two."""
    slots_moved: int
    """Processors that change or lose their slot."""
    imbalance_pct: float
    """The highest load of a member minus the lowest."""


@dataclass(frozen=True, slots=True)
class RoleTarget:
    """The target of a group."""

    slots: Mapping[SlotId, ProcessorId]
    """The processor of each slot, only processors in service."""
    holders: Mapping[RoleId, tuple[ProcessorId, ...]]
    """The holders of each role."""
    cost: AssignmentCost
    why: Mapping[RoleId, str] = field(default_factory=dict)
    """The rule by which each role has its place."""


def best_assignment(group_status: GroupStatus, slots: Mapping[SlotId, ProcessorId]) -> RoleTarget:
    """Return the best assignment for a filling of the slots."""
    return _AssignmentSearch(group_status, slots).best()


class _AssignmentSearch:
    """A depth-first search over the preferences of a group, with a bound on the cost."""

    def __init__(self, group_status: GroupStatus, slots: Mapping[SlotId, ProcessorId]) -> None:
        self._group_status, self._slots = group_status, slots
        self._fixed: dict[RoleId, list[ProcessorId]] = {}
        self._why: dict[RoleId, str] = {}
        for role, processor in layout_meaning(tuple(slots.items()), group_status.team.layout):
            here = self._fixed.setdefault(role, [])
            if processor not in here and (role, processor) not in group_status.isolated:
                here.append(processor)
            self._why[role] = f"the layout places it with {format_count(len(slots), 'slot')} filled"
        self._apart = _partners(group_status.team.apart)
        self._together = _partners(group_status.team.together)
        self._best: (
            tuple[AssignmentCost, dict[RoleId, tuple[ProcessorId, ...]], dict[RoleId, str]] | None
        )
        self._best = None
        self._combinations = 0
        self._slots_moved = sum(
            1
            for slot, owner in group_status.members.items()
            if owner in group_status.present and slots.get(slot) != owner
        )

    def best(self) -> RoleTarget:
        lost, moved = self._fixed_cost()
        self._search(0, {}, {}, lost, moved)
        assert self._best is not None, "the search always reaches one assignment"
        cost, chosen, why = self._best
        holders = {role: tuple(processors) for role, processors in self._fixed.items()}
        for role, processors in chosen.items():
            holders[role] = tuple(dict.fromkeys((*holders.get(role, ()), *processors)))
        return RoleTarget(self._slots, holders, cost, {**self._why, **why})

    def _fixed_cost(self) -> tuple[int, int]:
        """Return the lost and the moved roles that no choice can avoid."""
        preferred = {preference.role for preference in self._group_status.team.preferences}
        named = [role for role in self._group_status.named if role not in preferred]
        lost = sum(1 for role in named if not self._fixed.get(role))
        moved = sum(
            1
            for processor in self._group_status.present
            for role in self._group_status.held.get(processor, ())
            if role not in preferred and processor not in self._fixed.get(role, ())
        )
        return lost, moved

    def _search(
        self,
        index: int,
        chosen: dict[RoleId, tuple[ProcessorId, ...]],
        why: dict[RoleId, str],
        lost: int,
        moved: int,
    ) -> None:
        # Branch and bound: both figures only grow along a branch.
        if self._best is not None and (lost, moved) > self._best[0][:2]:
            return
        preferences = self._group_status.team.preferences
        if index == len(preferences):
            self._combinations += 1
            cost = AssignmentCost(lost, moved, self._slots_moved, self._imbalance(chosen))
            if self._best is None or cost < self._best[0]:
                self._best = cost, dict(chosen), dict(why)
            return
        preference = preferences[index]
        allowed = self._allowed(preference, chosen)
        for holders, reason in self._options(preference, allowed):
            passed_over = _standbys_passed_over(self._group_status, preference, allowed, holders)
            stopped = sum(
                1
                for processor in self._group_status.present
                if self._group_status.runs(preference.role, processor) and processor not in holders
            )
            self._search(
                index + 1,
                {**chosen, preference.role: holders},
                {**why, preference.role: reason},
                lost + preference.count - len(holders),
                moved + stopped + passed_over,
            )
            # The first branches keep current holders, so an early end is still a good answer.
            if self._combinations >= COMBINATIONS_MAX:
                return

    def _options(
        self, preference: RolePreference, allowed: Sequence[ProcessorId]
    ) -> Iterator[tuple[tuple[ProcessorId, ...], str]]:
        """Yield the choices of a role among the processors that may hold it, with the reason."""
        group_status = self._group_status
        count = min(preference.count, len(allowed))
        pinned = group_status.pins.get(preference.role)
        first = self._slots.get(pinned) if pinned is not None else None
        if first is not None and first in allowed:
            rest = [
                p for p in _current_holders_first(group_status, preference, allowed) if p != first
            ]
            yield (first, *rest[: count - 1]), f"a move to slot {pinned} was requested"
        elif preference.choose is SlotChoice.PRIORITY and preference.preempt:
            # A processor on probation must not preempt. It keeps what it runs and is used if no
            # other is left.
            ready = [
                p
                for p in allowed
                if p not in group_status.on_probation or group_status.runs(preference.role, p)
            ]
            picked = (ready + [p for p in allowed if p not in ready])[:count]
            yield (
                tuple(picked),
                _priority_reason(group_status, preference, self._slots, allowed, picked),
            )
        elif preference.choose is SlotChoice.PRIORITY:
            picked = _current_holders_first(group_status, preference, allowed)[:count]
            yield (
                tuple(picked),
                _priority_reason(group_status, preference, self._slots, allowed, picked),
            )
        elif preference.choose is SlotChoice.LEAST_LOADED:
            picked = self._least_loaded(preference, allowed, count)
            yield tuple(picked), _load_reason(group_status, picked)
        else:
            alone = preference.role not in self._apart and preference.role not in self._together
            for holders in _holder_subsets(group_status, preference, allowed, count, alone=alone):
                yield holders, _any_reason(group_status, preference, holders)

    def _allowed(
        self, preference: RolePreference, chosen: Mapping[RoleId, Sequence[ProcessorId]]
    ) -> list[ProcessorId]:
        """Return the processors that may hold a role, in the order of its list."""
        group_status, allowed, role = self._group_status, [], preference.role
        # Only roles that have chosen already constrain this one.
        partners = self._places(self._together.get(role, ()), chosen)
        separated = [
            other
            for holders in self._places(self._apart.get(role, ()), chosen)
            for other in holders
        ]
        for slot in preference.slots:
            processor = self._slots.get(slot)
            if processor is None or processor in allowed or processor in separated:
                continue
            if (role, processor) in group_status.isolated:
                continue
            if processor in group_status.suspected and not group_status.runs(role, processor):
                continue
            if not partners or all(processor in holders for holders in partners):
                allowed.append(processor)
        return allowed

    def _places(
        self, roles: Sequence[RoleId], chosen: Mapping[RoleId, Sequence[ProcessorId]]
    ) -> list[Sequence[ProcessorId]]:
        """Return the holders of each of the roles; roles without a holder are left out."""
        places = [(*self._fixed.get(role, ()), *chosen.get(role, ())) for role in roles]
        return [holders for holders in places if holders]

    def _least_loaded(
        self, preference: RolePreference, allowed: Sequence[ProcessorId], count: int
    ) -> list[ProcessorId]:
        group_status = self._group_status
        # Current holders stay unless another is better by the threshold: load alone must not move
        # roles to and fro.
        keep = [p for p in allowed if group_status.runs(preference.role, p)][:count]
        free = sorted(
            (p for p in allowed if p not in keep), key=lambda p: _load_pct(group_status, p)
        )
        if preference.promotes is not None and not keep:
            free.sort(
                key=lambda p: not group_status.runs(preference.promotes or preference.role, p)
            )
        if len(keep) == count and keep:
            worst = max(keep, key=lambda p: _load_pct(group_status, p))
            better = next((p for p in free if p not in group_status.on_probation), None)
            if (
                better is not None
                and _load_pct(group_status, worst) - _load_pct(group_status, better)
                > preference.threshold_pct
            ):
                # One holder at a time. The load is measured again before the next change.
                return [better if p == worst else p for p in keep]
        return keep + free[: count - len(keep)]

    def _imbalance(self, chosen: Mapping[RoleId, Sequence[ProcessorId]]) -> float:
        group_status = self._group_status
        loads = {p: _load_pct(group_status, p) for p in self._slots.values()}
        for places in (self._fixed, chosen):
            for role, holders in places.items():
                weight = group_status.roles[role].weight_pct if role in group_status.roles else 0.0
                for p in holders:
                    loads[p] += weight
        return max(loads.values()) - min(loads.values()) if loads else 0.0


def _partners(sets: Sequence[Sequence[RoleId]]) -> dict[RoleId, list[RoleId]]:
    """Return, for each role, the roles that share a set with it."""
    partners: dict[RoleId, list[RoleId]] = {}
    for roles in sets:
        for role in roles:
            others = partners.setdefault(role, [])
            others += (other for other in roles if other != role and other not in others)
    return partners


def _load_pct(group_status: GroupStatus, processor: ProcessorId) -> float:
    return group_status.load_pct.get(processor, 0.0)


def _current_holders_first(
    group_status: GroupStatus, preference: RolePreference, allowed: Sequence[ProcessorId]
) -> list[ProcessorId]:
    """Return current holders first, then standbys, then the others in order."""
    standby = preference.promotes
    return sorted(
        allowed,
        key=lambda p: (
            not group_status.runs(preference.role, p),
            standby is None or not group_status.runs(standby, p),
        ),
    )


def _standbys_passed_over(
    group_status: GroupStatus,
    preference: RolePreference,
    allowed: Sequence[ProcessorId],
    holders: Sequence[ProcessorId],
) -> int:
    """Return the cost of passing over a standby: two moved roles for each.

    A promotion costs one less. So a standby is promoted unless that loses more than it gains.
    """
    standby = preference.promotes
    if standby is None:
        return 0
    passed_over = sum(1 for p in allowed if p not in holders and group_status.runs(standby, p))
    cold = sum(
        1
        for p in holders
        if not group_status.runs(preference.role, p) and not group_status.runs(standby, p)
    )
    return 2 * min(passed_over, cold)


def _holder_subsets(
    group_status: GroupStatus,
    preference: RolePreference,
    allowed: Sequence[ProcessorId],
    count: int,
    *,
    alone: bool,
) -> Iterator[tuple[ProcessorId, ...]]:
    ordered = _current_holders_first(group_status, preference, allowed)
    if alone and all(group_status.runs(preference.role, p) for p in ordered[:count]):
        keeping = sum(group_status.runs(preference.role, p) for p in ordered)
        if keeping == count:  # no other role has to move for it, so staying is best
            yield tuple(ordered[:count])
            return
    if comb(len(ordered), count) > OPTIONS_MAX:
        by_load = sorted(
            ordered,
            key=lambda p: (not group_status.runs(preference.role, p), _load_pct(group_status, p)),
        )
        yield tuple(by_load[:count])
        return
    yield from combinations(ordered, count)


def _priority_reason(
    group_status: GroupStatus,
    preference: RolePreference,
    slots: Mapping[SlotId, ProcessorId],
    allowed: Sequence[ProcessorId],
    picked: Sequence[ProcessorId],
) -> str:
    if not picked:
        return NO_SLOT_REASON
    picked_slots = [slot for slot in preference.slots if slots.get(slot) in picked]
    is_plural = len(picked_slots) > 1
    slots_text = f"slot{'s' if is_plural else ''} {', '.join(picked_slots)}"
    if all(p in group_status.held and preference.role in group_status.held[p] for p in picked):
        return f"it stays in {slots_text}"
    if set(picked) == set(allowed[: len(picked)]):
        return f"{slots_text} {'come' if is_plural else 'comes'} first in its list"
    if preference.promotes is not None and any(
        group_status.runs(preference.promotes, p) for p in picked
    ):
        verb = "run" if is_plural else "runs"
        return f"{slots_text} already {verb} the standby {preference.promotes}"
    return f"the current holder keeps it: {slots_text}"


def _any_reason(
    group_status: GroupStatus, preference: RolePreference, picked: Sequence[ProcessorId]
) -> str:
    if preference.promotes is not None and any(
        group_status.runs(preference.promotes, p) for p in picked
    ):
        return f"any slot is allowed; this one runs the standby {preference.promotes}"
    return (
        "any slot is allowed; this choice moves least and balances load"
        if picked
        else NO_SLOT_REASON
    )


def _load_reason(group_status: GroupStatus, picked: Sequence[ProcessorId]) -> str:
    loads = ", ".join(f"{p} has {_load_pct(group_status, p):.0f} %" for p in picked)
    return f"the least loaded: {loads}" if loads else NO_SLOT_REASON
