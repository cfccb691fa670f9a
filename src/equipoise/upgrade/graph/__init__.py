"""Graphs: current and future dependencies, computed from the state in each iteration.

Entry point: ``build``. This package does not change the state of an upgrade.
"""
