"""The order in which hosts are asked whether they can sleep, or should wake."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.model.host import Host
from equipoise.model.policy.power import Preference
from equipoise.model.quantity import HostId
from equipoise.power.brakes import is_automatic
from equipoise.power.ground import Ground


def sleep_order(ground: Ground, hosts: Sequence[HostId]) -> list[HostId]:
    """Those that are missed least come first."""
    keys = {host: (_asks(ground, host), _rank(ground, host)) for host in hosts}
    return sorted(hosts, key=lambda host: (keys[host], ground.row[host]))


def _asks(ground: Ground, host: HostId) -> bool:
    """Those for whom somebody has to be asked come last: nobody waits for the answer."""
    return not is_automatic(ground.policy, host, ground.snapshot.at_ms)


def wake_order(ground: Ground, hosts: Sequence[HostId], seed: int) -> list[HostId]:
    """Those that are missed most come first; among equals chance decides, so that all of them wear
    alike. Who failed to wake the last time comes last."""
    chance = np.random.default_rng((seed, ground.snapshot.version))
    lot = dict(zip(hosts, chance.permutation(len(hosts)).tolist(), strict=True))

    def key(host: HostId) -> tuple[bool, bool, tuple[float, ...], int]:
        last = ground.snapshot.switches.get(host)
        failed = last is not None and last.failed_to_wake
        rank = tuple(-one for one in _rank(ground, host))
        return _asks(ground, host), failed, rank, lot[host]

    return sorted(hosts, key=key)


def _rank(ground: Ground, host: HostId) -> tuple[float, ...]:
    """How much a host would be missed, by what the policy prefers, in its order."""
    return tuple(_figure(one, ground, host) for one in ground.policy.order)


def _figure(preference: Preference, ground: Ground, name: HostId) -> float:
    host = ground.snapshot.hosts[name]
    match preference:
        case Preference.SIZE:
            return _size(host, ground)
        case Preference.EFFICIENCY:
            return _efficiency(host)
        case Preference.TEMPERATURE:
            return 0.0 if host.temperature_c is None else -host.temperature_c
        case Preference.EVACUATION:
            vms = (ground.snapshot.vms[vm] for vm in ground.snapshot.residents[name])
            return float(sum(vm.memory_mib for vm in vms if not vm.agent))


def _size(host: Host, ground: Ground) -> float:
    """CPU and memory as parts of those of the mean host, so that both count alike."""
    cpu, memory = map(float, ground.state.field.room[:, :2].mean(axis=0))
    return host.usable_cpu_mhz / max(1.0, cpu) + host.usable_memory_mib / max(1.0, memory)


def _efficiency(host: Host) -> float:
    """Cycles per watt at full use."""
    return host.usable_cpu_mhz / max(1, host.power.most_watts)
