"""The exact planner: a timed plan that meets every condition, or a proof that none exists.

``solve`` is the entry point. The formulas of the specification are the model: no constraint is
written a second time for the solver. A plan that the judge refuses is never returned.
"""
