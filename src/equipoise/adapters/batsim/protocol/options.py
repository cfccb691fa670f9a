"""The options of a simulation that a scheduler controls; the names follow Batsim's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolOptions:
    """What the simulation offers to the scheduler."""

    version: int = 4
    """The version of Batsim whose scheduler this is: 4 or 5."""
    energy: bool = False
    batsim_energy: bool = False
    """Charge energy as Batsim does, too much in concurrent sequences, instead of exactly."""
    compute_sharing: bool = False
    storage_sharing: bool = True
    dynamic_jobs: bool = False
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = False
    forward_profiles: bool = False
    forward_unknown_events: bool = False
    scheduler_config: str = ""
    external_events: tuple[tuple[dict[str, Any], ...], ...] = ()
    """The events of each source, in the order of their times."""
    numeric_state: bool = False
    """Send the power state of ``RESOURCE_STATE_CHANGED`` as a number; Batsim sends text."""
    start_epsilon_s: float = 0.0
    """Delay the first submissions, for schedulers that need a message before any job."""
    output_layout: int = 4
    """The version of Batsim whose layout the output files have: 4 or 5."""
    workload_files: dict[str, str] = field(default_factory=dict)
