"""Placement over time: where every VM is while a plan runs, as SVG and as text.

Enter by ``placement_timeline``; ``draw`` makes the SVG, ``placement_text`` the text. Never judges a
plan.
"""

from equipoise.report.placement.svg import ViolationFlag, draw
from equipoise.report.placement.timeline import (
    PlacementTimeline,
    placement_text,
    placement_timeline,
)

__all__ = ["PlacementTimeline", "ViolationFlag", "draw", "placement_text", "placement_timeline"]
