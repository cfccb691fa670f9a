"""The role decider as a state machine: its laws hold for every sequence of events."""

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
    RoleMoveRequested,
)
from equipoise.model.quantity import ProcessorId, RoleId, SlotId
from equipoise.model.roles.layout import (
    LayoutElement,
    ProtectedWorkload,
    RedundancyLayout,
    RedundancyModel,
    RolePreference,
    SlotChoice,
)
from equipoise.roles.assess import cpu_load_pct
from role_harness import (
    FREE,
    PROCESSORS,
    SLOTS,
    RoleHarness,
    a_layout_of,
    a_team,
    layouts,
    preferences,
)

any_processor = st.sampled_from(PROCESSORS)


class SteadyRoles(RuleBasedStateMachine):
    """The decider settles after each event; no action fails."""

    vms: ClassVar[bool] = False
    kinds: ClassVar[tuple[SlotChoice, ...]] = (SlotChoice.PRIORITY, SlotChoice.ANY)

    @initialize(layout=layouts(), data=st.data(), packed=st.booleans())
    def start(self, layout: tuple[LayoutElement, ...], data: st.DataObject, packed: bool) -> None:
        preferred = data.draw(preferences(self.kinds))
        self.harness = RoleHarness(
            a_layout_of(a_team(layout, preferred, packed=packed, vms=self.vms))
        )
        self.harness.settle()

    def _before(self) -> tuple[dict[SlotId, ProcessorId], dict[RoleId, set[ProcessorId]]]:
        return self.harness.members(), {role: self.harness.holders(role) for role in FREE}

    def _moved(self, before: dict[SlotId, ProcessorId], but: ProcessorId) -> int:
        now = self.harness.members()
        return sum(1 for slot, p in before.items() if p != but and now.get(slot) != p)

    def _check_sticky(self, held: dict[RoleId, set[ProcessorId]]) -> None:
        """Check that a holder keeps a role that does not preempt while it keeps its slot."""
        here = set(self.harness.members().values())
        for preference in self.harness.team().preferences:
            slot_holders = {self.harness.members().get(slot) for slot in preference.slots}
            free = preference.choose is SlotChoice.ANY or not preference.preempt
            if free and preference.choose is not SlotChoice.LEAST_LOADED:
                staying = {
                    processor
                    for processor in held[preference.role]
                    if processor in here and processor in slot_holders
                }
                assert staying <= self.harness.holders(preference.role), (
                    f"{preference.role} has moved without a reason"
                )

    @rule(name=any_processor)
    def up(self, name: ProcessorId) -> None:
        known = name in self.harness.in_service()
        before, held = self._before()
        asked = len(self.harness.asked)
        self.harness.up(name)
        self.harness.settle()
        assert self._moved(before, name) == 0, "no member changes its slot when a processor joins"
        assert not known or len(self.harness.asked) == asked, (
            "a processor that was up changes nothing"
        )
        self._check_sticky(held)

    @rule(name=any_processor)
    def down(self, name: ProcessorId) -> None:
        before, held = self._before()
        self.harness.down(name)
        self.harness.settle()
        most = 1 if self.harness.team().packed else 0
        assert self._moved(before, name) <= most, "the other members keep their slots"
        self._check_sticky(held)

    @rule(data=st.data())
    def a_member_fails(self, data: st.DataObject) -> None:
        members = sorted(self.harness.members().values())
        if members:
            self.down(data.draw(st.sampled_from(members)))

    @rule(name=any_processor)
    def down_and_up(self, name: ProcessorId) -> None:
        counts = {role: len(self.harness.holders(role)) for role in FREE}
        known = name in self.harness.in_service()
        self.harness.down(name)
        self.harness.settle()
        self.harness.up(name)
        self.harness.settle()
        if known:
            for role, count in counts.items():
                assert len(self.harness.holders(role)) >= count, "every role is covered again"

    @rule(name=any_processor)
    def lock(self, name: ProcessorId) -> None:
        before, held = self._before()
        self.harness.happen(ProcessorLocked(at_ms=self.harness.at_ms, processor=name))
        self.harness.settle()
        assert self._moved(before, name) <= (1 if self.harness.team().packed else 0)
        assert not any(p == name for _, p in self.harness.running()), "it holds no role any more"
        self._check_sticky(held)

    @rule(name=any_processor)
    def unlock(self, name: ProcessorId) -> None:
        self.harness.happen(ProcessorUnlocked(at_ms=self.harness.at_ms, processor=name))
        self.harness.settle()

    @rule(role=st.sampled_from(FREE), slot=st.sampled_from(SLOTS))
    def move(self, role: RoleId, slot: SlotId) -> None:
        group = self.harness.team().id
        self.harness.happen(
            RoleMoveRequested(at_ms=self.harness.at_ms, group=group, role=role, slot=slot)
        )
        self.harness.settle()
        (preference,) = (each for each in self.harness.team().preferences if each.role == role)
        if slot in preference.slots and slot in self.harness.members():
            assert self.harness.members()[slot] in self.harness.holders(role), (
                "the role is in the requested slot"
            )
        self.harness.happen(RoleMoveRequested(at_ms=self.harness.at_ms, group=group, role=role))
        self.harness.settle()

    @invariant()
    def laws(self) -> None:
        if hasattr(self, "harness"):
            self.harness.check_always()
            self.harness.check_at_rest()


