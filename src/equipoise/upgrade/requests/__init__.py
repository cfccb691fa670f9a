"""Requests: from what an administrator asks for to what is done with each resource, and back.

Enter by ``schedule``, ``take_back`` and ``settle``. Never decides when something is done.
"""

from equipoise.upgrade.requests.bind import settle
from equipoise.upgrade.requests.schedule import schedule
from equipoise.upgrade.requests.undo import drop, take_back

__all__ = ["drop", "schedule", "settle", "take_back"]
