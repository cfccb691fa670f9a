"""Exact: from a wished state to a timed plan that keeps every claim, or the proof that none does.

Enter by ``solve``. The formulas of the specification are the model: there is no second wording of a
constraint for the solver. Never shows a plan that the judge refuses.
"""