class LoadedRoles(SteadyRoles):
    """VMs as processors, with load: the least loaded one is chosen and keeps the role."""

    vms = True
    kinds = (SlotChoice.LEAST_LOADED,)

    @rule(loads=st.dictionaries(any_processor, st.integers(0, 1000)))
    def load_changes(self, loads: dict[ProcessorId, int]) -> None:
        self.harness.load(loads)
        self.harness.settle()

    def _check_sticky(self, held: dict[RoleId, set[ProcessorId]]) -> None:
        for preference in self.harness.team().preferences:
            self._check_choice(preference, held[preference.role])

    def _check_choice(self, preference: RolePreference, before: set[ProcessorId]) -> None:
        """Check that no processor with less load was passed over.

        A former holder may keep the role unless another has ``threshold_pct`` less load.
        """
        members, snapshot = self.harness.members(), self.harness.snapshot
        allowed = [members[slot] for slot in preference.slots if slot in members]
        holders = self.harness.holders(preference.role)
        load = {holder: cpu_load_pct(snapshot, holder) for holder in allowed}
        for holder in holders:
            for other in set(allowed) - holders:
                if holder in before:
                    assert load[holder] - load[other] <= preference.threshold_pct
                else:
                    assert load[holder] <= load[other]


class RolesUnderFaults(RuleBasedStateMachine):
    """Events arrive while actions run and fail; nothing settles in between.

    The machine checks what holds at every instant, and the settled state at the end.
    """

    @initialize(layout=layouts(), preferred=preferences((SlotChoice.PRIORITY, SlotChoice.ANY)))
    def start(
        self, layout: tuple[LayoutElement, ...], preferred: tuple[RolePreference, ...]
    ) -> None:
        team = a_team(layout, preferred, grace_s=20, suspect_s=10, probation_s=15, retry_s=5)
        self.harness = RoleHarness(a_layout_of(team))

    @rule(name=any_processor)
    def up(self, name: ProcessorId) -> None:
        self.harness.up(name)

    @rule(name=any_processor)
    def down(self, name: ProcessorId) -> None:
        self.harness.down(name)

    @rule(name=any_processor)
    def suspect(self, name: ProcessorId) -> None:
        self.harness.happen(ProcessorSuspected(at_ms=self.harness.at_ms, processor=name))

    @rule(name=any_processor)
    def trust(self, name: ProcessorId) -> None:
        self.harness.happen(ProcessorTrusted(at_ms=self.harness.at_ms, processor=name))

    @rule()
    def ask(self) -> None:
        self.harness.ask()

    @rule(index=st.integers(0, 20), well=st.booleans())
    @precondition(lambda self: hasattr(self, "harness") and self.harness.open)
    def answer(self, index: int, well: bool) -> None:
        self.harness.answer(index, well=well)

    @rule(seconds=st.integers(1, 30))
    def time_passes(self, seconds: int) -> None:
        self.harness.at_ms += 1000 * seconds

    @invariant()
    def single_roles_have_one_holder(self) -> None:
        if hasattr(self, "harness"):
            self.harness.check_always()

    def teardown(self) -> None:
        if hasattr(self, "harness"):
            for name in PROCESSORS:
                self.harness.happen(ProcessorTrusted(at_ms=self.harness.at_ms, processor=name))
            while self.harness.open:
                self.harness.answer()
            self.harness.wait(3600)
            self.harness.check_at_rest()


