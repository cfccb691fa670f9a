"""Runs strategies of OpenStack Watcher and answers questions. Watcher's interpreter runs this.

``act`` returns what the solution of a strategy would do. Only strategies that need no services are
offered:

    {"strategy": "workload_balance", "parameters": {}, "hosts": [...], "vms": [...]}
        -> {"acts": [{"do": "migrate", "vm": "v", "from": "g", "to": "h"}, {"do": "close", ...}]}

    hosts   id, status ("enabled" or "disabled"), state ("up" or "down"), vcpus, memory_mib,
            disk_gb, is_measured
    vms     id, host, state, vcpus, memory_mib, disk_gb, is_excluded, and cpu_percent and
            memory_used_mib, which are null without a measurement

``close`` and ``open`` disable and enable the service of a host. A migration without a target leaves
the choice to Nova. A strategy that raises has crashed in that question only.

``plan`` returns the moves of ``workload_stabilization`` for a cluster with measured loads. Its
options are ``seed`` for its random choice of hosts (default 0) and any input parameter of the
strategy by its own name, for example ``host_choice`` (``retry``, the default of Watcher, or
``fullsearch``), ``retry_count``, ``metrics`` and ``thresholds``. A parameter that is absent has the
value of Watcher's schema.

This script uses private names of the pinned version. No module of Equipoise imports it.
"""

import copy
import datetime
import logging
import random
from time import perf_counter
from typing import Any

from equipoise_worker import normalised, residents, serve
from watcher.common.utils import Struct
from watcher.decision_engine.model import element, model_root
from watcher.decision_engine.strategy import strategies

KIB_PER_MIB = 1024
PROJECT = "00000000-0000-4000-8000-000000000000"
CREATED = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DISK_GB = 1_000_000
"""Enough on every host in ``plan``: our clusters do not describe disks."""
STRATEGIES = {
    "workload_stabilization": strategies.WorkloadStabilization,
    "workload_balance": strategies.WorkloadBalance,
    "vm_workload_consolidation": strategies.VMWorkloadConsolidation,
    "basic": strategies.BasicConsolidation,
    "host_maintenance": strategies.HostMaintenance,
    "node_resource_consolidation": strategies.NodeResourceConsolidation,
}
SWITCHED = {"enabled": "open", "disabled": "close"}
Entry = dict[str, Any]


class ConstantMeters:
    """A data source whose meters always had their present value; null without a measurement."""

    NAME = "trial"

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], float | None] = {}

    def put_vm(self, name: str, **meters: float | None) -> None:
        """Set meters of a VM by their names after ``instance_``."""
        for meter, value in meters.items():
            self._values[_vm_key(name), f"instance_{meter}"] = value

    def put_host(self, name: str, **meters: float | None) -> None:
        """Set meters of a host by their names after ``host_``."""
        for meter, value in meters.items():
            self._values[_host_key(name), f"host_{meter}"] = value

    def statistic_aggregation(
        self, resource: Any, _kind: str, meter: str, *_when: Any
    ) -> float | None:
        """The value of a meter, for any period and aggregation."""
        return self._values[resource.uuid, meter]

    def __getattr__(self, name: str) -> Any:
        """``get_host_cpu_usage`` and its siblings."""
        meter = name.removeprefix("get_")
        return lambda resource, *_when, **_more: self._values[resource.uuid, meter]


# The question "act"


def act(questions: list[Entry]) -> Entry:
    """Return the actions of the strategies; each question has its own answer."""
    return {"answers": [_act(question) for question in questions]}


def _act(question: Entry) -> Entry:
    kind = STRATEGIES[question["strategy"]]
    nodes = [_node(host, _place_of(host)) for host in question["hosts"]]
    vms = question["vms"]
    instances = [_instance(vm, vm["state"], vm["disk_gb"], vm["is_excluded"]) for vm in vms]
    strategy = _strategy(
        kind, _model(nodes, instances), _described_meters(question), question["parameters"]
    )
    # A strategy chooses hosts at random, and a replay must get the same answer.
    random.seed(0)
    try:
        solution = strategy.execute()
    except Exception as error:  # any exception of a strategy is its crash
        return {"crash": normalised(error, "watcher")}
    return {"acts": [_act_of(action) for action in solution.actions]}


def _described_meters(question: Entry) -> ConstantMeters:
    meters = ConstantMeters()
    for vm in question["vms"]:
        meters.put_vm(
            vm["id"],
            cpu_usage=vm["cpu_percent"],
            ram_usage=vm["memory_used_mib"],
            ram_allocated=vm["memory_mib"],
            root_disk_size=vm["disk_gb"],
        )
    for host in question["hosts"]:
        vms = [vm for vm in question["vms"] if vm["host"] == host["id"]]
        cores = sum((vm["cpu_percent"] or 0) * vm["vcpus"] for vm in vms)
        # Watcher reads the memory of hosts in KiB and that of VMs in MiB.
        used_kib = KIB_PER_MIB * sum(vm["memory_used_mib"] or 0 for vm in vms)
        is_known = host["is_measured"]
        meters.put_host(
            host["id"],
            cpu_usage=cores / host["vcpus"] if is_known else None,
            ram_usage=used_kib if is_known else None,
        )
    return meters


