"""Leader epochs: a world executes role actions of the newest controller only.

Each start of a control loop begins an epoch, one above every epoch in its journal, and every role
action carries the epoch of its controller. A world remembers the highest epoch that it has seen. It
refuses an action of a lower one: that controller lost the lead and does not know it yet, so its
action could give a single role a second holder.
"""

from __future__ import annotations


def next_leader_epoch(current: int) -> int:
    """Return the epoch of a controller that starts after the epoch ``current``."""
    return current + 1


def stale_epoch_reason(action_epoch: int, highest_seen: int) -> str:
    """Return why a world refuses an action of this epoch (``stale-epoch``); empty if it must not.

    An action without a controller's epoch has epoch 0, which is stale as soon as a controller ran.
    """
    if action_epoch >= highest_seen:
        return ""
    return f"epoch {action_epoch} has ended; the current leader epoch is {highest_seen}"