class RedundantRoles(RuleBasedStateMachine):
    """The redundancy models: the number of active and standby holders, and takeovers."""

    @initialize(
        model=st.sampled_from(RedundancyModel),
        actives=st.integers(1, 2),
        standbys=st.integers(1, 2),
    )
    def start(self, model: RedundancyModel, actives: int, standbys: int) -> None:
        names = (
            (("a", "x"), ("b", "y"))
            if model in (RedundancyModel.N_WAY, RedundancyModel.NONE)
            else ()
        )
        pairs = [(RoleId(a), RoleId(s)) for a, s in names] or [(RoleId("a"), RoleId("x"))]
        has_standbys = model not in (RedundancyModel.N_WAY_ACTIVE, RedundancyModel.NONE)
        self.pairs = pairs if has_standbys else [(a, None) for a, _ in pairs]
        work = tuple(ProtectedWorkload(active=a, standby=s) for a, s in self.pairs)
        self.redundancy = RedundancyLayout(
            model=model, workloads=work, actives=actives, standbys=standbys
        )
        self.harness = RoleHarness(a_layout_of(a_team(redundancy=self.redundancy)))
        self.harness.settle()

    @rule(data=st.data())
    def a_member_fails(self, data: st.DataObject) -> None:
        members = sorted(self.harness.members().values())
        if not members:
            return
        lost = data.draw(st.sampled_from(members))
        before = {role: self.harness.holders(role) for pair in self.pairs for role in pair if role}
        self.harness.down(lost)
        self.harness.settle()
        for active, standby in self.pairs:
            if standby is not None and lost in before[active] and before[standby] - {lost}:
                new = self.harness.holders(active) - before[active]
                assert new <= before[standby], "a standby takes over"

    @rule(name=any_processor)
    def up(self, name: ProcessorId) -> None:
        before = {active: self.harness.holders(active) for active, _ in self.pairs}
        self.harness.up(name)
        self.harness.settle()
        for active, holders in before.items():
            assert holders <= self.harness.holders(active), "an active holder is not replaced"

    @invariant()
    def laws(self) -> None:
        if hasattr(self, "harness"):
            self.harness.check_always()
            count, redundancy = len(self.harness.members()), self.redundancy
            both = redundancy.model in (RedundancyModel.N_PLUS_M, RedundancyModel.N_WAY_ACTIVE)
            taken = 0
            for active, standby in self.pairs:
                free = count - taken if redundancy.model is RedundancyModel.NONE else count
                actives = min(redundancy.actives if both else 1, max(0, free))
                assert len(self.harness.holders(active)) == actives
                taken += actives
                if standby is not None:
                    wanted = 1 if redundancy.model is RedundancyModel.TWO_N else redundancy.standbys
                    assert len(self.harness.holders(standby)) == min(
                        wanted, max(0, count - actives)
                    )
                    assert not self.harness.holders(active) & self.harness.holders(standby)
