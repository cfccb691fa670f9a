"""Upgrade: decides what is changed next, so that every promise to the tenants holds meanwhile.

Enter by ``Coordinator``: events in, decisions out. Never touches a machine, a clock or a file: an
``Engine`` does the work, and what is known follows from the events alone.
"""

from equipoise.upgrade.coordinator import Coordinator, instruction

__all__ = ["Coordinator", "instruction"]
