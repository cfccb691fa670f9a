"""The plain ledger and the ledger on arrays agree: what fits, and what is committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.capacity.arrays import (
    LEDGER_FUNCTIONS,
    CapacityArrays,
    capacity_arrays,
    claim_row,
)
from equipoise.capacity.kernels import KernelSet
from equipoise.capacity.ledger import (
    CapacityLedger,
    CommittedCapacity,
    claimed_resources,
    vm_claim,
)
from equipoise.model.action import Action, Allocate, Boot, Migrate, Resume
from equipoise.model.event import ActionStarted
from equipoise.model.host import Host, HostReserve, HostState
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, MemorySettings, Vm, VmState

NAMED = ("licences", "gpus")
HOSTS = tuple(HostId(f"h{number}") for number in range(4))
AMOUNTS = st.sampled_from((0, 0, 1, 2, 500, 1000))
FACTORS = st.sampled_from((None, None, 0.1, 1.5, 2.3))
KERNELS = KernelSet(*LEDGER_FUNCTIONS)


class Trial(NamedTuple):
    """One step of a sequence: a VM, a host, and whether its claim is committed or released."""

    vm: int
    host: int
    commits: bool


@st.composite
def hosts(draw: st.DrawFn, name: HostId) -> Host:
    return a_host(name).but(
        state=draw(st.sampled_from((HostState.ON, HostState.ON, HostState.STANDBY))),
        reserve=HostReserve(cpu_mhz=draw(AMOUNTS), memory_mib=draw(AMOUNTS)),
        capacity={name: draw(AMOUNTS) for name in NAMED if draw(st.booleans())},
        memory_overcommit=draw(FACTORS),
        cpu_overcommit=draw(FACTORS),
    )


@st.composite
def vms(draw: st.DrawFn, number: int, around: Sequence[Host]) -> Vm:
    home = draw(st.sampled_from(around))
    is_on = home.state is HostState.ON
    agent = draw(st.integers(0, 3)) == 0
    states = [VmState.RUNNING] if is_on else [VmState.SLEEPING] if agent else [VmState.READY]
    if is_on and not agent:
        states += [VmState.SLEEPING, VmState.READY]
    state = draw(st.sampled_from(states))
    memory_mib = draw(AMOUNTS)
    return a_vm(f"v{number}").but(
        state=state,
        agent=agent,
        host=None if state is VmState.READY else home.id,
        memory_mib=max(1, memory_mib),
        cpu=CpuSettings(reservation_mhz=draw(AMOUNTS)),
        memory=MemorySettings(reservation_mib=memory_mib),
        consumption={name: draw(AMOUNTS) for name in NAMED if draw(st.booleans())},
    )


@st.composite
def actions(draw: st.DrawFn, vm: Vm, around: Sequence[Host]) -> Action | None:
    target = draw(st.sampled_from(around)).id
    if vm.state is VmState.READY:
        return Boot(vm=vm.id, target=target)
    assert vm.host is not None
    if vm.state is VmState.SLEEPING:
        return None if vm.agent else Resume(vm=vm.id, source=vm.host, target=target)
    if draw(st.booleans()):
        name = ResourceName(draw(st.sampled_from(NAMED)))
        return Allocate(vm=vm.id, resource=name, amount=draw(AMOUNTS))
    is_possible = not vm.agent and target != vm.host
    return Migrate(vm=vm.id, source=vm.host, target=target) if is_possible else None


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Hosts of all kinds, VMs, agents, and actions in flight; some hosts are overcommitted."""
    around = [draw(hosts(name)) for name in HOSTS[: draw(st.integers(1, len(HOSTS)))]]
    machines = [draw(vms(number, around)) for number in range(draw(st.integers(1, 6)))]
    ledger = CapacityLedger(a_cluster(*around, vms=machines))
    for vm in machines:
        action = draw(actions(vm, around)) if draw(st.booleans()) else None
        if action is not None:
            step = a_step(f"s-{vm.id}", action)
            ledger.apply(ActionStarted(at_ms=0, step=step, attempt=1))
    return ledger.draft.freeze()


TRIALS = st.lists(st.builds(Trial, st.integers(0, 5), st.integers(0, 3), st.booleans()))


