"""Reads the options of ``equipoise kube run`` and ``serve``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from equipoise.adapters.kubernetes.cluster.kubelets import NodeRuntime
from equipoise.adapters.kubernetes.cluster.simulated_cluster import ClusterOptions
from equipoise.adapters.kubernetes.run.clocks import TimeoutOptions
from equipoise.adapters.kubernetes.run.driver import DeliveryOptions
from equipoise.adapters.kubernetes.run.external import BatsimPodRunner
from equipoise.adapters.kubernetes.run.scheduler import SchedulerCommand
from equipoise.adapters.kubernetes.run.session import KubernetesCase
from equipoise.adapters.kubernetes.workload.batch_jobs import WideJobs
from equipoise.adapters.kubernetes.workload.load import (
    NodeChoice,
    read_nodes_only,
    read_pod_workload,
)
from equipoise.adapters.kubernetes.workload.pod_workload import PodWorkload
from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.pods.spec import KubeletOptions

_MS_PER_S = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeRunOptions:
    """The options of ``kube run``, beside the case itself."""

    cases: tuple[tuple[str, KubernetesCase], ...]
    """A case for each configuration, by its name."""
    source: str
    out: Path | None
    export: str | None
    journal: str | None
    twice: bool


def run_options(given: Mapping[str, Any], runner: BatsimPodRunner | None = None) -> KubeRunOptions:
    """Return the cases that the options name; ``runner`` has nodes and pods of its own."""
    configs: list[Path | None] = list(given["config"] or [None])
    commands = list(given["scheduler"] or [])
    if len(configs) > 1 and len(commands) > 1:
        raise _problem("--config", "is repeated, and several schedulers are named", "name one")
    if len(configs) > 1 and (given["export"] or given["journal"] or given["record"]):
        what = "is repeated, and files for one run are named"
        raise _problem("--config", what, "name a folder with --out instead")
    workload = read_workload(given) if runner is None else runner.workload
    return KubeRunOptions(
        cases=tuple(
            (
                "run" if config is None else config.stem,
                _case(given, workload, commands, config, runner),
            )
            for config in configs
        ),
        source=str(given["workload"] or given["simulator"]),
        out=given["out"],
        export=given["export"],
        journal=given["journal"],
        twice=given["twice"],
    )


def read_workload(given: Mapping[str, Any]) -> PodWorkload:
    """Read the pods and the nodes."""
    if given["workload"] is None:
        raise _problem("--workload", "is missing", "name a file of pods")
    wide = given.get("wide", WideJobs.KEEP.value)
    if wide not in {choice.value for choice in WideJobs}:
        known = ", ".join(choice.value for choice in WideJobs)
        raise _problem("--wide", f"is {wide!r}", f"write one of {known}")
    return read_pod_workload(given["workload"], node_choice(given), wide=WideJobs(wide))


def read_nodes(given: Mapping[str, Any]) -> PodWorkload:
    """Return a workload without pods, on the nodes that the options name."""
    if given["platform"] is None and given["nodes"] is None:
        raise _problem("--nodes", "is missing", "name a platform, or a number of nodes")
    return read_nodes_only(node_choice(given))


def node_choice(given: Mapping[str, Any]) -> NodeChoice:
    """Return where the nodes come from."""
    return NodeChoice(
        file=given["platform"], count=given["nodes"], cpu=given["cpu"], memory=given["memory"]
    )


def cluster_options(given: Mapping[str, Any]) -> ClusterOptions:
    """Return how nodes treat pods."""
    kubelet = KubeletOptions(
        start_ms=round(given["start_delay"] * _MS_PER_S),
        pull_ms=round(given["pull"] * _MS_PER_S),
        rejects_over_allocation=not given.get("run_over_allocated", False),
    )
    return ClusterOptions(runtime=NodeRuntime(kubelet=kubelet))


def check_simulator(given: Mapping[str, Any]) -> None:
    """Refuse what contradicts nodes and pods of a simulation that runs once."""
    for key in ("workload", "platform", "nodes", "replay", "record", "twice"):
        if given[key]:
            raise _problem(f"--{key}", "is given beside --simulator", "leave one of them out")
    if len(given["config"] or ()) > 1:
        raise _problem("--config", "is repeated beside --simulator", "name one")
    if given["clock"] == "timeout":
        what = "is timeout, and --simulator decides alone when time passes"
        raise _problem("--clock", what, "write virtual or stock")


def _case(
    given: Mapping[str, Any],
    workload: PodWorkload,
    commands: list[str],
    config: Path | None,
    runner: BatsimPodRunner | None,
) -> KubernetesCase:
    schedulers = tuple(
        SchedulerCommand(command=command, config=config, log=given["scheduler_log"])
        for command in commands
    )
    record = given["record"]
    if runner is None and given["out"] is not None and (record or given["replay"]) is None:
        record = given["out"] / "decisions.jsonl"
    return KubernetesCase(
        workload=workload,
        schedulers=schedulers,
        clock=given["clock"],
        cluster=cluster_options(given),
        run=DeliveryOptions(
            one_by_one=not given["batch"],
            every_timer=given["every_timer"],
            idle_step_s=given["idle_step"],
            end_s=inf if given["until"] is None else given["until"],
        ),
        timeout=TimeoutOptions(
            timeout_s=given["timeout"],
            min_delay_s=given["min_delay"],
            max_step_s=given["max_step"],
            crash_timeout_s=given["crash_timeout"],
        ),
        record=record,
        replay=given["replay"],
        runner=runner,
    )


def _problem(key: str, what: str, cure: str) -> InvalidInput:
    return InvalidInput("kube", [InputProblem(key=key, what=what, cure=cure, code="contradiction")])
