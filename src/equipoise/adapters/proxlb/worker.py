"""Runs ProxLB and answers questions about it. ProxLB's own interpreter runs this script.

ProxLB is free software under the GPL. It runs in this separate process, and no module of
Equipoise imports it or this script.

``act`` returns what one of its two engines would do:

    {"engine": "greedy", "nodes": [...], "guests": [...], "pools": {}}
        -> {"acts": [{"do": "migrate", "vm": "v", "from": "g", "to": "h", "round": 0}]}

    nodes    id, memory_mib, is_maintained
    guests   id, host, memory_mib, tags [], pools []
    pools    the setting of that name in ProxLB's section ``balancing``

In ``act`` a guest uses all of its memory and almost no CPU. ``greedy`` is what the main loop does
without a solver. ``cpsat`` is what it does with an active solver: the greedy engine decides first,
then the solver, and only the plan of the solver counts. Without a plan, nothing is done.

``plan`` returns the moves of the greedy engine for a cluster with measured loads. Its options are
``guest_cpu`` and any setting of ProxLB's section ``balancing`` by its own name, for example
``method`` (``memory``, the default of ProxLB, or ``cpu``), ``mode``, ``balanciness`` and
``balance_larger_guests_first``. A setting that is absent has the default of ProxLB.

``guest_cpu`` is ``fraction`` by default. A real Proxmox reports the CPU of a guest as a fraction of
its vCPUs, and ProxLB adds that to and subtracts it from the use of a host in cores. With ``cores``
it receives the cores that the guest uses, so that its sums are right.
"""

import logging
from time import perf_counter
from typing import Any

from equipoise_worker import normalised, residents, serve
from ortools.sat.python import cp_model
from proxlb.models.calculations import Calculations
from proxlb.models.groups import Groups
from proxlb.models.pools import Pools
from proxlb.models.tags import Tags
from proxlb.utils.config_parser import Config
from proxlb.utils.proxlb_data import ProxLbData
from proxlb_solver import solver
from proxlb_solver.adapter import from_proxlb_data
from proxlb_solver.planner import plan_migrations

BYTES_PER_MIB = 1024 * 1024
PVE_VERSION = "9.0.0"
CORES = 64
"""The cores of a node in ``act``, where CPU plays no part."""
DISK_BYTES = 10**15
"""Enough on every node: our clusters do not describe disks."""
FIRST_ID = 100
TIME_LIMIT_S = 10.0
NO_PRESSURE = {
    "pressure_some_percent": 0.0,
    "pressure_full_percent": 0.0,
    "pressure_some_spikes_percent": 0.0,
    "pressure_full_spikes_percent": 0.0,
    "pressure_hot": False,
}
NO_RULES = {
    "tags": [],
    "pools": [],
    "affinity_groups": [],
    "anti_affinity_groups": [],
    "ignore": False,
    "node_relationships": [],
    "node_relationships_strict": True,
}


class OneThread(cp_model.CpSolver):
    """The solver with one thread.

    With several threads, which of many equally good answers it finds depends on their timing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.parameters.num_workers = 1
        self.parameters.random_seed = 0


solver.cp_model.CpSolver = OneThread


# The question "act"


def act(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the actions of the engines; each question has its own answer."""
    return {"answers": [_act(question) for question in questions]}


def _act(question: dict[str, Any]) -> dict[str, Any]:
    data = _described(question)
    try:
        _decide(data)
        acts = _greedy(data) if question["engine"] == "greedy" else _cpsat(data)
    except (Exception, SystemExit) as error:  # an engine that exits has crashed as well
        # The solver is a package of its own; the place of the crash is named within the one that
        # failed.
        inside = "proxlb_solver" if "proxlb_solver" in str(_frames(error)) else "proxlb"
        return {"crash": normalised(error, inside)}
    return {"acts": acts}


def _frames(error: BaseException) -> list[str]:
    frames, at = [], error.__traceback__
    while at is not None:
        frames.append(at.tb_frame.f_code.co_filename)
        at = at.tb_next
    return frames


