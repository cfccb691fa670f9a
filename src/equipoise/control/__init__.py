"""Control: the loop that observes, decides, verifies, executes and records; it owns the ports.

Enter by ``Loop``. Never touches a host or a disk itself: a ``World`` and a ``Journal`` do.
"""

from equipoise.control.config import ControlConfig
from equipoise.control.loop import Loop
from equipoise.control.ports import Cancel, Decider, Heeding, Instruction, Journal, Start, World

__all__ = [
    "Cancel",
    "ControlConfig",
    "Decider",
    "Heeding",
    "Instruction",
    "Journal",
    "Loop",
    "Start",
    "World",
]
