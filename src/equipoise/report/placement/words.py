"""What VMs and hosts do, in a word or two."""

from __future__ import annotations

from typing import Final

from equipoise.model.action import describe
from equipoise.model.plan import Step
from equipoise.model.problem.problem import ActionKind
from equipoise.model.vm import VmState
from equipoise.report.placement.course import Course, Presence, Stay
from equipoise.spec.functions import kind_of

NO_HOST: Final = "no host"
"""The lane of those that are on none. No host has this name: it has a space."""

_DOES: Final = {
    ActionKind.MIGRATE: "leaves",
    ActionKind.REINSTANTIATE: "is replaced",
    ActionKind.BOOT: "boots",
    ActionKind.SHUTDOWN: "shuts down",
    ActionKind.SUSPEND: "falls asleep",
    ActionKind.RESUME: "wakes",
    ActionKind.ALLOCATE: "is resized",
    ActionKind.FORGE: "is forged",
    ActionKind.KILL: "is killed",
    ActionKind.POWER_ON: "powers on",
    ActionKind.POWER_OFF: "powers off",
    ActionKind.ENTER_MAINTENANCE: "goes into maintenance",
    ActionKind.LEAVE_MAINTENANCE: "comes back from maintenance",
}
_ARRIVES: Final = {
    ActionKind.MIGRATE: "arrives",
    ActionKind.REINSTANTIATE: "is made anew",
    ActionKind.BOOT: "boots",
    ActionKind.RESUME: "wakes",
}
_IS: Final = {
    VmState.INIT: "is not made yet",
    VmState.READY: "is ready",
    VmState.RUNNING: "runs",
    VmState.SLEEPING: "sleeps",
    VmState.TERMINATED: "has ended",
}


def does(step: Step) -> str:
    """What a host or a VM does where it is."""
    seen = step.footprint
    leaves = seen.target not in (None, seen.source) and seen.source is not None
    kind = ActionKind(kind_of(step.action))
    return "leaves" if leaves and kind is ActionKind.RESUME else _DOES[kind]


def is_or_does(presence: Presence) -> str:
    """What a VM is, or what becomes of it."""
    if presence.step is None:
        return _IS[presence.state]
    if presence.arriving:
        return _ARRIVES[ActionKind(kind_of(presence.step.action))]
    return does(presence.step)


def seconds(at_ms: int) -> str:
    """A moment of a plan in seconds, to the millisecond."""
    return f"{at_ms / 1000:.3f}".rstrip("0").rstrip(".")


def period(course: Course, first: int, last: int) -> str:
    """From when to when some periods reach."""
    instants = course.instants_ms
    begun = "" if first == 0 else f"from {seconds(instants[first - 1])} s"
    ended = "" if last == len(instants) else f"until {seconds(instants[last])} s"
    return f"{begun} {ended}".strip() or "all the time"


def stay_told(course: Course, stay: Stay) -> str:
    """A stay in a line."""
    one = stay.presence
    said = "has room" if one.arriving else _IS[one.state]
    where = NO_HOST if one.host is None else one.host
    why = "" if one.step is None else f": {describe(one.step.action)}"
    return f"{one.vm} {said} on {where}, {period(course, stay.first, stay.last)}{why}"
