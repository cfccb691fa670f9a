"""Pictures of the two graphs of an upgrade: DOT, SVG drawn by ourselves, and JSON.

Enter by ``written``. Never decides anything: what is drawn is what the coordinator has made.
"""

from equipoise.report.graphs.view import View, written

__all__ = ["View", "written"]
