"""The target of a group is optimal: compared with every filling and every choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, permutations
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from equipoise.model.event import RolesFound, SlotsFilled, VmChanged, VmCrashed
from equipoise.model.quantity import ProcessorId, RoleId, SlotId, VmId
from equipoise.model.roles.layout import LayoutElement, Role, RoleGroup, RolePreference, SlotChoice
from equipoise.model.roles.state import layout_index
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand
from equipoise.roles import assignment, slot_filling
from equipoise.roles.assess import GroupContext, assess_group, cpu_load_pct
from equipoise.roles.assignment import AssignmentCost, RoleTarget
from equipoise.roles.meaning import layout_meaning
from equipoise.roles.propose import best_role_target
from role_harness import (
    FIXED,
    FREE,
    GROUP,
    PROCESSORS,
    SLOTS,
    a_layout_of,
    a_team,
    an_inventory_for,
    layouts,
    preferences,
)

Slots = dict[SlotId, ProcessorId]
Holders = dict[RoleId, tuple[ProcessorId, ...]]


class Oracle:
    """All choices of a group, by brute force from the rules of docs/roles.md alone."""

    def __init__(self, snapshot: Snapshot, team: RoleGroup, roles: Mapping[RoleId, Role]) -> None:
        self.team, self.roles, self.snapshot = team, roles, snapshot
        self.up = [p for p in team.processors if snapshot.vms[VmId(p)].state == "running"]
        self.members: Slots = dict(snapshot.role_state.slots.get(GROUP, {}))
        held = snapshot.role_state.held
        self.held = {p: [d.role for d in held.get(p, ())] for p in self.up}
        loaded = any(item.choose is SlotChoice.LEAST_LOADED for item in team.preferences)
        self.load = {p: cpu_load_pct(snapshot, p) if loaded else 0.0 for p in self.up}

    def costs(self) -> Iterator[AssignmentCost]:
        for slots in self.fillings():
            fixed = layout_meaning(tuple(slots.items()), self.team.layout)
            for chosen in self.choices(slots, fixed, 0, {}):
                yield self.cost(slots, fixed, chosen)

    def fillings(self) -> Iterator[Slots]:
        """Yield fillings: members that are up stay, and as many spares as possible join."""
        kept = {s: p for s, p in self.members.items() if p in self.up}
        free = [s for s in SLOTS if s not in kept]
        spares = [p for p in self.up if p not in kept.values()]
        count = min(len(free), len(spares))
        for chosen_slots in combinations(free, count):
            for chosen_spares in permutations(spares, count):
                yield kept | dict(zip(chosen_slots, chosen_spares, strict=True))

    def choices(
        self, slots: Slots, fixed: list[tuple[RoleId, ProcessorId]], index: int, chosen: Holders
    ) -> Iterator[Holders]:
        if index == len(self.team.preferences):
            yield chosen
            return
        preference = self.team.preferences[index]
        for holders in self.options(preference, slots, fixed, chosen):
            yield from self.choices(slots, fixed, index + 1, {**chosen, preference.role: holders})

    def options(
        self,
        preference: RolePreference,
        slots: Slots,
        fixed: list[tuple[RoleId, ProcessorId]],
        chosen: Holders,
    ) -> Iterator[tuple[ProcessorId, ...]]:
        where: dict[RoleId, set[ProcessorId]] = {}
        for role, p in [*fixed, *((r, p) for r, roles in chosen.items() for p in roles)]:
            where.setdefault(role, set()).add(p)
        allowed = [slots[s] for s in preference.slots if s in slots]
        for roles in self.team.apart:
            if preference.role in roles:
                allowed = [
                    p
                    for p in allowed
                    if not any(p in where.get(r, ()) for r in roles if r != preference.role)
                ]
        for roles in self.team.together:
            if preference.role in roles:
                for other in roles:
                    if other != preference.role and other in where:
                        allowed = [p for p in allowed if p in where[other]]
        count = min(preference.count, len(allowed))
        current = [p for p in allowed if preference.role in self.held[p]]
        rest = [p for p in allowed if p not in current]
        if preference.choose is SlotChoice.PRIORITY:
            yield tuple((allowed if preference.preempt else current + rest)[:count])
        elif preference.choose is SlotChoice.ANY:
            yield from combinations(allowed, count)
        else:
            yield self.least_loaded(
                preference, current[:count], [p for p in allowed if p not in current[:count]], count
            )

    def least_loaded(
        self,
        preference: RolePreference,
        current: list[ProcessorId],
        rest: list[ProcessorId],
        count: int,
    ) -> tuple[ProcessorId, ...]:
        rest = sorted(rest, key=lambda p: self.load[p])
        if current and len(current) == count and rest:
            worst = max(current, key=lambda p: self.load[p])
            if self.load[worst] - self.load[rest[0]] > preference.threshold_pct:
                return tuple(rest[0] if p == worst else p for p in current)
        return tuple((current + rest)[:count])

    def cost(
        self, slots: Slots, fixed: list[tuple[RoleId, ProcessorId]], chosen: Holders
    ) -> AssignmentCost:
        preferred = {item.role: item.count for item in self.team.preferences}
        wanted = set(fixed) | {(r, p) for r, some in chosen.items() for p in some}
        named = set(roles_in(self.team)) - set(preferred)
        lost = sum(1 for role in named if not any(r == role for r, _ in wanted))
        lost += sum(many - len(chosen[role]) for role, many in preferred.items())
        moved = sum(1 for p in self.up for r in self.held[p] if (r, p) not in wanted)
        slots_moved = sum(1 for s, p in self.members.items() if p in self.up and slots.get(s) != p)
        loads = {p: self.load[p] for p in slots.values()}
        for r, p in wanted:
            loads[p] += self.roles[r].weight_pct
        spread = max(loads.values()) - min(loads.values()) if loads else 0.0
        return AssignmentCost(lost, moved, slots_moved, spread)


def roles_in(team: RoleGroup) -> Iterator[RoleId]:
    def within(layout: tuple[LayoutElement, ...]) -> Iterator[RoleId]:
        for element in layout:
            yield from element.on_each or ()
            yield from element.roles
            yield from within(element.layout)

    yield from within(team.layout)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Snapshot, RoleGroup, Mapping[RoleId, Role]]:
    """Draw a group in the middle of a run: some processors up, in slots, running roles."""
    pairs = st.lists(st.sampled_from(FREE), min_size=2, max_size=2, unique=True).map(tuple)
    relation = draw(st.sampled_from(["none", "apart", "together"]))
    relations = {relation: (draw(pairs),)} if relation != "none" else {}
    team = a_team(draw(layouts()), draw(preferences()), vms=True, **relations)
    weights = st.sampled_from([1.0, 2.0, 5.0])
    roles = [Role(id=role, weight_pct=draw(weights)) for role in (*FIXED, *FREE)]
    layout = a_layout_of(team, roles=roles)
    snapshot = Snapshot.of(an_inventory_for(layout))
    processors = draw(st.permutations(PROCESSORS))
    slots = {s: p for s, p in zip(SLOTS, processors, strict=False) if draw(st.booleans())}
    events = [SlotsFilled(at_ms=0, group=GROUP, slots=slots)]
    for p in PROCESSORS:
        mhz = draw(st.sampled_from([0, 100, 300, 900]))
        vm = snapshot.vms[VmId(p)].but(demand=Demand(cpu_mhz=mhz))
        events.append(VmChanged(at_ms=0, vm=vm))  # type: ignore[arg-type]
        roles_here = draw(st.lists(st.sampled_from((*FIXED, *FREE)), max_size=2, unique=True))
        held = tuple((GROUP, role) for role in roles_here)
        events.append(RolesFound(at_ms=0, processor=p, held=held))  # type: ignore[arg-type]
    failed = draw(st.sets(st.sampled_from(PROCESSORS), max_size=4))
    events += [VmCrashed(at_ms=0, vm=VmId(p)) for p in sorted(failed)]  # type: ignore[misc]
    after = transition.replay(snapshot, events)
    return after, layout_index(layout).groups[GROUP], layout_index(layout).roles


def check_optimal(
    situation: tuple[Snapshot, RoleGroup, Mapping[RoleId, Role]],
) -> None:
    snapshot, team, roles = situation
    layout = snapshot.settings.layout
    assert layout is not None
    oracle = Oracle(snapshot, team, roles)
    target: RoleTarget = best_role_target(
        assess_group(snapshot, layout_index(layout), GROUP, GroupContext())
    )
    fixed = layout_meaning(tuple(target.slots.items()), team.layout)
    chosen = {preference.role: target.holders[preference.role] for preference in team.preferences}
    # A role that is both fixed and preferred cannot be separated here.
    assume(not {role for role, _ in fixed} & set(chosen))
    cost = oracle.cost(dict(target.slots), fixed, chosen)
    assert cost == target.cost
    assert dict(target.slots) in list(oracle.fillings())
    best = min(oracle.costs())
    assert cost[:3] == best[:3]
    assert abs(cost.imbalance_pct - best.imbalance_pct) < 1e-9


@given(situations())
@settings(max_examples=80)
def test_no_filling_and_no_choice_is_better_than_the_target(
    situation: tuple[Snapshot, RoleGroup, Mapping[RoleId, Role]],
) -> None:
    check_optimal(situation)


@pytest.mark.parametrize(
    ("module", "bound"),
    [(slot_filling, "FILLINGS_MAX"), (assignment, "OPTIONS_MAX"), (assignment, "COMBINATIONS_MAX")],
)
def test_a_search_that_stops_at_the_first_result_is_found(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, bound: str
) -> None:
    monkeypatch.setattr(module, bound, 1)
    quick = settings(
        max_examples=1500, phases=[Phase.generate], derandomize=True, database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        quick(given(situations())(check_optimal))()
