"""The solver: CP-SAT. Only this package imports it.

``CpModelBuilder`` collects the constraints, ``solve_model`` solves them.
"""
