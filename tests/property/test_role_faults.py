"""Faults in the role decider, injected on purpose: the laws must find each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from equipoise.model.quantity import ProcessorId, RoleId, SlotId
from equipoise.model.roles.layout import RolePreference, SlotChoice
from equipoise.roles import assignment, propose, slot_filling, steps
from equipoise.roles.assess import GroupStatus
from role_machines import LoadedRoles, RedundantRoles, RolesUnderFaults, SteadyRoles

QUICK = settings(
    max_examples=400,
    stateful_step_count=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class PatientRoles(SteadyRoles):
    """Roles with priorities and no preemption check."""

    kinds = (SlotChoice.PRIORITY,)


def expect_found(machine: type[RuleBasedStateMachine]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=QUICK)


def test_a_start_before_the_stop_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: object, role: RoleId, processor: ProcessorId) -> None:
        return None

    monkeypatch.setattr(steps._StepPlanner, "_start_blocker", careless)
    expect_found(RolesUnderFaults)


def test_a_role_that_moves_without_a_reason_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def restless(
        _at: GroupStatus, _one: RolePreference, allowed: Sequence[ProcessorId]
    ) -> list[ProcessorId]:
        return list(allowed)

    monkeypatch.setattr(assignment, "_current_holders_first", restless)
    expect_found(PatientRoles)


def test_a_least_loaded_choice_without_memory_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unaware(
        self: assignment._AssignmentSearch,
        _one: RolePreference,
        allowed: Sequence[ProcessorId],
        count: int,
    ) -> list[ProcessorId]:
        return list(allowed)[:count]

    monkeypatch.setattr(assignment._AssignmentSearch, "_least_loaded", unaware)
    expect_found(LoadedRoles)


def test_a_gap_closed_by_moving_all_members_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def all_members_move(
        at: GroupStatus, open_slots: slot_filling._OpenSlots
    ) -> Mapping[SlotId, ProcessorId]:
        processors = [*open_slots.kept.values(), *open_slots.spares]
        return {
            slot.id: processor for slot, processor in zip(at.team.slots, processors, strict=False)
        }

    monkeypatch.setattr(slot_filling, "_packed_filling", all_members_move)
    expect_found(SteadyRoles)


def test_a_gap_that_stays_open_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave_it(
        _at: GroupStatus, open_slots: slot_filling._OpenSlots
    ) -> Mapping[SlotId, ProcessorId]:
        more = zip(open_slots.open, open_slots.spares, strict=False)
        return {**open_slots.kept, **dict(more)}

    monkeypatch.setattr(slot_filling, "_packed_filling", leave_it)
    expect_found(SteadyRoles)


def test_members_that_change_slots_when_a_processor_joins_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def reassign_all(at: GroupStatus) -> Iterator[Mapping[SlotId, ProcessorId]]:
        slots = [slot.id for slot in at.team.slots]
        yield dict(zip(slots, at.present, strict=False))

    monkeypatch.setattr(propose, "candidate_fillings", reassign_all)
    expect_found(SteadyRoles)


def test_a_role_that_is_never_stopped_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def lazy(self: object, role: RoleId, processor: ProcessorId) -> None:
        return None

    monkeypatch.setattr(steps._StepPlanner, "_stop", lazy)
    expect_found(SteadyRoles)


def test_a_standby_that_stops_before_its_promotion_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the promotion map the standby stops and its takeover is lost."""
    begin = steps._StepPlanner.__init__

    def without_promotion(self: steps._StepPlanner, *given: Any) -> None:
        begin(self, *given)
        self._promoted = {}

    monkeypatch.setattr(steps._StepPlanner, "__init__", without_promotion)
    expect_found(RedundantRoles)


def test_the_machines_pass_without_a_fault() -> None:
    for machine in (SteadyRoles, LoadedRoles, RedundantRoles, RolesUnderFaults):
        few = settings(QUICK, max_examples=10)
        run_state_machine_as_test(machine, settings=few)
