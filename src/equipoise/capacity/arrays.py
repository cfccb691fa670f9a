"""The capacity ledger on arrays, for kernels: the same meaning as ``capacity.ledger``.

Rows are units (what moves as one) and hosts, columns are resources. ``unit_fits``, ``commit_unit``
and ``release_unit`` are plain arithmetic that can be compiled. All amounts are integers below
2**53, so that sums of floats are exact and do not depend on their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from equipoise.capacity.ledger import RESOURCES, Claim, holdings
from equipoise.capacity.waterfill import Floats, Ints
from equipoise.model.host import Host
from equipoise.model.quantity import HostId, ResourceName
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState

_BY_LABEL: Final = {resource.label: resource for resource in RESOURCES}


class CapacityArrays(NamedTuple):
    """Claims of units, limits of hosts and what is committed on each host, per resource."""

    claim: Floats
    limit: Floats
    committed: Floats


def unit_fits(ledger: CapacityArrays, unit: int, host: int) -> bool:
    """Return whether the claim of a unit fits on a host beside all that is committed there."""
    for resource in range(ledger.claim.shape[1]):
        need = ledger.claim[unit, resource]
        # As in the plain ledger: an overcommitted resource refuses only what claims some of it.
        if need > 0.0 and ledger.committed[host, resource] + need > ledger.limit[host, resource]:
            return False
    return True


def commit_unit(ledger: CapacityArrays, unit: int, host: int) -> None:
    """Take capacity for a unit on a host, also if there is too little."""
    for resource in range(ledger.claim.shape[1]):
        ledger.committed[host, resource] += ledger.claim[unit, resource]


def release_unit(ledger: CapacityArrays, unit: int, host: int) -> None:
    """Give back what a unit holds on a host."""
    for resource in range(ledger.claim.shape[1]):
        ledger.committed[host, resource] -= ledger.claim[unit, resource]


LEDGER_FUNCTIONS: Final[tuple[Any, ...]] = (unit_fits, commit_unit, release_unit)
"""For ``KernelSet``."""


def capacity_arrays(
    snapshot: Snapshot, vms: Sequence[Vm], resources: Sequence[str]
) -> CapacityArrays:
    """Return the ledger of a snapshot, with a claim for each of the given VMs.

    What is committed includes all VMs that hold capacity, with their running actions.
    """
    return CapacityArrays(
        _claims(vms, resources),
        _limits(snapshot.hosts.values(), resources),
        _committed(snapshot, resources),
    )


def claim_row(claim: Claim, resources: Sequence[str]) -> Floats:
    """Return a claim as a row of the arrays."""
    return np.array([claim.get(resource, 0) for resource in resources], dtype=np.float64)


def sum_per_row(figures: Floats, place: Ints, count: int) -> Floats:
    """Return the sum of the figures with the same row number."""
    columns = [
        np.bincount(place, weights=figures[:, column], minlength=count)
        for column in range(figures.shape[1])
    ]
    # Without any figure, ``bincount`` counts in integers.
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.float64)


def _claims(vms: Sequence[Vm], resources: Sequence[str]) -> Floats:
    # Column by column instead of ``vm_claim``: a dictionary per VM takes four times as long.
    claims = np.empty((len(vms), len(resources)))
    for column, name in enumerate(resources):
        resource = _BY_LABEL.get(name)
        if resource is not None:
            claims[:, column] = list(map(resource.of_vm, vms))
        else:
            claims[:, column] = [vm.consumption.get(ResourceName(name), 0) for vm in vms]
    return claims


def _limits(hosts: Iterable[Host], resources: Sequence[str]) -> Floats:
    own = [resource for name in resources if (resource := _BY_LABEL.get(name)) is not None]
    named = [ResourceName(name) for name in resources[len(own) :]]
    rows = [
        [*(resource.of_host(host) for resource in own)]
        + [host.capacity.get(name, 0) for name in named]
        for host in hosts
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(resources))


def _committed(snapshot: Snapshot, resources: Sequence[str]) -> Floats:
    row: Mapping[HostId | None, int] = {host: row for row, host in enumerate(snapshot.hosts)}
    busy = {running.step.footprint.vm for running in snapshot.in_flight.values()}
    # The claim of a VM that runs and has no action counts on its host. All others are few.
    settled, others = [], []
    for vm in snapshot.vms.values():
        if vm.id in busy or (vm.agent and vm.state is not VmState.RUNNING):
            others.append(vm)
        elif vm.state is VmState.RUNNING:
            settled.append(vm)
    place = np.array([row[vm.host] for vm in settled], dtype=np.int64)
    committed = sum_per_row(_claims(settled, resources), place, len(row))
    for _, held in holdings(snapshot, others):
        for host in held.hosts:
            committed[row[host]] += claim_row(held.claim, resources)
    return committed
