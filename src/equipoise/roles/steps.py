"""The role steps that may begin now: from the target to roles to start and to stop.

A role with a single holder stops before it starts elsewhere; any other role starts elsewhere
before it stops.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from equipoise.model.plan import Rejection
from equipoise.model.quantity import ProcessorId, RoleId, format_count
from equipoise.roles.assess import GroupStatus
from equipoise.roles.assignment import RoleTarget

RolePlace = tuple[RoleId, ProcessorId]


class RoleStep(NamedTuple):
    """A role to start or stop on a processor."""

    is_start: bool
    role: RoleId
    processor: ProcessorId
    reason: str


@dataclass(slots=True)
class RoleSteps:
    """The steps that can start now, and the steps that wait."""

    steps: list[RoleStep] = field(default_factory=list)
    waits: list[Rejection] = field(default_factory=list)


def role_steps(
    group_status: GroupStatus,
    target: RoleTarget,
    under_way: Mapping[RolePlace, bool],
    single: Collection[RoleId],
) -> RoleSteps:
    """Return the steps of a group; ``under_way`` maps pairs to whether they start or stop."""
    return _StepPlanner(group_status, target, under_way, single).run()


class _StepPlanner:
    """One comparison of the target with the running roles."""

    def __init__(
        self,
        group_status: GroupStatus,
        target: RoleTarget,
        under_way: Mapping[RolePlace, bool],
        single: Collection[RoleId],
    ) -> None:
        self._group_status, self._target, self._under_way, self._single = (
            group_status,
            target,
            under_way,
            single,
        )
        self._wanted = {
            (role, processor)
            for role, processors in target.holders.items()
            for processor in processors
        }
        self._running = {
            (role, processor) for processor, roles in group_status.held.items() for role in roles
        }
        self._starting = {pair for pair, is_start in under_way.items() if is_start}
        self._promoted = {
            preference.role: preference.promotes
            for preference in group_status.team.preferences
            if preference.promotes is not None
        }
        self._found = RoleSteps()

    def run(self) -> RoleSteps:
        for role, processors in self._target.holders.items():
            for processor in processors:
                pair = role, processor
                if pair not in self._running and pair not in self._under_way:
                    self._start(role, processor)
        # Starts before stops in the list: where both may begin, a role is never without a holder.
        for processor, roles in self._group_status.held.items():
            for role in roles:
                pair = role, processor
                if pair not in self._wanted and pair not in self._under_way:
                    self._stop(role, processor)
        return self._found

    def _start(self, role: RoleId, processor: ProcessorId) -> None:
        blocker = self._start_blocker(role, processor)
        if blocker is not None:
            self._wait(f"start {role} on {processor}", *blocker)
            return
        self._found.steps.append(RoleStep(True, role, processor, self._why_start(role, processor)))

    def _start_blocker(self, role: RoleId, processor: ProcessorId) -> tuple[str, str] | None:
        group_status = self._group_status
        if processor in group_status.busy:
            return "processor-busy", f"another action runs on {processor}"
        if processor in group_status.suspected:
            return "processor-suspected", f"{processor} is suspected and gets no new role"
        if (role, processor) in group_status.retry_ms:
            at_s = group_status.retry_ms[role, processor] / 1000
            return "retry-later", f"the last attempt failed; the next one is at {at_s:.0f} s"
        return self._dependency_blocker(role, processor)

    def _dependency_blocker(self, role: RoleId, processor: ProcessorId) -> tuple[str, str] | None:
        """Return what has to start or stop before this role can start."""
        for active, warm in self._promoted.items():
            late = [p for p in self._target.holders.get(active, ()) if self._is_late(active, p)]
            if warm == role and late:  # otherwise the new standby would attract the active role
                return "active-first", f"{active} starts first on {', '.join(late)}"
        if role in self._single:
            for other, holder in (*self._running, *self._starting):
                if other == role and holder != processor:
                    return "single-holder", f"{holder} holds it, and it allows one holder"
        for other, holder in (*self._running, *self._starting):
            unwanted = (other, holder) not in self._wanted
            if holder != processor or self._promoted.get(role) == other:
                continue  # a standby is promoted in place, and stops afterwards
            if unwanted and self._are_apart(role, other):
                return "roles-apart", f"{other} must leave {processor} first"
        return None

    def _is_late(self, role: RoleId, processor: ProcessorId) -> bool:
        return (role, processor) not in self._running

    def _stop(self, role: RoleId, processor: ProcessorId) -> None:
        group_status = self._group_status
        if processor in group_status.busy:
            detail = f"another action runs on {processor}"
            self._wait(f"stop {role} on {processor}", "processor-busy", detail)
            return
        if (role, processor) in group_status.retry_ms:
            at_s = group_status.retry_ms[role, processor] / 1000
            detail = f"the last attempt failed; the next one is at {at_s:.0f} s"
            self._wait(f"stop {role} on {processor}", "retry-later", detail)
            return
        new_holders = [
            p for p in self._target.holders.get(role, ()) if (role, p) not in self._running
        ]
        promoted = self._role_to_promote(role, processor)
        if promoted is not None:
            detail = f"it stops after {promoted}, which it promotes to, runs there"
            self._wait(f"stop {role} on {processor}", "promotion", detail)
            return
        if role in self._single:
            blocked = bool(new_holders) and all(
                (role, p) in group_status.retry_ms for p in new_holders
            )
        else:
            # A role that must be apart from a wanted one stops first; otherwise neither could move.
            makes_way = any(
                where == processor and self._are_apart(role, other) for other, where in self._wanted
            )
            # Start before stop: the role keeps a holder during the move.
            blocked = bool(new_holders) and not makes_way
        if blocked:
            detail = f"it stops after {', '.join(new_holders)} runs it"
            self._wait(f"stop {role} on {processor}", "make-before-break", detail)
            return
        self._found.steps.append(RoleStep(False, role, processor, self._why_stop(role, processor)))

    def _role_to_promote(self, role: RoleId, processor: ProcessorId) -> RoleId | None:
        """Return the role that takes over on this processor and does not run yet."""
        for active, warm in self._promoted.items():
            pair = active, processor
            if warm == role and pair in self._wanted and pair not in self._running:
                return active
        return None

    def _are_apart(self, role: RoleId, other: RoleId) -> bool:
        return role != other and any(
            role in roles and other in roles for roles in self._group_status.team.apart
        )

    def _wait(self, subject: str, code: str, detail: str) -> None:
        group = self._group_status.team.id
        self._found.waits.append(
            Rejection(subject=f"{subject} ({group})", code=code, detail=detail)
        )

    def _why_start(self, role: RoleId, processor: ProcessorId) -> str:
        slot = next((s for s, p in self._target.slots.items() if p == processor), None)
        why_here = self._target.why.get(role, "the target has it there")
        text = f"{processor} is in slot {slot}; {why_here}"
        causes = [
            why
            for p, why in self._group_status.out_of_service.items()
            if p in self._group_status.members.values()
        ]
        return text + (f"; {' and '.join(causes[:2])}" if causes else "")

    def _why_stop(self, role: RoleId, processor: ProcessorId) -> str:
        group_status, holders = self._group_status, self._target.holders.get(role, ())
        cause = group_status.out_of_service.get(processor, "")
        if not cause and processor not in self._target.slots.values():
            cause = f"{processor} fills no slot"
        verb = "holds" if len(holders) == 1 else "hold"
        holders_text = (
            f"{', '.join(holders)} {verb} it from now on" if holders else "no processor holds it"
        )
        if not cause:
            filled = format_count(len(self._target.slots), "slot")
            cause = self._target.why.get(role, f"with {filled} filled the layout gives it to none")
        return f"{holders_text}; {cause}"
