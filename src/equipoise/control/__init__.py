"""Control: the loop that observes, decides, verifies, executes and records; and its ports.

Start with ``ControlLoop``. It touches hosts and disks only through a ``World`` and a journal.
"""

from equipoise.control.config import ControlConfig
from equipoise.control.loop import ControlLoop
from equipoise.control.ports import (
    CancelAction,
    Decider,
    EventDriven,
    EventLog,
    Instruction,
    StartAction,
    World,
)

__all__ = [
    "CancelAction",
    "ControlConfig",
    "ControlLoop",
    "Decider",
    "EventDriven",
    "EventLog",
    "Instruction",
    "StartAction",
    "World",
]
