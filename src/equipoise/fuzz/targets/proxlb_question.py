"""A trial in ProxLB's words: its tags, its pools and its nodes in maintenance.

memory_gib              the size of a node and of a guest, which uses all of it
ignored                 a guest with a tag ``plb_ignore``
a host in maintenance   one of ``maintenance_nodes``
a host that is off      a node that ProxLB does not see
a VM that does not run  a guest that it does not see
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.targets.at_rest import ANYHOW, MEMORY, MIB_PER_GIB, check
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import VmState
from equipoise.spec.choose import in_order

IGNORED: Final = "ignored"
MAINTAINED: Final = "maintained"
POOL: Final = "trial"


@dataclass(slots=True)
class _Words:
    """What the constraint of a trial is in ProxLB's words."""

    tags: dict[VmId, list[str]] = field(default_factory=dict)
    pool: dict[str, Any] = field(default_factory=dict)
    members: Collection[VmId] = ()
    """Who is in the pool."""
    maintained: Collection[HostId] = ()


def encode(trial: Trial, engine: str, rules: str) -> dict[str, Any]:
    """The question; ``Unsupported`` if ProxLB has no words for it or does not promise it."""
    if trial.demand.name not in _WORDS:
        raise Unsupported(f"ProxLB has no words for {trial.demand.name}")
    check(trial, offered=(MEMORY,), taken=(MEMORY,))
    words = _WORDS[trial.demand.name](trial, rules == "pools")
    hosts = trial.initial.hosts.values()
    seen = [one for one in hosts if one.state in (HostState.ON, HostState.MAINTENANCE)]
    return {
        "engine": engine,
        "nodes": [
            {
                "id": host.id,
                "memory_mib": MIB_PER_GIB * host.capacity[MEMORY],
                "is_maintained": host.state is HostState.MAINTENANCE or host.id in words.maintained,
            }
            for host in seen
        ],
        "guests": [
            {
                "id": vm.id,
                "host": vm.host,
                "memory_mib": MIB_PER_GIB * vm.consumption[MEMORY],
                "tags": words.tags.get(vm.id, []),
                "pools": [POOL] if vm.id in words.members else [],
            }
            for vm in trial.initial.vms.values()
            if vm.state is VmState.RUNNING
        ],
        "pools": {POOL: words.pool} if words.pool else {},
    }


def open_hosts(trial: Trial) -> list[HostId]:
    """The hosts that ProxLB sees and may put guests on, but for one that is to be maintained."""
    closed = (trial.demand.arguments.get("n"), *_closed(trial))
    hosts = trial.initial.hosts.values()
    return [host.id for host in hosts if host.state is HostState.ON and host.id not in closed]


def _closed(trial: Trial) -> list[HostId]:
    """The hosts that are to be maintained by their labels, when a guest is pinned."""
    hosts = trial.initial.hosts.values() if trial.demand.name == "Fence" else ()
    return [host.id for host in hosts if MAINTAINED in host.labels]


def _together(trial: Trial, by_pool: bool) -> _Words:
    return _group(trial, by_pool, "affinity", "plb_affinity_trial")


def _apart(trial: Trial, by_pool: bool) -> _Words:
    if len(trial.demand.arguments["vs"]) > len(open_hosts(trial)):
        raise Unsupported(
            "there are more guests than nodes, and it says that it does not work then"
        )
    return _group(trial, by_pool, "anti-affinity", "plb_anti_affinity_trial")


def _group(trial: Trial, by_pool: bool, kind: str, tag: str) -> _Words:
    vms: Collection[VmId] = trial.demand.arguments["vs"]
    if by_pool:
        return _Words(pool={"type": kind}, members=vms)
    return _Words(tags={vm: [tag] for vm in vms})


def _pinned(trial: Trial, by_pool: bool) -> _Words:
    vm, hosts = trial.demand.arguments["v"], trial.demand.arguments["ns"]
    there = [host for host in in_order(hosts) if host in open_hosts(trial)]
    if not there:
        raise Unsupported("a guest that is pinned to no node that is there goes anywhere")
    if by_pool:
        return _Words(pool={"pin": there}, members=(vm,), maintained=_closed(trial))
    tags = {vm: [f"plb_pin_{host}" for host in there]}
    return _Words(tags=tags, maintained=_closed(trial))


def _left_alone(trial: Trial, _: bool) -> _Words:
    if trial.demand.arguments["nb"] > 0:
        raise Unsupported("it promises nothing of how often a guest is moved")
    return _Words(tags={trial.demand.arguments["v"]: ["plb_ignore_trial"]})


def _maintained(trial: Trial, _: bool) -> _Words:
    host = trial.initial.hosts[trial.demand.arguments["n"]]
    if host.state is not HostState.ON:
        raise Unsupported("the host is not on, and nobody is there")
    return _Words(maintained=(host.id,))


def _as_labelled(trial: Trial, _: bool) -> _Words:
    vms = trial.initial.vms.values()
    return _Words(tags={vm.id: ["plb_ignore_label"] for vm in vms if IGNORED in vm.labels})


_WORDS: Final[Mapping[str, Callable[[Trial, bool], _Words]]] = {
    ANYHOW: _as_labelled,
    "Gather": _together,
    "Spread": _apart,
    "Fence": _pinned,
    "MaxMoves": _left_alone,
    "Cordon": _maintained,
    "Maintenance": _maintained,
}
CONSTRAINTS: Final = tuple(_WORDS)