def _act_of(action: Entry) -> Entry:
    given, kind = action["input_parameters"], action["action_type"]
    if kind == "change_nova_service_state":
        return {"do": SWITCHED[given["state"]], "host": given["resource_name"]}
    if kind == "migrate":
        source, target = given["source_node"], given.get("destination_node")
        return {"do": "migrate", "vm": given["resource_name"], "from": source, "to": target}
    return {"do": kind, "vm": given["resource_id"].removeprefix("vm:")}


# The question "plan"


def plan(cluster: Entry) -> Entry:
    """Build Watcher's model, let it decide, and return the moves."""
    options = dict(cluster.get("options") or {})
    random.seed(options.pop("seed", 0))
    kind = strategies.WorkloadStabilization
    unknown = sorted(set(options) - set(kind.get_schema()["properties"]))
    if unknown:
        raise ValueError(f"Watcher has no parameter {', '.join(unknown)}")
    enabled = (element.ServiceState.ENABLED.value, element.ServiceState.ONLINE.value)
    nodes = [_node(host, (*enabled, host["cores"], DISK_GB)) for host in cluster["hosts"]]
    vms = [vm for vms_of_host in residents(cluster).values() for vm in vms_of_host]
    instances = [_instance(vm, element.InstanceState.ACTIVE.value, 0) for vm in vms]
    strategy = _strategy(kind, _model(nodes, instances), _measured_meters(cluster), options)
    began = perf_counter()
    solution = strategy.execute()
    seconds = perf_counter() - began
    return {"moves": [_move_of(action) for action in solution.actions], "seconds": seconds}


def _measured_meters(cluster: Entry) -> ConstantMeters:
    meters = ConstantMeters()
    hosts = {host["id"]: host for host in cluster["hosts"]}
    for vm in cluster["vms"]:
        own_mhz = vm["vcpus"] * hosts[vm["host"]]["mhz_per_core"]
        meters.put_vm(
            vm["id"], cpu_usage=100 * vm["cpu_mhz"] / own_mhz, ram_usage=vm["memory_used_mib"]
        )
    for host_id, vms in residents(cluster).items():
        host = hosts[host_id]
        all_mhz = host["cores"] * host["mhz_per_core"]
        cpu_mhz = sum(vm["cpu_mhz"] for vm in vms)
        used_kib = KIB_PER_MIB * sum(vm["memory_used_mib"] for vm in vms)
        meters.put_host(host_id, cpu_usage=100 * cpu_mhz / all_mhz, ram_usage=used_kib)
    return meters


def _move_of(action: Entry) -> dict[str, str]:
    given = action["input_parameters"]
    if action["action_type"] != "migrate":
        raise ValueError(f"the action {action['action_type']} of Watcher is not a migration")
    return {
        "vm": given["resource_name"],
        "from": given["source_node"],
        "to": given["destination_node"],
    }


# Watcher's model


def _strategy(kind: Any, model: model_root.ModelRoot, meters: ConstantMeters, given: Entry) -> Any:
    strategy = kind(config=Struct(datasources=None, check_optimize_metadata=False))
    strategy._compute_model = model
    strategy._datasource_backend = meters
    parameters = Struct()
    for name, schema in kind.get_schema()["properties"].items():
        if name in given or "default" in schema:
            # Copied, because the strategy writes into them.
            parameters[name] = copy.deepcopy(given.get(name, schema.get("default")))
    strategy.input_parameters = parameters
    return strategy


def _model(
    nodes: list[element.ComputeNode], instances: list[element.Instance]
) -> model_root.ModelRoot:
    model = model_root.ModelRoot()
    by_name = {node.hostname: node for node in nodes}
    for node in nodes:
        model.add_node(node)
    for instance in instances:
        model.add_instance(instance)
        model.map_instance(instance, by_name[instance.host])
    return model


def _place_of(host: Entry) -> tuple[str, str, int, int]:
    return host["status"], host["state"], host["vcpus"], host["disk_gb"]


def _node(host: Entry, place: tuple[str, str, int, int]) -> element.ComputeNode:
    status, state, vcpus, disk_gb = place
    return element.ComputeNode(
        uuid=_host_key(host["id"]),
        hostname=host["id"],
        status=status,
        state=state,
        disabled_reason=None,
        vcpus=vcpus,
        vcpu_reserved=0,
        vcpu_ratio=1.0,
        memory=host["memory_mib"],
        memory_mb_reserved=0,
        memory_ratio=1.0,
        disk=disk_gb,
        disk_gb_reserved=0,
        disk_ratio=1.0,
    )


def _instance(
    vm: Entry, state: str, disk_gb: int, is_excluded: bool | None = None
) -> element.Instance:
    excluded = {} if is_excluded is None else {"watcher_exclude": is_excluded}
    return element.Instance(
        uuid=_vm_key(vm["id"]),
        name=vm["id"],
        state=state,
        vcpus=vm["vcpus"],
        memory=vm["memory_mib"],
        disk=disk_gb,
        metadata={},
        project_id=PROJECT,
        host=vm["host"],
        hypervisor_hostname=vm["host"],
        created=CREATED,
        **excluded,
    )


def _host_key(name: str) -> str:
    """A prefixed name: hosts and VMs share one name space in Watcher's graph."""
    return f"host:{name}"


def _vm_key(name: str) -> str:
    return f"vm:{name}"


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    serve("python-watcher", plan=plan, act=act)
