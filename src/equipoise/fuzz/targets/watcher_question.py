"""A trial in Watcher's words, and what each of its strategies claims.

What is drawn as resources and labels is told exactly:

    vcpus, memory_gib, disk_gb   the size of a host and of a VM's flavour
    cpu_percent                  how much a VM uses of its vCPUs; nobody measures ``unknown``
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

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.targets.at_rest import ANYHOW, MEMORY, MIB_PER_GIB, check
from equipoise.fuzz.trial.trial import Trial
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
class Claims:
    """What a strategy says of itself, in its documentation or by what its code looks after."""

    resources: frozenset[str]
    """Of which it looks that there is enough where a VM comes."""
    constraints: frozenset[str]
    """What else it keeps: see ``encode``."""
    name: str = ""
    """How Watcher calls it, if the same strategy is asked with other parameters."""
    parameters: Mapping[str, Any] = field(default_factory=dict)


_ALL: Final = frozenset({VCPUS, MEMORY, DISK})
_CPU_AND_MEMORY: Final = frozenset({VCPUS, MEMORY})
_STABLE: Final = Claims(
    frozenset({DISK}), frozenset({ANYHOW, "Root", "Cordon"}), name="workload_stabilization"
)
STRATEGIES: Final[Mapping[str, Claims]] = {
    "workload_stabilization": _STABLE,
    "workload_stabilization-fullsearch": replace(_STABLE, parameters={"host_choice": "fullsearch"}),
    "workload_stabilization-cycle": replace(_STABLE, parameters={"host_choice": "cycle"}),
    "workload_balance": Claims(_ALL, frozenset({ANYHOW, "Root", "Cordon", "MaxMoves"})),
    "vm_workload_consolidation": Claims(_ALL, frozenset({ANYHOW, "Root", "MaxMoves"})),
    "basic": Claims(_ALL, frozenset({ANYHOW, "Root", "MaxMoves"})),
    "node_resource_consolidation": Claims(
        _CPU_AND_MEMORY,
        frozenset({ANYHOW, "Root", "Cordon"}),
        parameters={"host_choice": "specify"},
    ),
    "host_maintenance": Claims(_CPU_AND_MEMORY, frozenset({ANYHOW, "Maintenance"})),
}
CONSTRAINTS: Final = (ANYHOW, "Root", "Cordon", "MaxMoves", "Maintenance")
_STATES: Final[Mapping[HostState, tuple[str, str]]] = {
    HostState.ON: ("enabled", "up"),
    HostState.MAINTENANCE: ("disabled", "up"),
    HostState.STANDBY: ("enabled", "down"),
    HostState.FAILED: ("enabled", "down"),
}
_LIVES: Final[Mapping[VmState, str]] = {VmState.RUNNING: "active", VmState.SLEEPING: "suspended"}


def encode(trial: Trial, strategy: str) -> dict[str, Any]:
    """The question; ``Unsupported`` if the strategy claims nothing of the constraint.

    ``Root``: the VM is excluded by the scope of the audit. ``Cordon``: the host is disabled.
    ``Maintenance``: the host is the one to be maintained. The others need no words.
    """
    claims, name = STRATEGIES[strategy], trial.demand.name
    if name not in claims.constraints:
        raise Unsupported(f"the strategy claims nothing of {name}")
    check(trial, offered=(VCPUS, MEMORY, DISK), taken=(VCPUS, MEMORY))
    about = trial.demand.arguments
    cordoned = about["n"] if trial.demand.name == "Cordon" else None
    rooted = about["v"] if trial.demand.name == "Root" else None
    given = dict(STRATEGIES[strategy].parameters)
    if strategy == "host_maintenance":
        given |= _maintained(trial)
    return {
        "strategy": STRATEGIES[strategy].name or strategy,
        "parameters": given,
        "hosts": [
            _host(host, is_cordoned=host.id == cordoned) for host in trial.initial.hosts.values()
        ],
        "vms": [
            _vm(vm, is_excluded=vm.id == rooted or EXCLUDED in vm.labels)
            for vm in trial.initial.vms.values()
            if vm.host is not None
        ],
    }


def _maintained(trial: Trial) -> dict[str, str]:
    """Which host is to be maintained, and the first one that may take its VMs."""
    hosts = trial.initial.hosts
    node = trial.demand.arguments.get("n") or next(iter(hosts), None)
    if node is None or hosts[node].state not in (HostState.ON, HostState.MAINTENANCE):
        raise Unsupported("there is no host that is up and could be maintained")
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
        "state": _LIVES[vm.state],
        "vcpus": vm.consumption[VCPUS],
        "memory_mib": memory_mib,
        "disk_gb": vm.consumption.get(DISK, 0),
        "cpu_percent": None if used == UNKNOWN else int(used),
        "memory_used_mib": None if used == UNKNOWN else memory_mib // 2,
        "is_excluded": is_excluded,
    }
