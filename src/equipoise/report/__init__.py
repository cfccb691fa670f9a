"""Report: writes the folder of a run, and HTML pages that open without a network.

Enter by ``write_run``; ``read_run`` reads a folder, ``compare_page`` and ``differences`` compare
two runs; ``plan_page.plan_page`` returns the page of a plan. Never decides anything, never alters a
run, never fetches anything.
"""

from equipoise.report.compare_runs import MeasureDifference, compare_page, differences
from equipoise.report.run_folder import SavedRun, WrittenRun, check_folder, read_run, write_run

__all__ = [
    "MeasureDifference",
    "SavedRun",
    "WrittenRun",
    "check_folder",
    "compare_page",
    "differences",
    "read_run",
    "write_run",
]