def _greedy(data: ProxLbData) -> list[dict[str, Any]]:
    return [{"do": "migrate", **move} for move in _moves(data)]


def _cpsat(data: ProxLbData) -> list[dict[str, Any]]:
    cluster = from_proxlb_data(data)
    solution = solver.solve(cluster, time_limit_s=TIME_LIMIT_S)
    if not solution.feasible:
        return []
    plan_made = plan_migrations(cluster, solution)
    return [
        {"do": "migrate", "vm": move.vm, "from": move.source, "to": move.target, "round": round_}
        for round_, step in enumerate(plan_made.steps)
        for move in step.migrations
    ]


def _described(question: dict[str, Any]) -> ProxLbData:
    config = _config({"pools": question["pools"] or None})
    used_mib: dict[str, int] = {}
    for guest in question["guests"]:
        used_mib[guest["host"]] = used_mib.get(guest["host"], 0) + guest["memory_mib"]
    nodes = {
        node["id"]: _node(
            node["id"],
            is_maintained=node["is_maintained"],
            cpu=_node_metric(CORES, 0),
            memory=_node_metric(
                BYTES_PER_MIB * node["memory_mib"], BYTES_PER_MIB * used_mib.get(node["id"], 0)
            ),
        )
        for node in question["nodes"]
    }
    guests = {
        guest["id"]: _tagged_guest(FIRST_ID + number, guest, nodes, config)
        for number, guest in enumerate(question["guests"])
    }
    return _data(config, nodes, guests)


def _tagged_guest(
    number: int, guest: dict[str, Any], nodes: dict[str, ProxLbData.Node], config: Config
) -> ProxLbData.Guest:
    tags, pools = guest["tags"], guest["pools"]
    size = BYTES_PER_MIB * guest["memory_mib"]
    return _guest(
        number,
        guest,
        cpu=_guest_metric(1, 0),
        memory=_guest_metric(size, size),
        rules={
            "tags": tags,
            "pools": pools,
            "affinity_groups": Tags.get_affinity_groups(tags, pools, [], config),
            "anti_affinity_groups": Tags.get_anti_affinity_groups(tags, pools, [], config),
            "ignore": Tags.get_ignore(tags, guest["id"], config),
            "node_relationships": Tags.get_node_relationships(tags, nodes, pools, [], config),
            "node_relationships_strict": Pools.get_pool_node_affinity_strictness(config, pools),
        },
    )


# The question "plan"


def plan(cluster: dict[str, Any]) -> dict[str, Any]:
    """Build ProxLB's data, let it decide as its main loop does, and return the moves."""
    data = _measured(cluster)
    began = perf_counter()
    _decide(data)
    seconds = perf_counter() - began
    return {"moves": _moves(data), "seconds": seconds}


def _measured(cluster: dict[str, Any]) -> ProxLbData:
    options = dict(cluster.get("options") or {})
    in_cores = {"fraction": False, "cores": True}[options.pop("guest_cpu", "fraction")]
    unknown = sorted(set(options) - set(Config.Balancing.model_fields))
    if unknown:
        raise ValueError(f"ProxLB has no setting {', '.join(unknown)}")
    vms_of = residents(cluster)
    hosts = {host["id"]: host for host in cluster["hosts"]}
    nodes = {name: _loaded_node(host, vms_of[name]) for name, host in hosts.items()}
    guests = {
        vm["id"]: _loaded_guest(FIRST_ID + number, vm, hosts[vm["host"]], in_cores=in_cores)
        for number, vm in enumerate(cluster["vms"])
    }
    return _data(_config(options), nodes, guests)


def _loaded_node(host: dict[str, Any], vms: list[dict[str, Any]]) -> ProxLbData.Node:
    cores_used = sum(vm["cpu_mhz"] for vm in vms) / host["mhz_per_core"]
    bytes_used = BYTES_PER_MIB * sum(vm["memory_used_mib"] for vm in vms)
    return _node(
        host["id"],
        is_maintained=False,
        cpu=_node_metric(host["cores"], cores_used),
        memory=_node_metric(BYTES_PER_MIB * host["memory_mib"], bytes_used),
    )


