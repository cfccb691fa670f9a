"""Many cases judged at once: every figure is an array with the cases along its last axis.

A formula costs one array operation where it would have cost one step for each case, so Python's
overhead is paid once for thousands of cases. ``CaseBatch`` is the entry point: it judges the same
cases by any number of constraints.
"""
