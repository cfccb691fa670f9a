"""Upgrade: decides which resources change next, such that every SLA holds meanwhile.

Entry point: ``Coordinator`` (events in, decisions out). An ``Engine`` does the work. The package
reads no clock and no file, and its state follows from the events alone.
"""

from equipoise.upgrade.coordinator import Coordinator, instruction

__all__ = ["Coordinator", "instruction"]
