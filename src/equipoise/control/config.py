"""The knobs of the control loop."""

from __future__ import annotations

from equipoise.model.quantity import CountPresent, Milliseconds, MillisecondsPresent, PercentMore
from equipoise.model.value import Value


class ControlConfig(Value):
    """How often to think, and how patient to be with the world."""

    pass_interval_ms: MillisecondsPresent = 5 * 60 * 1000
    """From one pass to the next; the DRS paper's five minutes."""
    hurry_ms: Milliseconds = 60_000
    """A pass that something calls for begins so long after the last one at the soonest."""
    timeout_factor: CountPresent = 3
    """An action may take this many times as long as planned ..."""
    timeout_ms_min: Milliseconds = 60_000
    """... but never less than this, before it is cancelled."""
    grace_ms: MillisecondsPresent = 30_000
    """How long the answer to a cancelling is waited for before the outcome counts as unknown."""
    attempts_max: CountPresent = 3
    """How often an action is tried."""
    wake_attempts_max: CountPresent = 1
    """How often a plan tries to wake a host: the next pass may wake another one instead ..."""
    wake_timeout_pct: PercentMore = 200
    """... as soon as it has taken so much of the planned time: VMs are waiting for it."""
    retry_delay_ms: Milliseconds = 10_000
    """How long after a failure it is tried again."""
    role_attempts_max: CountPresent = 1
    """How often a plan tries to start or stop a role: the next attempt may be elsewhere."""
