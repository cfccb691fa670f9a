"""Asks the strategies of OpenStack Watcher that need no services. Run by ``watcher_worker``.

A question names a strategy and tells a cluster; the answer is what its solution would do:

    {"strategy": "workload_balance", "parameters": {}, "hosts": [...], "vms": [...]}
        -> {"acts": [{"do": "migrate", "vm": "v", "from": "g", "to": "h"}, {"do": "close", ...}]}

    hosts   id, status ("enabled" or "disabled"), state ("up" or "down"), vcpus, memory_mib,
            disk_gb, is_measured
    vms     id, host, state, vcpus, memory_mib, disk_gb, is_excluded, and cpu_percent and
            memory_used_mib, which are nothing if nobody has measured them

``close`` and ``open`` disable and enable the service of a host. A migration without a target leaves
the choice to Nova. A strategy that breaks has crashed in that question only.

It uses private names of the pinned version. Never import this module from ours.
"""

import copy
import datetime
import random
from typing import Any

from answering import normalised
from watcher.common.utils import Struct
from watcher.decision_engine.model import element, model_root
from watcher.decision_engine.strategy import strategies

KIB_PER_MIB = 1024
PROJECT = "00000000-0000-4000-8000-000000000000"
CREATED = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
STRATEGIES = {
    "workload_stabilization": strategies.WorkloadStabilization,
    "workload_balance": strategies.WorkloadBalance,
    "vm_workload_consolidation": strategies.VMWorkloadConsolidation,
    "basic": strategies.BasicConsolidation,
    "host_maintenance": strategies.HostMaintenance,
    "node_resource_consolidation": strategies.NodeResourceConsolidation,
}
SWITCHED = {"enabled": "open", "disabled": "close"}


class Measured:
    """A data source: everything was always as it is now; of what nobody measures, nothing."""

    NAME = "trial"

    def __init__(self, question: dict[str, Any]) -> None:
        self._values: dict[tuple[str, str], float | None] = {}
        for vm in question["vms"]:
            key = f"vm:{vm['id']}"
            self._values[key, "instance_cpu_usage"] = vm["cpu_percent"]
            self._values[key, "instance_ram_usage"] = vm["memory_used_mib"]
            self._values[key, "instance_ram_allocated"] = vm["memory_mib"]
            self._values[key, "instance_root_disk_size"] = vm["disk_gb"]
        for host in question["hosts"]:
            vms = [vm for vm in question["vms"] if vm["host"] == host["id"]]
            cores = sum((vm["cpu_percent"] or 0) * vm["vcpus"] for vm in vms)
            used_kib = KIB_PER_MIB * sum(vm["memory_used_mib"] or 0 for vm in vms)
            known, key = host["is_measured"], f"host:{host['id']}"
            self._values[key, "host_cpu_usage"] = cores / host["vcpus"] if known else None
            self._values[key, "host_ram_usage"] = used_kib if known else None

    def statistic_aggregation(
        self, resource: Any, _kind: str, meter: str, *_when: Any
    ) -> float | None:
        """The value of a meter, whatever the period and the way to sum it up."""
        return self._values[resource.uuid, meter]

    def __getattr__(self, name: str) -> Any:
        """What ``get_host_cpu_usage`` and its like give."""
        meter = name.removeprefix("get_")
        return lambda resource, *_when, **_more: self._values[resource.uuid, meter]


def act(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """What the strategies would do, each by itself."""
    return {"answers": [_act(question) for question in questions]}


def _act(question: dict[str, Any]) -> dict[str, Any]:
    strategy = _strategy(question)
    random.seed(0)
    try:
        solution = strategy.execute()
    except Exception as error:  # whatever it is, the strategy has crashed
        return {"crash": normalised(error, "watcher")}
    return {"acts": [_told(one) for one in solution.actions]}


def _strategy(question: dict[str, Any]) -> Any:
    kind = STRATEGIES[question["strategy"]]
    strategy = kind(config=Struct(datasources=None, check_optimize_metadata=False))
    strategy._compute_model = _model(question)
    strategy._datasource_backend = Measured(question)
    parameters = Struct()
    for name, schema in kind.get_schema()["properties"].items():
        if name in question["parameters"] or "default" in schema:
            value = question["parameters"].get(name, schema.get("default"))
            parameters[name] = copy.deepcopy(value)  # the strategy writes into them
    strategy.input_parameters = parameters
    return strategy


def _model(question: dict[str, Any]) -> model_root.ModelRoot:
    model = model_root.ModelRoot()
    nodes = {host["id"]: _node(host) for host in question["hosts"]}
    for node in nodes.values():
        model.add_node(node)
    for vm in question["vms"]:
        instance = _instance(vm)
        model.add_instance(instance)
        model.map_instance(instance, nodes[vm["host"]])
    return model


def _node(host: dict[str, Any]) -> element.ComputeNode:
    return element.ComputeNode(
        uuid=f"host:{host['id']}",
        hostname=host["id"],
        status=host["status"],
        state=host["state"],
        disabled_reason=None,
        vcpus=host["vcpus"],
        vcpu_reserved=0,
        vcpu_ratio=1.0,
        memory=host["memory_mib"],
        memory_mb_reserved=0,
        memory_ratio=1.0,
        disk=host["disk_gb"],
        disk_gb_reserved=0,
        disk_ratio=1.0,
    )


def _instance(vm: dict[str, Any]) -> element.Instance:
    return element.Instance(
        uuid=f"vm:{vm['id']}",
        name=vm["id"],
        state=vm["state"],
        vcpus=vm["vcpus"],
        memory=vm["memory_mib"],
        disk=vm["disk_gb"],
        metadata={},
        project_id=PROJECT,
        host=vm["host"],
        hypervisor_hostname=vm["host"],
        watcher_exclude=vm["is_excluded"],
        created=CREATED,
    )


def _told(action: dict[str, Any]) -> dict[str, Any]:
    given, kind = action["input_parameters"], action["action_type"]
    if kind == "change_nova_service_state":
        return {"do": SWITCHED[given["state"]], "host": given["resource_name"]}
    if kind == "migrate":
        source, target = given["source_node"], given.get("destination_node")
        return {"do": "migrate", "vm": given["resource_name"], "from": source, "to": target}
    return {"do": kind, "vm": given["resource_id"].removeprefix("vm:")}
