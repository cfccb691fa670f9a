"""Control: the loop that observes, decides, verifies, executes and records; and its ports.

Start with ``ControlLoop``. It touches hosts and disks only through a ``World`` and a journal.
"""

from equipoise.control.loop import ControlLoop

__all__ = ["ControlLoop"]
