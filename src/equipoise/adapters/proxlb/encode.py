"""Trials as questions to ProxLB: its tags, its pools and its nodes in maintenance.

memory_gib              the size of a node and of a guest, which uses all of it
ignored                 a guest with a tag ``plb_ignore``
a host in maintenance   one of ``maintenance_nodes``
a host that is off      a node that ProxLB does not see
a VM that does not run  a guest that ProxLB does not see
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from equipoise.adapters.targets.balancer import (
    ANY_OBJECTION,
    MEMORY,
    MIB_PER_GIB,
    require_supported,
)
from equipoise.adapters.targets.scheduler import UnsupportedTrial
from equipoise.adapters.targets.trial import Trial
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import VmState
from equipoise.spec.evaluate.domains import in_order

IGNORED: Final = "ignored"
MAINTAINED: Final = "maintained"
POOL: Final = "trial"


@dataclass(slots=True)
class _ProxLbRules:
    """The constraint of a trial as tags, a pool and maintenance nodes of ProxLB."""

    tags: dict[VmId, list[str]] = field(default_factory=dict)
    pool: dict[str, Any] = field(default_factory=dict)
    members: Collection[VmId] = ()
    """The members of the pool."""
    maintained: Collection[HostId] = ()


def encode_question(trial: Trial, engine: str, rules: str) -> dict[str, Any]:
    """The question; ``UnsupportedTrial`` if ProxLB cannot express or does not promise it."""
    if trial.demand.name not in _ENCODERS:
        raise UnsupportedTrial(
            f"ProxLB has no rule for {trial.demand.name}", "unsupported-constraint"
        )
    require_supported(trial, offered=(MEMORY,), taken=(MEMORY,))
    encoded = _ENCODERS[trial.demand.name](trial, rules == "pools")
    hosts = trial.initial.hosts.values()
    visible = [host for host in hosts if host.state in (HostState.ON, HostState.MAINTENANCE)]
    return {
        "engine": engine,
        "nodes": [
            {
                "id": host.id,
                "memory_mib": MIB_PER_GIB * host.capacity[MEMORY],
                "is_maintained": host.state is HostState.MAINTENANCE
                or host.id in encoded.maintained,
            }
            for host in visible
        ],
        "guests": [
            {
                "id": vm.id,
                "host": vm.host,
                "memory_mib": MIB_PER_GIB * vm.consumption[MEMORY],
                "tags": encoded.tags.get(vm.id, []),
                "pools": [POOL] if vm.id in encoded.members else [],
            }
            for vm in trial.initial.vms.values()
            if vm.state is VmState.RUNNING
        ],
        "pools": {POOL: encoded.pool} if encoded.pool else {},
    }


def open_hosts(trial: Trial) -> list[HostId]:
    """The hosts that may take guests: visible to ProxLB and not selected for maintenance."""
    closed = (trial.demand.arguments.get("n"), *_labelled_for_maintenance(trial))
    hosts = trial.initial.hosts.values()
    return [host.id for host in hosts if host.state is HostState.ON and host.id not in closed]


def _labelled_for_maintenance(trial: Trial) -> list[HostId]:
    """The hosts with the maintenance label; they count only when a guest is pinned."""
    hosts = trial.initial.hosts.values() if trial.demand.name == "Fence" else ()
    return [host.id for host in hosts if MAINTAINED in host.labels]


def _together(trial: Trial, by_pool: bool) -> _ProxLbRules:
    return _group(trial, by_pool, "affinity", "plb_affinity_trial")


def _apart(trial: Trial, by_pool: bool) -> _ProxLbRules:
    if len(trial.demand.arguments["vs"]) > len(open_hosts(trial)):
        raise UnsupportedTrial(
            "the group has more guests than nodes, which ProxLB documents as unsupported",
            "not-promised",
        )
    return _group(trial, by_pool, "anti-affinity", "plb_anti_affinity_trial")


def _group(trial: Trial, by_pool: bool, kind: str, tag: str) -> _ProxLbRules:
    vms: Collection[VmId] = trial.demand.arguments["vs"]
    if by_pool:
        return _ProxLbRules(pool={"type": kind}, members=vms)
    return _ProxLbRules(tags={vm: [tag] for vm in vms})


def _pinned_to_hosts(trial: Trial, by_pool: bool) -> _ProxLbRules:
    vm, hosts = trial.demand.arguments["v"], trial.demand.arguments["ns"]
    available = [host for host in in_order(hosts) if host in open_hosts(trial)]
    if not available:
        raise UnsupportedTrial("ProxLB ignores a pin without any available node", "not-promised")
    if by_pool:
        return _ProxLbRules(
            pool={"pin": available}, members=(vm,), maintained=_labelled_for_maintenance(trial)
        )
    tags = {vm: [f"plb_pin_{host}" for host in available]}
    return _ProxLbRules(tags=tags, maintained=_labelled_for_maintenance(trial))


def _ignored(trial: Trial, _: bool) -> _ProxLbRules:
    if trial.demand.arguments["nb"] > 0:
        raise UnsupportedTrial(
            "ProxLB does not limit the moves of a guest, except to none", "unsupported-argument"
        )
    return _ProxLbRules(tags={trial.demand.arguments["v"]: ["plb_ignore_trial"]})


def _maintained(trial: Trial, _: bool) -> _ProxLbRules:
    host = trial.initial.hosts[trial.demand.arguments["n"]]
    if host.state is not HostState.ON:
        raise UnsupportedTrial(f"{host.id} is not on", "unsupported-cluster")
    return _ProxLbRules(maintained=(host.id,))


def _ignored_by_label(trial: Trial, _: bool) -> _ProxLbRules:
    vms = trial.initial.vms.values()
    return _ProxLbRules(tags={vm.id: ["plb_ignore_label"] for vm in vms if IGNORED in vm.labels})


_ENCODERS: Final[Mapping[str, Callable[[Trial, bool], _ProxLbRules]]] = {
    ANY_OBJECTION: _ignored_by_label,
    "Gather": _together,
    "Spread": _apart,
    "Fence": _pinned_to_hosts,
    "MaxMoves": _ignored,
    "Cordon": _maintained,
    "Maintenance": _maintained,
}
CONSTRAINTS: Final = tuple(_ENCODERS)
