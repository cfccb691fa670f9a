"""Asks ProxLB. Run by ProxLB's own interpreter.

ProxLB is free software under the GPL: it runs in this process of its own, and nothing of ours
imports it or this module.

``act`` asks both engines what they would do: see ``proxlb_engines_worker``. ``plan`` asks the
greedy one, to compare with it.

Options of ``plan``: ``guest_cpu``, and any setting of ProxLB's section ``balancing`` by its own
name, e.g. ``method`` (``memory``, as ProxLB has it, or ``cpu``), ``mode``, ``balanciness``,
``balance_larger_guests_first``. What is not told has the value that ProxLB gives it.

``guest_cpu`` is ``fraction`` unless told: a real Proxmox reports a guest's CPU as a fraction of its
vCPUs, and ProxLB adds and subtracts that from a host's use in cores. With ``cores`` it is told the
cores that the guest uses, so that its sums come out right.
"""

import logging
from time import perf_counter
from typing import Any

from answering import residents, serve
from proxlb.models.groups import Groups
from proxlb.utils.config_parser import Config
from proxlb.utils.proxlb_data import ProxLbData
from proxlb_data_worker import BYTES_PER_MIB, decide, guest_metric, node_metric
from proxlb_engines_worker import act

DISK_BYTES = 10**15
"""Plenty on every host: our clusters say nothing about disks."""
PVE_VERSION = "9.0.0"
FIRST_ID = 100


def plan(cluster: dict[str, Any]) -> dict[str, Any]:
    """Build ProxLB's data, let it decide as its main loop does, and read where guests go."""
    data = _data(cluster)
    began = perf_counter()
    decide(data)
    seconds = perf_counter() - began
    moves = [
        {"vm": guest.name, "from": guest.node_current, "to": guest.node_target}
        for guest in data.guests.values()
        if guest.node_target != guest.node_current
    ]
    return {"moves": moves, "seconds": seconds}


def _data(cluster: dict[str, Any]) -> ProxLbData:
    options = dict(cluster.get("options") or {})
    in_cores = {"fraction": False, "cores": True}[options.pop("guest_cpu", "fraction")]
    homes = residents(cluster)
    hosts = {host["id"]: host for host in cluster["hosts"]}
    nodes = {name: _node(host, homes[name]) for name, host in hosts.items()}
    guests = {
        vm["id"]: _guest(FIRST_ID + n, vm, hosts[vm["host"]], in_cores=in_cores)
        for n, vm in enumerate(cluster["vms"])
    }
    return ProxLbData(
        meta=_meta(options),
        nodes=nodes,
        guests=guests,
        pools={},
        ha_rules={},
        groups=Groups.get_groups(guests, nodes),
    )


def _meta(options: dict[str, Any]) -> ProxLbData.Meta:
    unknown = sorted(set(options) - set(Config.Balancing.model_fields))
    if unknown:
        raise ValueError(f"ProxLB has no setting {', '.join(unknown)}")
    config = Config(
        proxmox_api={"hosts": ["nowhere"], "user": "nobody"},
        balancing={"enable": True, "balance_types": ["vm"]} | options,
    )
    return ProxLbData.Meta.from_config(config, cluster_non_pve9=False)


def _node(host: dict[str, Any], vms: list[dict[str, Any]]) -> ProxLbData.Node:
    cores_used = sum(vm["cpu_mhz"] for vm in vms) / host["mhz_per_core"]
    bytes_used = BYTES_PER_MIB * sum(vm["memory_used_mib"] for vm in vms)
    return ProxLbData.Node(
        name=host["id"],
        pve_version=PVE_VERSION,
        pressure_hot=False,
        maintenance=False,
        cpu=node_metric(host["cores"], cores_used),
        memory=node_metric(BYTES_PER_MIB * host["memory_mib"], bytes_used),
        disk=node_metric(DISK_BYTES, 0),
    )


def _guest(
    number: int, vm: dict[str, Any], host: dict[str, Any], *, in_cores: bool
) -> ProxLbData.Guest:
    cores = vm["cpu_mhz"] / host["mhz_per_core"]
    return ProxLbData.Guest(
        name=vm["id"],
        id=number,
        type=Config.GuestType.Vm,
        node_current=vm["host"],
        node_target=vm["host"],
        cpu=guest_metric(vm["vcpus"], cores if in_cores else cores / vm["vcpus"]),
        memory=guest_metric(
            BYTES_PER_MIB * vm["memory_mib"], BYTES_PER_MIB * vm["memory_used_mib"]
        ),
        disk=guest_metric(0, 0),
        processed=False,
        pressure_hot=False,
        tags=[],
        pools=[],
        ha_rules=[],
        affinity_groups=[],
        anti_affinity_groups=[],
        ignore=False,
        node_relationships=[],
        node_relationships_strict=True,
    )


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    serve("proxlb", plan=plan, act=act)
