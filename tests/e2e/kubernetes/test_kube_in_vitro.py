"""The tool that plays the nodes of a real control plane, against an API and a scheduler of ours."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from threading import Thread
from types import ModuleType

import pytest

from equipoise.adapters.kubernetes.client.connection import address_of
from equipoise.adapters.kubernetes.client.own_scheduler import OwnScheduler, OwnSchedulerOptions
from equipoise.adapters.kubernetes.run.scheduler import kubeconfig_content
from equipoise.adapters.kubernetes.workload.load import NodeChoice, read_pod_workload
from equipoise.adapters.kubernetes.workload.pod_workload import PodWorkload
from equipoise.errors import WorldError
from kubernetes_server import ServedApi

pytest.importorskip("uvicorn", reason="equipoise[kube] is missing")
ROOT = Path(__file__).parents[3]
PODS = 6
SECONDS = 30


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    """Return tools/kube_in_vitro.py, which is no part of the package."""
    path = ROOT / "tools" / "kube_in_vitro.py"
    spec = importlib.util.spec_from_file_location("kube_in_vitro", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look for their module by its name.
    sys.modules["kube_in_vitro"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["kube_in_vitro"]


def short_burst(tool: ModuleType, folder: Path) -> PodWorkload:
    jobs = [{"id": str(n), "subtime": 0, "res": 1, "profile": "wait"} for n in range(PODS)]
    profiles = {"wait": {"type": "delay", "delay": SECONDS}}
    path = folder / "jobs.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}))
    workload = read_pod_workload(path, NodeChoice(count=2))
    short: PodWorkload = tool.shortened(workload, 100)
    return short


def kubeconfig_of(api: ServedApi, folder: Path) -> Path:
    path = folder / "kubeconfig"
    path.write_text(json.dumps(kubeconfig_content(api.url)))
    return path


def schedule_to_the_end(scheduler: OwnScheduler) -> None:
    with closing(scheduler), pytest.raises(WorldError) as ended:
        scheduler.run()
    assert ended.value.code == "api-unreachable"


def test_played_nodes_run_each_pod_once_and_never_two_at_a_time(
    tool: ModuleType, tmp_path: Path
) -> None:
    workload = short_burst(tool, tmp_path)
    with ServedApi() as api:
        played = tool.PlayedNodes(kubeconfig_of(api, tmp_path), workload)
        played.add_nodes()
        scheduler = OwnScheduler(address_of(api.url), OwnSchedulerOptions(policy="first-fit"))
        thread = Thread(target=schedule_to_the_end, args=(scheduler,))
        thread.start()
        played.wait_for_scheduler()
        figures = played.play()
        with played.connection() as client:
            pods = client.list_all(tool.PODS)[0]
    thread.join(60)
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"] * PODS
    for node in workload.nodes:
        name = node["metadata"]["name"]
        here = [pod["metadata"]["name"] for pod in pods if pod["spec"]["nodeName"] == name]
        times = sorted((played.started_s[pod], played.ended_s[pod]) for pod in here)
        assert all(ended - started >= 0.3 for started, ended in times)
        assert all(first[1] <= second[0] for first, second in pairwise(times))
    # Two nodes and six pods of 0.3 s.
    assert figures.makespan_s >= 0.9
    assert figures.mean_waiting_s >= 0.3


def test_a_trace_is_shortened_in_arrivals_and_durations(tool: ModuleType, tmp_path: Path) -> None:
    workload = short_burst(tool, tmp_path)
    again = tool.shortened(workload, 3)
    for (_, body), (_, short) in zip(workload.arrivals, again.arrivals, strict=True):
        assert body["metadata"]["annotations"] == {"equipoise.dev/duration": "300ms"}
        assert short["metadata"]["annotations"] == {"equipoise.dev/duration": "100ms"}


def test_the_distance_is_that_of_the_thesis(tool: ModuleType) -> None:
    first, second = tool.Figures(100.0, 8.0), tool.Figures(103.0, 4.0)
    assert first.distance_s(second) == 5.0
    rows = tool.row("burst", "virtual", [first], [second])
    assert rows["accuracy"] == pytest.approx(0.2)
    assert tool.row("burst", "virtual", [first], [first])["accuracy"] is None
