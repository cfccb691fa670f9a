"""The role decider as a state machine: its laws hold for every sequence of events."""

from __future__ import annotations

from hypothesis import settings

from role_machines import LoadedRoles, RedundantRoles, RolesUnderFaults, SteadyRoles

SteadyTest = SteadyRoles.TestCase
SteadyTest.settings = settings(max_examples=60, stateful_step_count=25)
LoadedTest = LoadedRoles.TestCase
LoadedTest.settings = settings(max_examples=50, stateful_step_count=20)
FaultsTest = RolesUnderFaults.TestCase
FaultsTest.settings = settings(max_examples=60, stateful_step_count=40)
RedundantTest = RedundantRoles.TestCase
RedundantTest.settings = settings(max_examples=60, stateful_step_count=20)