def _loaded_guest(
    number: int, vm: dict[str, Any], host: dict[str, Any], *, in_cores: bool
) -> ProxLbData.Guest:
    cores = vm["cpu_mhz"] / host["mhz_per_core"]
    return _guest(
        number,
        vm,
        cpu=_guest_metric(vm["vcpus"], cores if in_cores else cores / vm["vcpus"]),
        memory=_guest_metric(
            BYTES_PER_MIB * vm["memory_mib"], BYTES_PER_MIB * vm["memory_used_mib"]
        ),
        rules=NO_RULES,
    )


# ProxLB's data and its main loop


def _decide(data: ProxLbData) -> None:
    """Let the greedy engine decide, as the main loop does."""
    Calculations.set_node_assignments(data)
    Calculations.set_node_hot(data)
    Calculations.set_guest_hot(data)
    if Calculations.get_most_free_node(data) is None:
        return
    Calculations.validate_affinity_map(data)
    Calculations.relocate_guests_on_maintenance_nodes(data)
    Calculations.get_balanciness(data)
    Calculations.relocate_guests(data)


def _moves(data: ProxLbData) -> list[dict[str, Any]]:
    return [
        {"vm": guest.name, "from": guest.node_current, "to": guest.node_target}
        for guest in data.guests.values()
        if guest.node_target != guest.node_current
    ]


def _config(balancing: dict[str, Any]) -> Config:
    return Config(
        proxmox_api={"hosts": ["nowhere"], "user": "trial"},
        balancing={"enable": True, "balance_types": ["vm"], **balancing},
    )


def _data(
    config: Config, nodes: dict[str, ProxLbData.Node], guests: dict[str, ProxLbData.Guest]
) -> ProxLbData:
    return ProxLbData(
        meta=ProxLbData.Meta.from_config(config, cluster_non_pve9=False),
        nodes=nodes,
        guests=guests,
        pools={},
        ha_rules={},
        groups=Groups.get_groups(guests, nodes),
    )


def _node(
    name: str,
    *,
    is_maintained: bool,
    cpu: ProxLbData.Node.Metric,
    memory: ProxLbData.Node.Metric,
) -> ProxLbData.Node:
    return ProxLbData.Node(
        name=name,
        pve_version=PVE_VERSION,
        pressure_hot=False,
        maintenance=is_maintained,
        cpu=cpu,
        memory=memory,
        disk=_node_metric(DISK_BYTES, 0),
    )


def _guest(
    number: int,
    vm: dict[str, Any],
    *,
    cpu: ProxLbData.Guest.Metric,
    memory: ProxLbData.Guest.Metric,
    rules: dict[str, Any],
) -> ProxLbData.Guest:
    return ProxLbData.Guest(
        name=vm["id"],
        id=number,
        type=Config.GuestType.Vm,
        node_current=vm["host"],
        node_target=vm["host"],
        cpu=cpu,
        memory=memory,
        disk=_guest_metric(0, 0),
        processed=False,
        pressure_hot=False,
        ha_rules=[],
        **{key: list(value) if isinstance(value, list) else value for key, value in rules.items()},
    )


def _node_metric(total: int, used: float) -> ProxLbData.Node.Metric:
    """One resource of a node."""
    return ProxLbData.Node.Metric(
        total=total,
        assigned=0,  # ProxLB computes it from the guests
        used=used,
        free=total - used,
        assigned_percent=0,
        free_percent=100 * (total - used) / total,
        used_percent=100 * used / total,
        **NO_PRESSURE,
    )


def _guest_metric(total: int, used: float) -> ProxLbData.Guest.Metric:
    """One resource of a guest."""
    return ProxLbData.Guest.Metric(total=total, used=used, **NO_PRESSURE)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    serve("proxlb", plan=plan, act=act)
