"""Asks both engines of ProxLB what they would do. Run by ``proxlb_worker``.

ProxLB is free software under the GPL: it runs in this process of its own, and nothing of ours
imports it or this module.

    {"engine": "greedy", "nodes": [...], "guests": [...], "pools": {}}
        -> {"acts": [{"do": "migrate", "vm": "v", "from": "g", "to": "h", "round": 0}]}

    nodes    id, memory_mib, is_maintained
    guests   id, host, memory_mib, tags [], pools []
    pools    the setting of that name in ProxLB's section ``balancing``

A guest uses all of its memory and no CPU to speak of. ``greedy`` is what the main loop does without
a solver. ``cpsat`` is what it does with one that is active: the greedy engine decides first, then
the solver, of which only the plan counts; if it finds none, nothing is done.

The solver searches with one thread: with several, which of many best answers it finds is chance.
"""

from typing import Any

from answering import normalised
from ortools.sat.python import cp_model
from proxlb.models.groups import Groups
from proxlb.models.pools import Pools
from proxlb.models.tags import Tags
from proxlb.utils.config_parser import Config
from proxlb.utils.proxlb_data import ProxLbData
from proxlb_data_worker import BYTES_PER_MIB, decide, guest_metric, node_metric
from proxlb_solver import solver
from proxlb_solver.adapter import from_proxlb_data
from proxlb_solver.planner import plan_migrations

PVE_VERSION = "9.0.0"
CORES = 64
DISK_BYTES = 10**15
"""Plenty on every node: it is about memory."""
FIRST_ID = 100
TIME_LIMIT_S = 10.0


class OneThread(cp_model.CpSolver):
    """The solver, which finds the same each time."""

    def __init__(self) -> None:
        super().__init__()
        self.parameters.num_workers = 1
        self.parameters.random_seed = 0


solver.cp_model.CpSolver = OneThread


def act(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """What the engines would do, each by itself."""
    return {"answers": [_act(question) for question in questions]}


def _act(question: dict[str, Any]) -> dict[str, Any]:
    data = _data(question)
    try:
        decide(data)
        acts = _greedy(data) if question["engine"] == "greedy" else _cpsat(data)
    except (Exception, SystemExit) as error:  # one that leaves has crashed as well
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
    return [
        {"do": "migrate", "vm": one.name, "from": one.node_current, "to": one.node_target}
        for one in data.guests.values()
        if one.node_target != one.node_current
    ]


def _cpsat(data: ProxLbData) -> list[dict[str, Any]]:
    cluster = from_proxlb_data(data)
    found = solver.solve(cluster, time_limit_s=TIME_LIMIT_S)
    if not found.feasible:
        return []
    plan = plan_migrations(cluster, found)
    return [
        {"do": "migrate", "vm": one.vm, "from": one.source, "to": one.target, "round": place}
        for place, step in enumerate(plan.steps)
        for one in step.migrations
    ]


def _data(question: dict[str, Any]) -> ProxLbData:
    config = Config(
        proxmox_api={"hosts": ["nowhere"], "user": "nobody"},
        balancing={"enable": True, "balance_types": ["vm"], "pools": question["pools"] or None},
    )
    used: dict[str, int] = {}
    for guest in question["guests"]:
        used[guest["host"]] = used.get(guest["host"], 0) + guest["memory_mib"]
    nodes = {node["id"]: _node(node, used.get(node["id"], 0)) for node in question["nodes"]}
    guests = {
        guest["id"]: _guest(FIRST_ID + number, guest, nodes, config)
        for number, guest in enumerate(question["guests"])
    }
    return ProxLbData(
        meta=ProxLbData.Meta.from_config(config, cluster_non_pve9=False),
        nodes=nodes,
        guests=guests,
        pools={},
        ha_rules={},
        groups=Groups.get_groups(guests, nodes),
    )


def _node(node: dict[str, Any], used_mib: int) -> ProxLbData.Node:
    return ProxLbData.Node(
        name=node["id"],
        pve_version=PVE_VERSION,
        pressure_hot=False,
        maintenance=node["is_maintained"],
        cpu=node_metric(CORES, 0),
        memory=node_metric(BYTES_PER_MIB * node["memory_mib"], BYTES_PER_MIB * used_mib),
        disk=node_metric(DISK_BYTES, 0),
    )


def _guest(
    number: int, guest: dict[str, Any], nodes: dict[str, ProxLbData.Node], config: Config
) -> ProxLbData.Guest:
    tags, pools = guest["tags"], guest["pools"]
    size = BYTES_PER_MIB * guest["memory_mib"]
    return ProxLbData.Guest(
        name=guest["id"],
        id=number,
        type=Config.GuestType.Vm,
        node_current=guest["host"],
        node_target=guest["host"],
        cpu=guest_metric(1, 0),
        memory=guest_metric(size, size),
        disk=guest_metric(0, 0),
        processed=False,
        pressure_hot=False,
        tags=tags,
        pools=pools,
        ha_rules=[],
        affinity_groups=Tags.get_affinity_groups(tags, pools, [], config),
        anti_affinity_groups=Tags.get_anti_affinity_groups(tags, pools, [], config),
        ignore=Tags.get_ignore(tags, guest["id"], config),
        node_relationships=Tags.get_node_relationships(tags, nodes, pools, [], config),
        node_relationships_strict=Pools.get_pool_node_affinity_strictness(config, pools),
    )
