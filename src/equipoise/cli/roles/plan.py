"""``equipoise roles plan``: what would be started and stopped now, and why; nothing is done.

It is the run itself, on a world in which everything goes as planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from equipoise.cli.answer import console, plain, print_json, table
from equipoise.cli.roles.run import sound, tell_lines
from equipoise.cli.roles.story import Line, lines
from equipoise.errors import InvalidInput, Problem
from equipoise.model.change.draft import Draft
from equipoise.model.event import HostFailed, ProcessorLocked, VmCrashed
from equipoise.model.files.words import closest, quoted
from equipoise.model.quantity import HostId, ProcessorId, VmId
from equipoise.model.roles.duty import Duty, LayoutTable, table_of
from equipoise.model.roles.layout import named_roles
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.physics import Physics
from equipoise.model.story.scenario import Scenario
from equipoise.model.story.unrest import Happening, Unrest
from equipoise.roles.leave import Leave, may_leave
from equipoise.sim.play import Play
from equipoise.sim.unfold import unfold
from equipoise.store import MemoryJournal

SETTLED_S: Final = 24 * 3600
"""After so long everything that is started at the beginning runs."""
_DONE: Final = frozenset(("action_started", "slots_filled", "plan_refused"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is to be supposed."""

    fail: tuple[str, ...] = ()
    lock: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()


def run(file: Path, wishes: Wishes, *, as_json: bool) -> int:
    """Plan, and say what came out."""
    scenario = sound(file)
    _check_names(scenario, (*wishes.fail, *wishes.lock, *wishes.leave))
    since_ms = 1000 * SETTLED_S if wishes.fail or wishes.lock else 0
    snapshot, told = _imagine(scenario, wishes, since_ms)
    answer = may_leave(snapshot, wishes.leave) if wishes.leave else None
    lacking = uncovered(snapshot)
    if as_json:
        print_json(_document(scenario, snapshot, told, since_ms, lacking, answer))
    else:
        _show(snapshot, told, since_ms, lacking, answer)
    return 1 if lacking or (answer is not None and answer.stay) else 0


def _imagine(scenario: Scenario, wishes: Wishes, since_ms: int) -> tuple[Snapshot, list[Line]]:
    """Let everything go as planned until nothing is left to do."""
    hosts = {host.id for host in unfold(scenario).inventory.hosts}
    told: list[Happening] = []
    for name in wishes.fail:
        host, vm = HostId(name), VmId(name)
        told.append(
            HostFailed(at_ms=since_ms, host=host)
            if host in hosts
            else VmCrashed(at_ms=since_ms, vm=vm)
        )
    told += (
        ProcessorLocked(at_ms=since_ms, processor=ProcessorId(name), reason="asked for by --lock")
        for name in wishes.lock
    )
    end_s = since_ms // 1000 + SETTLED_S
    calm = scenario.but(
        deciders=("roles",), physics=Physics(), unrest=Unrest(), happenings=tuple(told),
        duration_s=end_s, pass_s=end_s, plan=None,
    )  # fmt: skip
    journal = MemoryJournal()
    play = Play(calm, journal)
    play.run(1000 * end_s)
    return play.snapshot(), [one for one in lines(journal.events()) if one.at_ms >= since_ms]


def uncovered(snapshot: Snapshot) -> list[Duty]:
    """The roles that nobody holds though they should be held."""
    layout = snapshot.settings.layout
    assert layout is not None, "the command has seen to it"
    table = table_of(layout)
    held = {duty for some in snapshot.duties.held.values() for duty in some}
    return [duty for duty in _wanted(table) if duty not in held]


def _wanted(table: LayoutTable) -> Iterable[Duty]:
    for group, team in table.teams.items():
        named = (*named_roles(team.layout), *(one.role for one in team.preferences))
        for role in dict.fromkeys(named):
            if not table.roles[role].optional:
                yield Duty(group, role)


def _check_names(scenario: Scenario, names: Sequence[str]) -> None:
    layout = scenario.cluster.layout
    assert layout is not None, "the command has seen to it"
    known = [str(name) for name in table_of(layout).teams_of]
    for name in names:
        if name not in known:
            near = closest(name, known)
            cure = f"did you mean {near}?" if near else "name one that is in a group"
            problem = Problem(key=name, what=f"no group has {quoted(name)}", cure=cure)
            raise InvalidInput(scenario.name, [problem])


def _document(
    scenario: Scenario,
    snapshot: Snapshot,
    told: Sequence[Line],
    since_ms: int,
    lacking: Sequence[Duty],
    answer: Leave | None,
) -> dict[str, object]:
    return {
        "scenario": scenario.name,
        "actions": [
            {
                "at_s": (one.at_ms - since_ms) / 1000,
                "event": one.event,
                "what": one.what,
                "reason": one.reason,
            }
            for one in told
            if one.event in _DONE
        ],
        "slots": {group: dict(slots) for group, slots in snapshot.duties.slots.items()},
        "held": {
            processor: [f"{duty.group}/{duty.role}" for duty in held]
            for processor, held in snapshot.duties.held.items()
        },
        "uncovered": [f"{duty.group}/{duty.role}" for duty in lacking],
        "may_leave": None if answer is None else {"may": answer.may, "stay": answer.stay},
    }


def _show(
    snapshot: Snapshot,
    told: Sequence[Line],
    since_ms: int,
    lacking: Sequence[Duty],
    answer: Leave | None,
) -> None:
    out = console()
    tell_lines([one for one in told if one.event in _DONE], since_ms)
    draft = Draft(snapshot)
    up = {p for slots in snapshot.duties.slots.values() for p in slots.values() if draft.is_up(p)}
    rows = table("group", "slot", "processor", "roles")
    for group, slots in snapshot.duties.slots.items():
        for slot, processor in slots.items():
            held = snapshot.duties.held.get(processor, ())
            mine = ", ".join(duty.role for duty in held if duty.group == group)
            if processor not in up:
                mine = "it is missed"
            rows.add_row(plain(group), plain(slot), plain(processor), plain(mine or "nothing"))
    out.print(rows)
    for duty in lacking:
        out.print(f"nobody holds {plain(duty.role)} of {plain(duty.group)}")
    if answer is not None:
        for name in answer.may:
            out.print(f"{plain(name)} may leave")
        for name, why in answer.stay.items():
            out.print(f"{plain(name)} may not leave: {plain(why)}")
