"""The controller of roles as a machine: whatever happens in whatever order, its laws hold."""

from __future__ import annotations

from hypothesis import settings

from role_machines import Calm, Loaded, Redundant, Storm

CalmTest = Calm.TestCase
CalmTest.settings = settings(max_examples=60, stateful_step_count=25)
LoadedTest = Loaded.TestCase
LoadedTest.settings = settings(max_examples=50, stateful_step_count=20)
StormTest = Storm.TestCase
StormTest.settings = settings(max_examples=60, stateful_step_count=40)
RedundantTest = Redundant.TestCase
RedundantTest.settings = settings(max_examples=60, stateful_step_count=20)
