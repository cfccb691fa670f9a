"""The times of a change set: when a window opens for its work, and when it must be complete."""

from __future__ import annotations

from equipoise.model.upgrade.request import MaintenanceWindow, SetId
from equipoise.model.upgrade.wall_clock import (
    earliest_fit,
    instant_text,
    parse_instant,
    zone_of,
)
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus


def window_hold(state: UpgradeState, status: ChangeSetStatus) -> Reason | None:
    """Return why no work of a set may start now: no window is open long enough; or None."""
    if not status.set.windows:
        return None
    opens_ms = window_opens_ms(state, status, state.at_ms)
    if opens_ms is None:
        return Reason("outside-window", f"no window of set {status.id} opens again")
    if opens_ms <= state.at_ms:
        return None
    text = f"set {status.id} waits for its maintenance window"
    dated = [window for window in status.set.windows if isinstance(window, str)]
    if dated and state.began_unix_ms is not None:
        text += f", at {instant_text(state.began_unix_ms + opens_ms, zone_of(dated[0]))}"
    return Reason("outside-window", text)


def window_opens_ms(state: UpgradeState, status: ChangeSetStatus, now_ms: int) -> int | None:
    """Return the earliest time at which the longest work of a set fits into a window, or None."""
    longest_ms = 1000 * longest_work_s(state, status.id)
    times = [
        _next_period_ms(window, now_ms, longest_ms)
        for window in status.set.windows
        if isinstance(window, MaintenanceWindow)
    ]
    dated = tuple(window for window in status.set.windows if isinstance(window, str))
    began_ms = state.began_unix_ms
    # Without a date of the start, such a set was refused.
    if dated and began_ms is not None:
        fit_ms = earliest_fit(dated, began_ms + now_ms, longest_ms)
        times += [] if fit_ms is None else [fit_ms - began_ms]
    return min(times, default=None)


def _next_period_ms(window: MaintenanceWindow, now_ms: int, longest_ms: int) -> int:
    period, opens, closes = window.every_s * 1000, window.opens_s * 1000, window.closes_s * 1000
    offset = now_ms % period
    # Work must end before the window closes, so its duration counts too.
    if opens <= offset and offset + longest_ms <= closes:
        return now_ms
    return now_ms - offset + opens + (period if offset >= opens else 0)


def longest_work_s(state: UpgradeState, set_: SetId) -> int:
    """Return the duration of the longest work of a set, recovery from a failure included."""
    return max(
        (
            sum(work.risk_s for work in resource_state.levels[0].works)
            for resource_state in state.resources.states.values()
            if resource_state.levels and resource_state.has_work_for(set_)
        ),
        default=0,
    )


def deadline_ms(state: UpgradeState, status: ChangeSetStatus) -> int | None:
    """Return the time at which a set must be complete, or None."""
    times: list[int] = []
    if status.set.completion_s_max is not None:
        times.append(status.requested_ms + 1000 * status.set.completion_s_max)
    if status.set.complete_by is not None and state.began_unix_ms is not None:
        times.append(parse_instant(status.set.complete_by) - state.began_unix_ms)
    return min(times, default=None)


def deadline_text(status: ChangeSetStatus) -> str:
    """Return the condition that a set did not meet at its deadline."""
    change_set = status.set
    limits = [] if change_set.complete_by is None else [f"by {change_set.complete_by}"]
    if change_set.completion_s_max is not None:
        limits.append(f"{change_set.completion_s_max} s after the request")
    return f"it was not complete {' or '.join(limits)}"
