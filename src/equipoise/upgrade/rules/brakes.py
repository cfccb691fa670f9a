"""Brakes (rule 0): what somebody holds back: pauses, windows, checkpoints, hosts that are down."""

from __future__ import annotations

from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.rules.protection import held_by_failures
from equipoise.upgrade.scene import Scene
from equipoise.upgrade.state import Progress, Standing, State


def brakes(scene: Scene, left: dict[VertexId, None]) -> dict[VertexId, str]:
    """Remove whoever belongs to a set that is held back, or is missed while a host is down."""
    state = scene.state
    held = {one.id: why for one in state.standings.values() if (why := held_back(state, one))}
    found: dict[VertexId, str] = {}
    for vertex in left:
        group = scene.control.groups[vertex]
        if any(not state.places[host].up for host in group.hosts):
            found[vertex] = "its host is down"
            continue
        held_by = next((held[one] for one in scene.sets(vertex) if one in held), None)
        if held_by is not None:
            found[vertex] = held_by
        elif state.paused_all:
            found[vertex] = "the upgrade is paused by command"
    return held_by_failures(scene, left) | found


def held_back(state: State, standing: Standing) -> str:
    """Say why nothing of a set may begin now; nothing if it may."""
    if standing.progress is Progress.ENDED:
        return ""
    if standing.paused:
        return f"set {standing.id} is paused by command"
    if standing.progress is Progress.UNDOING:
        return ""
    if waits_for_approval(state, standing):
        return f"set {standing.id} waits for approval at a checkpoint"
    if standing.set.windows and window_opens_ms(state, standing, state.at_ms) > state.at_ms:
        return f"set {standing.id} waits for its maintenance window"
    return ""


def all_held(state: State) -> bool:
    """Whether somebody holds back everything that is left to do: then VMs stay where they are."""
    if state.paused_all:
        return True
    open_ = [one for one in state.standings.values() if one.progress is not Progress.ENDED]
    left = [one for one in open_ if next(iter(state.pending(one.id)), None) is not None]
    return bool(left) and all(held_back(state, one) for one in left)


def waits_for_approval(state: State, standing: Standing) -> bool:
    """Whether so much of a set is done that somebody has to look at it before it goes on."""
    if standing.progress is not Progress.SCHEDULED:
        return False  # approving it would lead nowhere
    return checkpoints_due(state, standing) > standing.approved


def checkpoints_due(state: State, standing: Standing) -> int:
    """How many checkpoints of a set have been reached."""
    marks = standing.set.checkpoints_pct
    if not marks:
        return 0
    all_ = len(standing.resources)
    done = all_ - sum(state.parts[one].awaits(standing.id) for one in standing.resources)
    return sum(100 * done >= mark * all_ for mark in marks)


def window_opens_ms(state: State, standing: Standing, now_ms: int) -> int:
    """When work of a set may begin, at the earliest, so that it ends before the window closes."""
    longest_ms = 1000 * longest_s(state, standing.id)
    times = []
    for window in standing.set.windows:
        period, opens, closes = window.every_s * 1000, window.opens_s * 1000, window.closes_s * 1000
        into = now_ms % period
        start = now_ms - into
        inside = opens <= into and into + longest_ms <= closes
        times.append(now_ms if inside else start + opens + (period if into >= opens else 0))
    return min(times)


def longest_s(state: State, set_: SetId) -> int:
    """How long the longest work of a set takes, with the recovery from a failure."""
    return max(
        (
            sum(work.risk_s for work in part.levels[0].works)
            for part in state.parts.values()
            if part.levels and part.awaits(set_)
        ),
        default=0,
    )
