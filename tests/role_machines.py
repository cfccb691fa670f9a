"""The controller of roles as a machine: whatever happens in whatever order, its laws hold."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from equipoise.model.event import (
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    ProcessorUnlocked,
    RoleMoveAsked,
)
from equipoise.model.quantity import ProcessorId, RoleId, SlotId
from equipoise.model.roles.layout import (
    Choose,
    Element,
    Ready,
    Redundancy,
    RolePreference,
    Workload,
)
from equipoise.roles.standing import measured_pct
from role_walks import (
    FREE,
    PROCESSORS,
    SLOTS,
    Desk,
    a_layout_of,
    a_team,
    layouts,
    preferences,
)

one_of_them = st.sampled_from(PROCESSORS)


class Calm(RuleBasedStateMachine):
    """Everything comes to rest after each event; nothing fails by itself."""

    vms: ClassVar[bool] = False
    kinds: ClassVar[tuple[Choose, ...]] = (Choose.PRIORITY, Choose.ANY)

    @initialize(layout=layouts(), data=st.data(), packed=st.booleans())
    def start(self, layout: tuple[Element, ...], data: st.DataObject, packed: bool) -> None:
        wanted = data.draw(preferences(self.kinds))
        self.desk = Desk(a_layout_of(a_team(layout, wanted, packed=packed, vms=self.vms)))
        self.desk.settle()

    def _before(self) -> tuple[dict[SlotId, ProcessorId], dict[RoleId, set[ProcessorId]]]:
        return self.desk.members(), {role: self.desk.holders(role) for role in FREE}

    def _moved(self, before: dict[SlotId, ProcessorId], but: ProcessorId) -> int:
        now = self.desk.members()
        return sum(1 for slot, p in before.items() if p != but and now.get(slot) != p)

    def _check_sticky(self, held: dict[RoleId, set[ProcessorId]]) -> None:
        """Who holds a role that does not look for better places keeps it while it has its slot."""
        here = set(self.desk.members().values())
        for one in self.desk.team().preferences:
            places = {self.desk.members().get(slot) for slot in one.slots}
            free = one.choose is Choose.ANY or not one.preempt
            if free and one.choose is not Choose.LEAST_LOADED:
                staying = {p for p in held[one.role] if p in here and p in places}
                assert staying <= self.desk.holders(one.role), f"{one.role} has moved for nothing"

    @rule(name=one_of_them)
    def up(self, name: ProcessorId) -> None:
        known = name in self.desk.in_service()
        before, held = self._before()
        asked = len(self.desk.asked)
        self.desk.up(name)
        self.desk.settle()
        assert self._moved(before, name) == 0, "nobody changes slot because somebody joins"
        assert not known or len(self.desk.asked) == asked, "who is up already changes nothing"
        self._check_sticky(held)

    @rule(name=one_of_them)
    def down(self, name: ProcessorId) -> None:
        before, held = self._before()
        self.desk.down(name)
        self.desk.settle()
        most = 1 if self.desk.team().packed else 0
        assert self._moved(before, name) <= most, "survivors stay where they are"
        self._check_sticky(held)

    @rule(data=st.data())
    def a_member_fails(self, data: st.DataObject) -> None:
        members = sorted(self.desk.members().values())
        if members:
            self.down(data.draw(st.sampled_from(members)))

    @rule(name=one_of_them)
    def down_and_up(self, name: ProcessorId) -> None:
        counts = {role: len(self.desk.holders(role)) for role in FREE}
        known = name in self.desk.in_service()
        self.desk.down(name)
        self.desk.settle()
        self.desk.up(name)
        self.desk.settle()
        if known:
            for role, many in counts.items():
                assert len(self.desk.holders(role)) >= many, "what was covered is covered again"

    @rule(name=one_of_them)
    def lock(self, name: ProcessorId) -> None:
        before, held = self._before()
        self.desk.happen(ProcessorLocked(at_ms=self.desk.at_ms, processor=name))
        self.desk.settle()
        assert self._moved(before, name) <= (1 if self.desk.team().packed else 0)
        assert not any(p == name for _, p in self.desk.running()), "its roles have left it"
        self._check_sticky(held)

    @rule(name=one_of_them)
    def unlock(self, name: ProcessorId) -> None:
        self.desk.happen(ProcessorUnlocked(at_ms=self.desk.at_ms, processor=name))
        self.desk.settle()

    @rule(role=st.sampled_from(FREE), slot=st.sampled_from(SLOTS))
    def move(self, role: RoleId, slot: SlotId) -> None:
        group = self.desk.team().id
        self.desk.happen(RoleMoveAsked(at_ms=self.desk.at_ms, group=group, role=role, slot=slot))
        self.desk.settle()
        (one,) = (one for one in self.desk.team().preferences if one.role == role)
        if slot in one.slots and slot in self.desk.members():
            assert self.desk.members()[slot] in self.desk.holders(role), "it is where it is wanted"
        self.desk.happen(RoleMoveAsked(at_ms=self.desk.at_ms, group=group, role=role))
        self.desk.settle()

    @invariant()
    def laws(self) -> None:
        if hasattr(self, "desk"):
            self.desk.check_always()
            self.desk.check_at_rest()


class Loaded(Calm):
    """VMs as processors, with load: the least loaded is chosen, and stays while that is right."""

    vms = True
    kinds = (Choose.LEAST_LOADED,)

    @rule(loads=st.dictionaries(one_of_them, st.integers(0, 1000)))
    def load_changes(self, loads: dict[ProcessorId, int]) -> None:
        self.desk.load(loads)
        self.desk.settle()

    def _check_sticky(self, held: dict[RoleId, set[ProcessorId]]) -> None:
        for one in self.desk.team().preferences:
            self._check_choice(one, held[one.role])

    def _check_choice(self, one: RolePreference, before: set[ProcessorId]) -> None:
        """Of those that may have it, nobody who was passed over had less load; but who had it
        before may keep it, unless another has a good deal less."""
        members, snapshot = self.desk.members(), self.desk.snapshot
        may = [members[slot] for slot in one.slots if slot in members]
        holders = self.desk.holders(one.role)
        load = {p: measured_pct(snapshot, p) for p in may}
        for p in holders:
            for other in set(may) - holders:
                if p in before:
                    assert load[p] - load[other] <= one.threshold_pct
                else:
                    assert load[p] <= load[other]


class Storm(RuleBasedStateMachine):
    """Events come while actions are under way and fail; nothing is awaited.

    Here only what holds at every instant is asked, and that all is well once the storm is over.
    """

    @initialize(layout=layouts(), wanted=preferences((Choose.PRIORITY, Choose.ANY)))
    def start(self, layout: tuple[Element, ...], wanted: tuple[RolePreference, ...]) -> None:
        team = a_team(layout, wanted, grace_s=20, suspect_s=10, probation_s=15, retry_s=5)
        self.desk = Desk(a_layout_of(team))

    @rule(name=one_of_them)
    def up(self, name: ProcessorId) -> None:
        self.desk.up(name)

    @rule(name=one_of_them)
    def down(self, name: ProcessorId) -> None:
        self.desk.down(name)

    @rule(name=one_of_them)
    def suspect(self, name: ProcessorId) -> None:
        self.desk.happen(ProcessorSuspected(at_ms=self.desk.at_ms, processor=name))

    @rule(name=one_of_them)
    def trust(self, name: ProcessorId) -> None:
        self.desk.happen(ProcessorTrusted(at_ms=self.desk.at_ms, processor=name))

    @rule()
    def ask(self) -> None:
        self.desk.ask()

    @rule(place=st.integers(0, 20), well=st.booleans())
    @precondition(lambda self: hasattr(self, "desk") and self.desk.open)
    def answer(self, place: int, well: bool) -> None:
        self.desk.answer(place, well=well)

    @rule(seconds=st.integers(1, 30))
    def time_passes(self, seconds: int) -> None:
        self.desk.at_ms += 1000 * seconds

    @invariant()
    def single_roles_have_one_holder(self) -> None:
        if hasattr(self, "desk"):
            self.desk.check_always()

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            for name in PROCESSORS:
                self.desk.happen(ProcessorTrusted(at_ms=self.desk.at_ms, processor=name))
            while self.desk.open:
                self.desk.answer()
            self.desk.wait(3600)
            self.desk.check_at_rest()


class Redundant(RuleBasedStateMachine):
    """The redundancy models: how many are active, how many stand by, and who takes over."""

    @initialize(
        model=st.sampled_from(Redundancy), actives=st.integers(1, 2), standbys=st.integers(1, 2)
    )
    def start(self, model: Redundancy, actives: int, standbys: int) -> None:
        names = (("a", "x"), ("b", "y")) if model in (Redundancy.N_WAY, Redundancy.NONE) else ()
        pairs = [(RoleId(a), RoleId(s)) for a, s in names] or [(RoleId("a"), RoleId("x"))]
        has_standbys = model not in (Redundancy.N_WAY_ACTIVE, Redundancy.NONE)
        self.pairs = pairs if has_standbys else [(a, None) for a, _ in pairs]
        work = tuple(Workload(active=a, standby=s) for a, s in self.pairs)
        self.ready = Ready(model=model, workloads=work, actives=actives, standbys=standbys)
        self.desk = Desk(a_layout_of(a_team(redundancy=self.ready)))
        self.desk.settle()

    @rule(data=st.data())
    def a_member_fails(self, data: st.DataObject) -> None:
        members = sorted(self.desk.members().values())
        if not members:
            return
        lost = data.draw(st.sampled_from(members))
        before = {role: self.desk.holders(role) for pair in self.pairs for role in pair if role}
        self.desk.down(lost)
        self.desk.settle()
        for active, standby in self.pairs:
            if standby is not None and lost in before[active] and before[standby] - {lost}:
                new = self.desk.holders(active) - before[active]
                assert new <= before[standby], "who is warm takes over"

    @rule(name=one_of_them)
    def up(self, name: ProcessorId) -> None:
        before = {active: self.desk.holders(active) for active, _ in self.pairs}
        self.desk.up(name)
        self.desk.settle()
        for active, holders in before.items():
            assert holders <= self.desk.holders(active), "nobody who is active is replaced"

    @invariant()
    def laws(self) -> None:
        if hasattr(self, "desk"):
            self.desk.check_always()
            many, ready = len(self.desk.members()), self.ready
            both = ready.model in (Redundancy.N_PLUS_M, Redundancy.N_WAY_ACTIVE)
            taken = 0
            for active, standby in self.pairs:
                free = many - taken if ready.model is Redundancy.NONE else many
                actives = min(ready.actives if both else 1, max(0, free))
                assert len(self.desk.holders(active)) == actives
                taken += actives
                if standby is not None:
                    wanted = 1 if ready.model is Redundancy.TWO_N else ready.standbys
                    assert len(self.desk.holders(standby)) == min(wanted, max(0, many - actives))
                    assert not self.desk.holders(active) & self.desk.holders(standby)
