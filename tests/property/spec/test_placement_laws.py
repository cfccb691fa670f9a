"""Where VMs run matters only to the constraints that say so: ``reads_placement``."""

from __future__ import annotations

from random import Random

import pytest

from builders import a_step
from equipoise.errors import InvalidInput
from equipoise.model.action import Migrate
from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.host import HostState
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import apply_to_draft
from equipoise.model.vm import VmState
from equipoise.spec.library import library_constraints
from equipoise.spec.specification import context_of
from small_worlds import VARIANTS, a_random_state, arguments

WORLDS = 40
FREE = [name for name, owner in library_constraints().items() if not owner.reads_placement(name)]


def migration_states(rng: Random) -> list[Snapshot]:
    """A state, the same while a VM migrates, and after it; none if no VM can migrate."""
    before = a_random_state(rng, 4, 3, rng.randrange(VARIANTS))
    movable = [
        vm
        for vm in before.vms.values()
        if vm.state is VmState.RUNNING
        and vm.host is not None
        and before.hosts[vm.host].state is HostState.ON
    ]
    if not movable:
        return []
    vm = rng.choice(movable)
    assert vm.host is not None
    target = rng.choice([host for host in before.hosts if host != vm.host])
    step = a_step("m", Migrate(vm=vm.id, source=vm.host, target=target), 0, 1)
    draft, states = Draft(before), [before]
    for event in (
        ActionStarted(at_ms=0, step=step, attempt=1),
        ActionFinished(at_ms=1, step=step.id, attempt=1),
    ):
        apply_to_draft(draft, event)
        states.append(draft.freeze())
    return states


def changes(name: str) -> bool:
    """Whether a migration changes the value of a constraint in one of many worlds."""
    rng, owner = Random(name), library_constraints()[name]
    for _ in range(WORLDS):
        states = migration_states(rng)
        if not states:
            continue
        for given in arguments(owner.constraints[name], states[0], rng, most=8):
            values = owner.arguments(name, given, states[0])
            verdicts: set[bool | None] = set()
            for state in states:
                try:
                    verdicts.add(owner.holds(name, values, context_of(state)))
                except InvalidInput:
                    verdicts.add(None)
            if len(verdicts) > 1:
                return True
    return False


def test_a_reserve_of_the_cluster_reads_no_placement() -> None:
    assert {"Failover", "FailoverPercentage", "MinOnline", "MinRunning"} <= set(FREE)
    reads = {"Spread", "Ban", "Headroom", "FailoverHosts", "Lonely", "MaxDisturbed"}
    assert reads.isdisjoint(FREE)


@pytest.mark.parametrize("name", FREE)
def test_a_migration_changes_no_constraint_that_reads_no_placement(name: str) -> None:
    assert not changes(name)


@pytest.mark.parametrize("name", ["Spread", "Ban", "Headroom", "Lonely"])
def test_a_migration_changes_constraints_that_read_the_placement(name: str) -> None:
    assert changes(name)
