"""Faults that are put into the controller of roles on purpose: the laws must find each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from equipoise.model.quantity import ProcessorId, RoleId, SlotId
from equipoise.model.roles.layout import Choose, RolePreference
from equipoise.roles import choose, decide, fill, step
from equipoise.roles.standing import Standing
from role_machines import Calm, Loaded, Redundant, Storm

QUICK = settings(
    max_examples=400,
    stateful_step_count=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Patient(Calm):
    """Roles that return to nothing."""

    kinds = (Choose.PRIORITY,)


def expect_found(machine: type[RuleBasedStateMachine]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=QUICK)


def test_a_start_before_the_stop_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: object, role: RoleId, processor: ProcessorId) -> None:
        return None

    monkeypatch.setattr(step._Stepping, "_against_start", careless)
    expect_found(Storm)


def test_a_role_that_does_not_stay_where_it_is_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def restless(
        _at: Standing, _one: RolePreference, allowed: Sequence[ProcessorId]
    ) -> list[ProcessorId]:
        return list(allowed)

    monkeypatch.setattr(choose, "_kept_first", restless)
    expect_found(Patient)


def test_a_least_loaded_role_that_is_chosen_anew_each_time_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unaware(
        self: choose._Search, _one: RolePreference, allowed: Sequence[ProcessorId], count: int
    ) -> list[ProcessorId]:
        return list(allowed)[:count]

    monkeypatch.setattr(choose._Search, "_least_loaded", unaware)
    expect_found(Loaded)


def test_a_hole_that_is_closed_by_moving_everybody_up_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def everybody_moves_up(at: Standing, seats: fill._Seats) -> Mapping[SlotId, ProcessorId]:
        inside = [*seats.staying.values(), *seats.spares]
        return {slot.id: one for slot, one in zip(at.team.slots, inside, strict=False)}

    monkeypatch.setattr(fill, "_packed", everybody_moves_up)
    expect_found(Calm)


def test_a_hole_that_stays_open_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave_it(_at: Standing, seats: fill._Seats) -> Mapping[SlotId, ProcessorId]:
        more = zip(seats.open, seats.spares, strict=False)
        return {**seats.staying, **dict(more)}

    monkeypatch.setattr(fill, "_packed", leave_it)
    expect_found(Calm)


def test_members_that_change_places_when_somebody_joins_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deal_anew(at: Standing) -> Iterator[Mapping[SlotId, ProcessorId]]:
        slots = [slot.id for slot in at.team.slots]
        yield dict(zip(slots, at.present, strict=False))

    monkeypatch.setattr(decide, "fillings", deal_anew)
    expect_found(Calm)


def test_a_role_that_is_never_stopped_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def lazy(self: object, role: RoleId, processor: ProcessorId) -> None:
        return None

    monkeypatch.setattr(step._Stepping, "_stop", lazy)
    expect_found(Calm)


def test_a_standby_that_is_stopped_before_it_is_promoted_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the standby it forgets who was to take over; nobody had to seed this one."""
    begin = step._Stepping.__init__

    def without_promotion(self: step._Stepping, *given: Any) -> None:
        begin(self, *given)
        self._promoted = {}

    monkeypatch.setattr(step._Stepping, "__init__", without_promotion)
    expect_found(Redundant)


def test_the_machines_pass_without_a_fault() -> None:
    for machine in (Calm, Loaded, Redundant, Storm):
        few = settings(QUICK, max_examples=10)
        run_state_machine_as_test(machine, settings=few)
