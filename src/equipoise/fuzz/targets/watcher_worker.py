"""Asks OpenStack Watcher's strategies. Run by Watcher's own interpreter.

``act`` asks any of them what it would do: see ``watcher_strategies_worker``. ``plan`` asks
``workload_stabilization``, to compare with it.

Options: ``seed`` for its choice of hosts by chance (0 unless told), and any input parameter of the
strategy by its own name, e.g. ``host_choice`` (``retry``, as Watcher has it, or ``fullsearch``),
``retry_count``, ``metrics``, ``thresholds``. What is not told has the value of Watcher's schema.

It uses private names of the pinned version. Never import this module from ours.
"""

import copy
import datetime
import logging
import random
from time import perf_counter
from typing import Any

from answering import residents, serve
from watcher.common.utils import Struct
from watcher.decision_engine.model import element, model_root
from watcher.decision_engine.strategy.strategies.workload_stabilization import (
    WorkloadStabilization,
)
from watcher_strategies_worker import act

KIB_PER_MIB = 1024
PROJECT = "00000000-0000-4000-8000-000000000000"
CREATED = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DISK_GB = 1_000_000
"""Plenty on every host: our clusters say nothing about disks."""


class Meters:
    """A data source as Watcher asks it: everything was always as it is now."""

    def __init__(self, cluster: dict[str, Any]) -> None:
        self._values: dict[tuple[str, str], float] = {}
        hosts = {host["id"]: host for host in cluster["hosts"]}
        for vm in cluster["vms"]:
            own_mhz = vm["vcpus"] * hosts[vm["host"]]["mhz_per_core"]
            self._values[_vm_key(vm), "instance_cpu_usage"] = 100 * vm["cpu_mhz"] / own_mhz
            self._values[_vm_key(vm), "instance_ram_usage"] = vm["memory_used_mib"]
        for host_id, vms in residents(cluster).items():
            host = hosts[host_id]
            all_mhz = host["cores"] * host["mhz_per_core"]
            cpu_mhz = sum(vm["cpu_mhz"] for vm in vms)
            used_kib = KIB_PER_MIB * sum(vm["memory_used_mib"] for vm in vms)
            self._values[_host_key(host), "host_cpu_usage"] = 100 * cpu_mhz / all_mhz
            self._values[_host_key(host), "host_ram_usage"] = used_kib

    def statistic_aggregation(self, resource: Any, _kind: str, meter: str, *_when: Any) -> float:
        """The value of a meter, whatever the period and the way to sum it up."""
        return self._values[resource.uuid, meter]


def plan(cluster: dict[str, Any]) -> dict[str, Any]:
    """Build Watcher's model, let it decide, and read its actions."""
    options = dict(cluster.get("options") or {})
    random.seed(options.pop("seed", 0))
    config = Struct(datasources=None, check_optimize_metadata=False)
    strategy = WorkloadStabilization(config=config)
    strategy._compute_model = _model(cluster)
    strategy._datasource_backend = Meters(cluster)
    strategy.input_parameters = _parameters(options)
    began = perf_counter()
    solution = strategy.execute()
    seconds = perf_counter() - began
    return {"moves": [_move(action) for action in solution.actions], "seconds": seconds}


def _parameters(options: dict[str, Any]) -> Struct:
    known = WorkloadStabilization.get_schema()["properties"]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f"Watcher has no parameter {', '.join(unknown)}")
    parameters = Struct()
    for name, schema in known.items():
        # Copied, because the strategy writes into them.
        parameters[name] = copy.deepcopy(options.get(name, schema["default"]))
    return parameters


def _model(cluster: dict[str, Any]) -> model_root.ModelRoot:
    model = model_root.ModelRoot()
    homes = residents(cluster)
    for host in cluster["hosts"]:
        node = _node(host)
        model.add_node(node)
        for vm in homes[host["id"]]:
            instance = _instance(vm)
            model.add_instance(instance)
            model.map_instance(instance, node)
    return model


def _node(host: dict[str, Any]) -> element.ComputeNode:
    return element.ComputeNode(
        uuid=_host_key(host),
        hostname=host["id"],
        status=element.ServiceState.ENABLED.value,
        state=element.ServiceState.ONLINE.value,
        disabled_reason=None,
        vcpus=host["cores"],
        vcpu_reserved=0,
        vcpu_ratio=1.0,
        memory=host["memory_mib"],
        memory_mb_reserved=0,
        memory_ratio=1.0,
        disk=DISK_GB,
        disk_gb_reserved=0,
        disk_ratio=1.0,
    )


def _instance(vm: dict[str, Any]) -> element.Instance:
    return element.Instance(
        uuid=_vm_key(vm),
        name=vm["id"],
        state=element.InstanceState.ACTIVE.value,
        vcpus=vm["vcpus"],
        memory=vm["memory_mib"],
        disk=0,
        metadata={},
        project_id=PROJECT,
        host=vm["host"],
        hypervisor_hostname=vm["host"],
        created=CREATED,
    )


def _host_key(host: dict[str, Any]) -> str:
    """Hosts and VMs share one name space in Watcher's graph, and not in ours."""
    return f"host:{host['id']}"


def _vm_key(vm: dict[str, Any]) -> str:
    return f"vm:{vm['id']}"


def _move(action: dict[str, Any]) -> dict[str, str]:
    told = action["input_parameters"]
    if action["action_type"] != "migrate":
        raise ValueError(f"Watcher wants to {action['action_type']}, which is not a move")
    return {
        "vm": told["resource_name"],
        "from": told["source_node"],
        "to": told["destination_node"],
    }


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    serve("python-watcher", plan=plan, act=act)
