"""Scenarios, the input of a simulation: cluster, loads, physics, scheduled events, faults.

Start with ``scenario.Scenario``. These are types as a file has them; nothing is computed here.
"""
