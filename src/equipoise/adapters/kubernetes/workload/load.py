"""Reads a workload of pods by the kind of its file, with the nodes that it runs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.adapters.batsim.platform_xml import HOSTS_MAX, read_platform
from equipoise.adapters.batsim.swf import SwfChoices, is_swf, read_swf
from equipoise.adapters.batsim.workload_json import read_workload
from equipoise.adapters.kubernetes.workload.batch_jobs import WideJobs, batch_pods
from equipoise.adapters.kubernetes.workload.manifests import is_manifest, read_manifests
from equipoise.adapters.kubernetes.workload.openb_pods import openb_nodes, openb_pods
from equipoise.adapters.kubernetes.workload.pod_workload import (
    UNKNOWN_MEMORY_BYTES,
    Arrival,
    Object,
    PodWorkload,
    make_workload,
    platform_nodes,
    uniform_nodes,
)
from equipoise.adapters.kubernetes.workload.study_workloads import study_workloads
from equipoise.adapters.openb import is_openb, read_openb_nodes, read_openb_pods
from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.platform import Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """Where the nodes come from: a file, or so many equal ones; else the workload has them."""

    file: Path | None = None
    """A SimGrid platform (``.xml``), a list of nodes of the openb trace, or manifests."""
    count: int | None = None
    cpu: str = "1"
    memory: str | int = UNKNOWN_MEMORY_BYTES


def read_pod_workload(
    path: Path,
    nodes: NodeChoice | None = None,
    *,
    wide: WideJobs = WideJobs.KEEP,
    swf: SwfChoices | None = None,
) -> PodWorkload:
    """Read a workload: Batsim JSON, SWF, openb CSV, or manifests.

    A name of ``study_workloads`` that is no file gives that workload, on nodes of its own unless
    others are chosen.

    :raises InvalidInput: with the file and the place that is wrong.
    """
    chosen, platform = _nodes(nodes or NodeChoice())
    if not path.exists():
        return _generated(str(path), chosen, platform)
    arrivals: list[Arrival]
    if is_swf(path):
        _require(chosen, path)
        arrivals = batch_pods(read_swf(path, choices=swf), chosen, str(path), wide=wide)
    elif is_openb(path):
        _require(chosen, path)
        arrivals = openb_pods(read_openb_pods(path))
    elif _is_batsim(path):
        _require(chosen, path)
        found = read_workload(path)
        arrivals = batch_pods(found.jobs, chosen, str(path), profiles=found.profiles.raw, wide=wide)
    elif is_manifest(path):
        own, arrivals = read_manifests(path)
        if own and chosen:
            what = "has nodes, and the options name others"
            raise _problem(str(path), what, "leave one of them out", "option-conflict")
        chosen = chosen or own
        _require(chosen, path)
    else:
        cure = "name a file of the kind .json, .swf, .csv or .yaml"
        raise _problem(str(path), "is of an unknown kind", cure)
    _check_names(chosen, str(path))
    _check_bindings(chosen, arrivals, str(path))
    return make_workload(path.name, chosen, arrivals, platform)


def read_nodes_only(nodes: NodeChoice) -> PodWorkload:
    """Return a workload without pods on the nodes that are chosen."""
    chosen, platform = _nodes(nodes)
    return make_workload("nodes", chosen, [], platform)


def _generated(name: str, nodes: list[Object], platform: Platform | None) -> PodWorkload:
    by_name = {workload.name: workload for workload in study_workloads()}
    if name not in by_name:
        raise _problem(name, "is no file", f"name a file, a folder, or {', '.join(by_name)}")
    found = by_name[name]
    return make_workload(name, nodes or found.nodes, found.arrivals, platform)


def _problem(source: str, what: str, cure: str, code: str = "invalid-value") -> InvalidInput:
    return InvalidInput(source, [InputProblem(key="", what=what, cure=cure, code=code)])


def _require(nodes: Sequence[Object], path: Path) -> None:
    if not nodes:
        cure = "name a platform, a file with nodes, or --nodes N"
        raise _problem(str(path), "has no nodes to run on", cure)


def _check_names(nodes: Sequence[Object], source: str) -> None:
    names: set[str] = set()
    for node in nodes:
        name = node["metadata"]["name"]
        if name in names:
            raise _problem(source, f"has two nodes with the name {name}", "rename one of them")
        names.add(name)


def _check_bindings(nodes: Sequence[Object], arrivals: Sequence[Arrival], source: str) -> None:
    """Refuse pods that are bound to a node which is not there: they would never start or wait."""
    names = {node["metadata"]["name"] for node in nodes}
    for _, body in arrivals:
        node = (body.get("spec") or {}).get("nodeName") if body["kind"] == "Pod" else None
        if node and node not in names:
            name = body["metadata"].get("name") or body["metadata"].get("generateName")
            what = f"has the pod {name} on the node {node}, which is not there"
            raise _problem(source, what, "add the node, or leave nodeName out", "unknown-name")


def _is_batsim(path: Path) -> bool:
    """Whether a JSON file is a workload of Batsim: it has jobs, and no kind."""
    if path.is_dir() or not path.name.lower().endswith(".json"):
        return False
    head = path.read_bytes()[:4096]
    return b'"kind"' not in head or b'"jobs"' in head


def _nodes(choice: NodeChoice) -> tuple[list[Object], Platform | None]:
    """Return the nodes that the options name, and their platform if there is a file of one."""
    if choice.count is not None:
        if choice.file is not None:
            what = "gives a number of nodes beside a file of nodes"
            raise _problem("--nodes", what, "leave one of them out", "option-conflict")
        if not 1 <= choice.count <= HOSTS_MAX:
            raise _problem("--nodes", f"is {choice.count:,}", f"write 1 to {HOSTS_MAX:,}")
        try:
            return uniform_nodes(choice.count, choice.cpu, choice.memory), None
        except ValueError as error:
            raise _problem("--nodes", str(error), "write amounts such as 500m or 4Gi") from None
    if choice.file is None:
        return [], None
    path = choice.file
    if is_openb(path):
        return openb_nodes(read_openb_nodes(path)), None
    if is_manifest(path):
        nodes, others = read_manifests(path)
        if others or not nodes:
            raise _problem(str(path), "is no file of nodes", "write objects of the kind Node")
        return nodes, None
    try:
        return platform_nodes(read_platform(path))
    except ValueError as error:
        what = f"has a host with a wrong property: {error}"
        raise _problem(str(path), what, "write amounts such as 6 or 4Gi") from None
