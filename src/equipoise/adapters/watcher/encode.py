"""Trials as questions to Watcher, and the promises of each strategy.

Resources and labels of a trial are encoded exactly:

    vcpus, memory_gib, disk_gb   the size of a host and of a VM's flavour
    cpu_percent                  how much a VM uses of its vCPUs; ``unknown`` is not measured
    excluded                     a VM that the scope of the audit excludes
    backup                       a host that may be given to the strategy host_maintenance
    a host that is off           its service is down
    a host in maintenance        its service is disabled
    a VM that sleeps             is suspended
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from equipoise.adapters.targets.balancer import (
    ANY_OBJECTION,
    MEMORY,
    MIB_PER_GIB,
    require_supported,
)
from equipoise.adapters.targets.scheduler import UnsupportedTrial
from equipoise.adapters.targets.trial import Trial
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, ResourceName
from equipoise.model.vm import Vm, VmState

VCPUS: Final = ResourceName("vcpus")
DISK: Final = ResourceName("disk_gb")
CPU: Final = "cpu_percent"
BACKUP: Final = "backup"
UNKNOWN: Final = "unknown"
EXCLUDED: Final = "excluded"


@dataclass(frozen=True, slots=True)
class StrategyClaims:
    """The promises of a strategy, by its documentation or by the checks in its code."""

    resources: frozenset[str]
    """The resources for which it checks the capacity of the target host."""
    constraints: frozenset[str]
    """The constraints that it promises to satisfy: see ``encode_question``."""
    name: str = ""
    """Its name in Watcher, if the same strategy is tested with several parameters."""
    parameters: Mapping[str, Any] = field(default_factory=dict)


_ALL: Final = frozenset({VCPUS, MEMORY, DISK})
_CPU_AND_MEMORY: Final = frozenset({VCPUS, MEMORY})
_STABILIZATION: Final = StrategyClaims(
    frozenset({DISK}), frozenset({ANY_OBJECTION, "Root", "Cordon"}), name="workload_stabilization"
)
STRATEGIES: Final[Mapping[str, StrategyClaims]] = {
    "workload_stabilization": _STABILIZATION,
    "workload_stabilization-fullsearch": replace(
        _STABILIZATION, parameters={"host_choice": "fullsearch"}
    ),
    "workload_stabilization-cycle": replace(_STABILIZATION, parameters={"host_choice": "cycle"}),
    "workload_balance": StrategyClaims(
        _ALL, frozenset({ANY_OBJECTION, "Root", "Cordon", "MaxMoves"})
    ),
    "vm_workload_consolidation": StrategyClaims(
        _ALL, frozenset({ANY_OBJECTION, "Root", "MaxMoves"})
    ),
    "basic": StrategyClaims(_ALL, frozenset({ANY_OBJECTION, "Root", "MaxMoves"})),
    "node_resource_consolidation": StrategyClaims(
        _CPU_AND_MEMORY,
        frozenset({ANY_OBJECTION, "Root", "Cordon"}),
        parameters={"host_choice": "specify"},
    ),
    "host_maintenance": StrategyClaims(_CPU_AND_MEMORY, frozenset({ANY_OBJECTION, "Maintenance"})),
}
CONSTRAINTS: Final = (ANY_OBJECTION, "Root", "Cordon", "MaxMoves", "Maintenance")
_STATES: Final[Mapping[HostState, tuple[str, str]]] = {
    HostState.ON: ("enabled", "up"),
    HostState.MAINTENANCE: ("disabled", "up"),
    HostState.STANDBY: ("enabled", "down"),
    HostState.FAILED: ("enabled", "down"),
}
_VM_STATES: Final[Mapping[VmState, str]] = {
    VmState.RUNNING: "active",
    VmState.SLEEPING: "suspended",
}


def encode_question(trial: Trial, strategy: str) -> dict[str, Any]:
    """The question; ``UnsupportedTrial`` if the strategy does not promise the constraint.

    ``Root``: the scope of the audit excludes the VM. ``Cordon``: the host is disabled.
    ``Maintenance``: the host is the one for maintenance. The other constraints need no encoding.
    """
    claims, name = STRATEGIES[strategy], trial.demand.name
    if name not in claims.constraints:
        raise UnsupportedTrial(
            f"the strategy {strategy} does not promise {name}", "unsupported-constraint"
        )
    require_supported(trial, offered=(VCPUS, MEMORY, DISK), taken=(VCPUS, MEMORY))
    arguments = trial.demand.arguments
    cordoned = arguments["n"] if name == "Cordon" else None
    rooted = arguments["v"] if name == "Root" else None
    parameters = dict(claims.parameters)
    if strategy == "host_maintenance":
        parameters |= _maintenance_parameters(trial)
    return {
        "strategy": claims.name or strategy,
        "parameters": parameters,
        "hosts": [
            _host(host, is_cordoned=host.id == cordoned) for host in trial.initial.hosts.values()
        ],
        "vms": [
            _vm(vm, is_excluded=vm.id == rooted or EXCLUDED in vm.labels)
            for vm in trial.initial.vms.values()
            if vm.host is not None
        ],
    }


def _maintenance_parameters(trial: Trial) -> dict[str, str]:
    """The host for maintenance, and the first host that may take its VMs."""
    hosts = trial.initial.hosts
    node = trial.demand.arguments.get("n") or next(iter(hosts), None)
    if node is None or hosts[node].state not in (HostState.ON, HostState.MAINTENANCE):
        raise UnsupportedTrial("no host is up for maintenance", "unsupported-cluster")
    backup: HostId | None = next(
        (host.id for host in hosts.values() if BACKUP in host.labels and host.id != node), None
    )
    return {"maintenance_node": node} | ({"backup_node": backup} if backup else {})


def _host(host: Host, *, is_cordoned: bool) -> dict[str, Any]:
    status, state = _STATES[host.state]
    return {
        "id": host.id,
        "status": "disabled" if is_cordoned else status,
        "state": state,
        "vcpus": host.capacity[VCPUS],
        "memory_mib": MIB_PER_GIB * host.capacity[MEMORY],
        "disk_gb": host.capacity[DISK],
        "is_measured": host.labels.get(CPU) != UNKNOWN,
    }


def _vm(vm: Vm, *, is_excluded: bool) -> dict[str, Any]:
    used = vm.labels.get(CPU, "0")
    memory_mib = MIB_PER_GIB * vm.consumption[MEMORY]
    return {
        "id": vm.id,
        "host": vm.host,
        "state": _VM_STATES[vm.state],
        "vcpus": vm.consumption[VCPUS],
        "memory_mib": memory_mib,
        "disk_gb": vm.consumption.get(DISK, 0),
        "cpu_percent": None if used == UNKNOWN else int(used),
        "memory_used_mib": None if used == UNKNOWN else memory_mib // 2,
        "is_excluded": is_excluded,
    }
