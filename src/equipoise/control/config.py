"""Configuration of the control loop."""

from __future__ import annotations

from equipoise.model.quantity import (
    Milliseconds,
    PercentFrom100,
    PositiveCount,
    PositiveMilliseconds,
)
from equipoise.model.value import Value


class ControlConfig(Value):
    """Intervals of the passes, timeouts and retries of actions."""

    pass_interval_ms: PositiveMilliseconds = 5 * 60 * 1000
    """Time from one pass to the next; five minutes, as in the DRS paper."""
    pass_delay_ms: Milliseconds = 10_000
    """Time from an event that needs a pass to that pass; events in between share the pass."""
    pass_delay_ms_min: Milliseconds = 60_000
    """Shortest time between two passes when a host that is powered on calls for an earlier one."""
    timeout_factor: PositiveCount = 3
    """An action is cancelled when it takes more than this multiple of its planned duration ..."""
    timeout_ms_min: Milliseconds = 60_000
    """... but never before this time."""
    cancel_grace_ms: PositiveMilliseconds = 30_000
    """Time to wait for the answer to a cancellation; then the outcome counts as unknown."""
    attempts_max: PositiveCount = 3
    """Attempts per action."""
    power_on_attempts_max: PositiveCount = 1
    """Attempts per power-on: the next pass can power on another host instead."""
    power_on_timeout_pct: PercentFrom100 = 200
    """Timeout of a power-on in percent of its planned duration: VMs wait for the host."""
    retry_delay_ms: Milliseconds = 10_000
    """Time between the first failure and the next attempt; doubled with each further attempt."""
    role_attempts_max: PositiveCount = 1
    """Attempts per start or stop of a role: the next plan can use another processor."""
