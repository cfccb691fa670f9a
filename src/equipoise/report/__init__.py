"""Report: writes the folder of a run, and makes pages that open without a network.

Enter by ``write_run``; ``read_run`` reads a folder back, ``compare`` and ``differences`` set two of
them side by side; ``plans.plan_page`` makes the page of a plan. Never decides anything, never
alters a run, never fetches anything.
"""

from equipoise.report.compare import Difference, compare, differences
from equipoise.report.folder import Run, Written, check_folder, read_run, write_run

__all__ = [
    "Difference",
    "Run",
    "Written",
    "check_folder",
    "compare",
    "differences",
    "read_run",
    "write_run",
]