def agree(snapshot: Snapshot, plain: CommittedCapacity, arrays: CapacityArrays) -> None:
    """Compare what is committed, free and short, of every resource, VM and host."""
    resources = claimed_resources(snapshot)
    for row, host in enumerate(snapshot.hosts):
        for column, resource in enumerate(resources):
            assert arrays.committed[row, column] == plain.committed(host, resource)
            free = arrays.limit[row, column] - arrays.committed[row, column]
            assert free == plain.free(host, resource)
        over = (arrays.committed[row] > np.maximum(arrays.limit[row], 0)).any()
        assert over == plain.is_overcommitted(host)
        for unit, vm in enumerate(snapshot.vms.values()):
            claim = vm_claim(vm)
            fits = KERNELS.plain.unit_fits(arrays, unit, row)
            assert fits == plain.fits(claim, host) == (not plain.shortages(claim, host))
            assert (arrays.claim[unit] == claim_row(claim, resources)).all()


@given(clusters(), TRIALS)
def test_both_ledgers_agree_after_any_sequence(snapshot: Snapshot, trials: list[Trial]) -> None:
    machines, names = list(snapshot.vms.values()), list(snapshot.hosts)
    plain = CommittedCapacity.of(snapshot)
    arrays = capacity_arrays(snapshot, machines, claimed_resources(snapshot))
    agree(snapshot, plain, arrays)
    held: list[tuple[int, int]] = []
    for trial in trials:
        unit, row = trial.vm % len(machines), trial.host % len(names)
        claim = vm_claim(machines[unit])
        if trial.commits:
            KERNELS.plain.commit_unit(arrays, unit, row)
            plain.commit(claim, names[row])
            held.append((unit, row))
        elif (unit, row) in held:
            KERNELS.plain.release_unit(arrays, unit, row)
            plain.release(claim, names[row])
            held.remove((unit, row))
        agree(snapshot, plain, arrays)
    for unit, row in held:
        KERNELS.plain.release_unit(arrays, unit, row)
        plain.release(vm_claim(machines[unit]), names[row])
    agree(snapshot, CommittedCapacity.of(snapshot), arrays)
    agree(snapshot, plain, arrays)


@given(clusters())
def test_the_event_ledger_commits_what_a_snapshot_commits(snapshot: Snapshot) -> None:
    ledger, plain = CapacityLedger(snapshot), CommittedCapacity.of(snapshot)
    twin = CapacityLedger.like(ledger, snapshot)
    for host in snapshot.hosts:
        for resource in claimed_resources(snapshot):
            expected = plain.committed(host, resource)
            assert ledger.capacity.committed(host, resource) == expected
            assert twin.capacity.committed(host, resource) == expected
            assert plain.excerpt([host]).committed(host, resource) == expected


def test_a_migrating_vm_is_charged_on_source_and_target() -> None:
    vm = a_vm("v1", host="h0").but(cpu=CpuSettings(reservation_mhz=500))
    ledger = CapacityLedger(a_cluster(a_host("h0"), a_host("h1"), vms=[vm]))
    move = Migrate(vm=VmId("v1"), source=HOSTS[0], target=HOSTS[1])
    ledger.apply(ActionStarted(at_ms=0, step=a_step("s", move), attempt=1))
    snapshot = ledger.draft.freeze()
    arrays = capacity_arrays(snapshot, [vm], claimed_resources(snapshot))
    assert arrays.committed[:, 0].tolist() == [500, 500]
    assert [ledger.capacity.committed(host, "MHz of CPU") for host in HOSTS[:2]] == [500, 500]


def test_a_sleeping_agent_keeps_its_claim() -> None:
    agent = a_vm("v1", host="h0").but(
        state=VmState.SLEEPING, agent=True, cpu=CpuSettings(reservation_mhz=500)
    )
    snapshot = a_cluster(a_host("h0").but(state=HostState.STANDBY), vms=[agent])
    arrays = capacity_arrays(snapshot, [agent], claimed_resources(snapshot))
    assert arrays.committed[:, 0].tolist() == [500]
    assert CommittedCapacity.of(snapshot).committed(HOSTS[0], "MHz of CPU") == 500


def test_compiled_and_plain_kernels_agree() -> None:
    machines = [
        a_vm(f"v{number}", host="h0").but(cpu=CpuSettings(reservation_mhz=900 * number))
        for number in range(4)
    ]
    snapshot = a_cluster(a_host("h0"), a_host("h1"), vms=machines)
    resources = claimed_resources(snapshot)
    results = []
    for fast in (False, True):
        arrays = capacity_arrays(snapshot, machines, resources)
        kernels = KERNELS.at(fast=fast)
        kernels.release_unit(arrays, 3, 0)
        kernels.commit_unit(arrays, 3, 1)
        fits = [bool(kernels.unit_fits(arrays, unit, row)) for unit in range(4) for row in (0, 1)]
        results.append((fits, arrays.committed.tolist()))
    assert results[0] == results[1]
