"""Clusters by chance, small and of few words, so that much in them meets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, TypeVar

from equipoise.fuzz.generate.arguments import TENANTS
from equipoise.fuzz.generate.options import Options, Span
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, ResourceName, TenantId, VmId
from equipoise.model.vm import Vm, VmState

Drawn = TypeVar("Drawn")
_OWNED: Final = 0.7
"""How many VMs have a tenant."""


def draw_hosts(rng: Random, options: Options) -> list[Host]:
    """Some hosts."""
    return [_host(rng, options, number) for number in range(1, within(rng, options.hosts) + 1)]


def _host(rng: Random, options: Options, number: int) -> Host:
    capacity = {
        ResourceName(name): within(rng, amounts.capacity)
        for name, amounts in options.resources.items()
        if rng.random() < amounts.offered
    }
    return Host(
        id=HostId(f"h{number}"),
        cores=8,
        mhz_per_core=1000,
        memory_mib=65_536,
        state=weighed(rng, options.host_states),
        labels=_labels(rng, options),
        capacity=capacity,
    )


def draw_vms(rng: Random, options: Options, hosts: Sequence[Host]) -> list[Vm]:
    """Some VMs; those who run do so on hosts that are on, and fit there."""
    left = {host.id: dict(host.capacity) for host in hosts if host.state is HostState.ON}
    return [_vm(rng, options, number, left) for number in range(1, within(rng, options.vms) + 1)]


def _vm(
    rng: Random, options: Options, number: int, left: Mapping[HostId, dict[ResourceName, int]]
) -> Vm:
    taken = {
        ResourceName(name): within(rng, amounts.consumption)
        for name, amounts in options.resources.items()
    }
    state = weighed(rng, options.vm_states)
    fitting = [
        host
        for host, room in left.items()
        if all(amount <= room.get(name, 0) for name, amount in taken.items())
    ]
    host = rng.choice(fitting) if state.has_host and fitting else None
    if host is None and state.has_host:
        state = VmState.READY
    if host is not None:
        for name, amount in taken.items():
            if amount:
                left[host][name] -= amount
    return Vm(
        id=VmId(f"v{number}"),
        vcpus=1,
        memory_mib=1024,
        state=state,
        host=host,
        consumption=taken,
        tenant=TenantId(rng.choice(TENANTS)) if rng.random() < _OWNED else None,
        template="image",
        labels=_labels(rng, options),
    )


def _labels(rng: Random, options: Options) -> dict[str, str]:
    return {
        key: rng.choice(values)
        for key, values in options.labels.items()
        if rng.random() < options.labelled
    }


def within(rng: Random, span: Span) -> int:
    """A number within a span."""
    return rng.randint(*span)


def weighed(rng: Random, weights: Mapping[Drawn, int]) -> Drawn:
    """One of several, by weight."""
    return rng.choices(tuple(weights), tuple(weights.values()))[0]
