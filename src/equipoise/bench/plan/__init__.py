"""The benchmark of the exact planner, beside BtrPlace."""
