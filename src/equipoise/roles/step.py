"""From what should run to what is started and stopped now.

Only what may begin at this moment is asked for. A role with a single holder stops before it starts
elsewhere; any other starts elsewhere before it stops.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from equipoise.model.plan import Rejection
from equipoise.model.quantity import ProcessorId, RoleId
from equipoise.model.words import counted
from equipoise.roles.choose import Target
from equipoise.roles.standing import Standing

Pair = tuple[RoleId, ProcessorId]


class Act(NamedTuple):
    """A role to be started or stopped on a processor."""

    is_start: bool
    role: RoleId
    processor: ProcessorId
    reason: str


@dataclass(slots=True)
class Steps:
    """What is to be done now, and what waits for what."""

    acts: list[Act] = field(default_factory=list)
    waits: list[Rejection] = field(default_factory=list)


def steps_to(
    at: Standing, target: Target, under_way: Mapping[Pair, bool], single: Collection[RoleId]
) -> Steps:
    """Say what to start and stop; ``under_way`` says what is being started (or else stopped)."""
    return _Stepping(at, target, under_way, single).run()


class _Stepping:
    """One comparison of what should run with what runs."""

    def __init__(
        self,
        at: Standing,
        target: Target,
        under_way: Mapping[Pair, bool],
        single: Collection[RoleId],
    ) -> None:
        self._at, self._target, self._under_way, self._single = at, target, under_way, single
        self._wanted = {(role, p) for role, some in target.holders.items() for p in some}
        self._running = {(role, p) for p, roles in at.held.items() for role in roles}
        self._starting = {pair for pair, is_start in under_way.items() if is_start}
        self._promoted = {
            one.role: one.promotes for one in at.team.preferences if one.promotes is not None
        }
        self._found = Steps()

    def run(self) -> Steps:
        for role, some in self._target.holders.items():
            for processor in some:
                pair = role, processor
                if pair not in self._running and pair not in self._under_way:
                    self._start(role, processor)
        for processor, roles in self._at.held.items():
            for role in roles:
                pair = role, processor
                if pair not in self._wanted and pair not in self._under_way:
                    self._stop(role, processor)
        return self._found

    def _start(self, role: RoleId, processor: ProcessorId) -> None:
        why_not = self._against_start(role, processor)
        if why_not is not None:
            self._wait(f"start {role} on {processor}", *why_not)
            return
        self._found.acts.append(Act(True, role, processor, self._why_start(role, processor)))

    def _against_start(self, role: RoleId, processor: ProcessorId) -> tuple[str, str] | None:
        at = self._at
        if processor in at.busy:
            return "busy", f"something else is being done with {processor}"
        if processor in at.doubtful:
            return "suspected", f"{processor} is suspected, and gets nothing new"
        if (role, processor) in at.retry_ms:
            at_s = at.retry_ms[role, processor] / 1000
            return "retry", f"it failed, and is tried again at {at_s:.0f} s"
        return self._others_first(role, processor)

    def _others_first(self, role: RoleId, processor: ProcessorId) -> tuple[str, str] | None:
        """Who has to start or stop something before this can start."""
        for active, warm in self._promoted.items():
            late = [p for p in self._target.holders.get(active, ()) if self._is_late(active, p)]
            if warm == role and late:  # or the active one would be drawn to who has just begun
                return "active_first", f"{active} goes first, on {', '.join(late)}"
        if role in self._single:
            for other, where in (*self._running, *self._starting):
                if other == role and where != processor:
                    return "single", f"{where} holds it, and nobody else may meanwhile"
        for other, where in (*self._running, *self._starting):
            unwanted = (other, where) not in self._wanted
            if where != processor or self._promoted.get(role) == other:
                continue  # a warm standby is promoted where it is, and stopped then
            if unwanted and self._are_apart(role, other):
                return "apart", f"{other} has to leave {processor} first"
        return None

    def _is_late(self, role: RoleId, processor: ProcessorId) -> bool:
        return (role, processor) not in self._running

    def _stop(self, role: RoleId, processor: ProcessorId) -> None:
        at = self._at
        if processor in at.busy:
            detail = f"something else is being done with {processor}"
            self._wait(f"stop {role} on {processor}", "busy", detail)
            return
        if (role, processor) in at.retry_ms:
            at_s = at.retry_ms[role, processor] / 1000
            detail = f"it failed, and is tried again at {at_s:.0f} s"
            self._wait(f"stop {role} on {processor}", "retry", detail)
            return
        coming = [p for p in self._target.holders.get(role, ()) if (role, p) not in self._running]
        heir = self._heir(role, processor)
        if heir is not None:
            detail = f"until {heir}, for which it is warm, runs there"
            self._wait(f"stop {role} on {processor}", "promotion", detail)
            return
        if role in self._single:
            blocked = bool(coming) and all((role, p) in at.retry_ms for p in coming)
        else:
            makes_way = any(
                where == processor and self._are_apart(role, other) for other, where in self._wanted
            )
            blocked = bool(coming) and not makes_way
        if blocked:
            detail = f"until {', '.join(coming)} runs it"
            self._wait(f"stop {role} on {processor}", "make_before_break", detail)
            return
        self._found.acts.append(Act(False, role, processor, self._why_stop(role, processor)))

    def _heir(self, role: RoleId, processor: ProcessorId) -> RoleId | None:
        """Which role is to take over here, and does not run yet."""
        for active, warm in self._promoted.items():
            pair = active, processor
            if warm == role and pair in self._wanted and pair not in self._running:
                return active
        return None

    def _are_apart(self, one: RoleId, other: RoleId) -> bool:
        return one != other and any(one in some and other in some for some in self._at.team.apart)

    def _wait(self, subject: str, code: str, detail: str) -> None:
        group = self._at.team.id
        self._found.waits.append(
            Rejection(subject=f"{subject} ({group})", code=code, detail=detail)
        )

    def _why_start(self, role: RoleId, processor: ProcessorId) -> str:
        slot = next((s for s, p in self._target.slots.items() if p == processor), None)
        said = f"{processor} is in slot {slot}; {self._target.why.get(role, 'it is wanted there')}"
        losers = [why for p, why in self._at.missed.items() if p in self._at.members.values()]
        return said + (f"; {' and '.join(losers[:2])}" if losers else "")

    def _why_stop(self, role: RoleId, processor: ProcessorId) -> str:
        at, holders = self._at, self._target.holders.get(role, ())
        cause = at.missed.get(processor, "")
        if not cause and processor not in self._target.slots.values():
            cause = f"{processor} fills no slot any more"
        verb = "has" if len(holders) == 1 else "have"
        goes = f"{', '.join(holders)} {verb} it from now on" if holders else "nobody is to have it"
        if not cause:
            filled = counted(len(self._target.slots), "slot")
            cause = self._target.why.get(role, f"with {filled} filled nobody is given it")
        return f"{goes}; {cause}"
