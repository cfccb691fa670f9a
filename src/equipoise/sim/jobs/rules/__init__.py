"""Constraints on the hosts of jobs: the judge, the search for hosts, the gate, and policies.

Entry points: ``JobGate``, and ``RULED_POLICIES``, the built-in policies for constrained jobs.
"""
