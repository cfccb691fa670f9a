"""Workloads of pods: what becomes of a job of each kind of file, and what is wrong with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.adapters.kubernetes.annotations import DURATION, EXIT_CODE, GPU_MILLI, JOB, WORK
from equipoise.adapters.kubernetes.cluster.pod_specs import read_requests
from equipoise.adapters.kubernetes.workload.batch_jobs import WideJobs
from equipoise.adapters.kubernetes.workload.load import NodeChoice, read_pod_workload
from equipoise.adapters.kubernetes.workload.pod_workload import PodWorkload, object_name
from equipoise.errors import InvalidInput

PLATFORM = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Full">
<host id="Node_A" speed="2Gf" core="2">
<prop id="core" value="6"/><prop id="memory" value="4Gi"/></host>
<host id="node-b.site" speed="1Gf" core="4"/>
<host id="master_host" speed="1Gf"/>
</zone></platform>
"""
NODES = NodeChoice(count=2, cpu="4", memory="8Gi")


def batsim(folder: Path, jobs: list[dict[str, Any]], profiles: dict[str, Any]) -> Path:
    path = folder / "w.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    return path


def job(name: str, profile: str, res: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": name, "subtime": 0, "res": res, "profile": profile, **more}


def only_pod(workload: PodWorkload) -> dict[str, Any]:
    ((_, body),) = workload.arrivals
    return body


def test_a_platform_gives_a_node_for_each_host_that_computes(tmp_path: Path) -> None:
    platform = tmp_path / "p.xml"
    platform.write_text(PLATFORM)
    path = batsim(tmp_path, [job("1", "d")], {"d": {"type": "delay", "delay": 5}})
    workload = read_pod_workload(path, NodeChoice(file=platform))
    found = [(node["metadata"]["name"], node["status"]["capacity"]) for node in workload.nodes]
    assert found == [
        ("node-a", {"cpu": "6", "memory": "4Gi", "pods": "110"}),
        ("node-b.site", {"cpu": "4", "memory": "1Ti", "pods": "110"}),
    ]
    assert [host.name for host in workload.platform.hosts] == ["node-a", "node-b.site"]


def test_a_delay_job_is_a_pod_with_its_cores_its_time_and_its_walltime(tmp_path: Path) -> None:
    jobs = [
        job("B", "d", subtime=2.5, walltime=100.2),
        job("A", "k", res=3),
        job("c!", "f", res=3, subtime=9),
    ]
    profiles = {
        "d": {"type": "delay", "delay": 20.25},
        "k": {
            "type": "delay",
            "delay": 61596,
            "cpu": 0.188,
            "memory": "1Gi",
            "scheduler": "default",
        },
        "f": {"type": "delay", "delay": 1, "ret": 3, "scheduler": "mine"},
    }
    workload = read_pod_workload(batsim(tmp_path, jobs, profiles), NODES)
    found = []
    for at_ms, body in workload.arrivals:
        spec, annotations = body["spec"], body["metadata"]["annotations"]
        found.append(
            (at_ms, body["metadata"]["name"], read_requests(spec), annotations[DURATION],
             spec.get("activeDeadlineSeconds"), spec["schedulerName"], annotations.get(EXIT_CODE))
        )  # fmt: skip
    assert found == [
        (0, "job-a", {"cpu": 188, "memory": 2**30}, "61596", None, "default-scheduler", None),
        (2500, "job-b", {"cpu": 1000}, "20.25", 101, "default-scheduler", None),
        (9000, "job-c", {"cpu": 3000}, "1", None, "mine", "3"),
    ]
    assert workload.arrivals[0][1]["metadata"]["annotations"][JOB] == "w0!A"


@pytest.mark.parametrize(
    ("profile", "seconds", "flops"),
    [
        ({"type": "parallel_homogeneous", "cpu": 5e9, "com": 7}, "0", "5000000000"),
        ({"type": "parallel_homogeneous_total", "cpu": 8e9, "com": 0}, "0", "4000000000"),
        ({"type": "parallel", "cpu": [1e9, 3e9], "com": [0, 1, 1, 0]}, "0", "3000000000"),
        ({"type": "composed", "repeat": 2, "seq": ["d", "p", "d"]}, "40", "2000000000"),
        ({"type": "composed", "repeat": 9, "seq": ["d", "bad", "p"]}, "15", None),
    ],
)
def test_operations_become_work_that_the_speed_of_the_node_divides(
    tmp_path: Path, profile: dict[str, Any], seconds: str, flops: str | None
) -> None:
    profiles = {
        "x": profile,
        "d": {"type": "delay", "delay": 10},
        "bad": {"type": "delay", "delay": 5, "ret": 1},
        "p": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
    }
    workload = read_pod_workload(batsim(tmp_path, [job("1", "x", res=2)], profiles), NODES)
    annotations = only_pod(workload)["metadata"]["annotations"]
    assert (annotations[DURATION], annotations.get(WORK)) == (seconds, flops)


@pytest.mark.parametrize(
    ("wide", "kinds"),
    [
        (WideJobs.KEEP, [("Pod", 8000), ("Pod", 2000)]),
        (WideJobs.SPLIT, [("Job", 1000), ("Pod", 2000)]),
        (WideJobs.SCALE, [("Pod", 4000), ("Pod", 1000)]),
    ],
)
def test_a_job_wider_than_a_node_stays_is_split_or_shrinks(
    tmp_path: Path, wide: WideJobs, kinds: list[tuple[str, int]]
) -> None:
    path = batsim(
        tmp_path, [job("1", "d", res=8), job("2", "d", res=2)], {"d": {"type": "delay", "delay": 5}}
    )
    found = []
    for _, body in read_pod_workload(path, NODES, wide=wide).arrivals:
        spec = body["spec"]
        if body["kind"] == "Job":
            assert (spec["parallelism"], spec["completions"]) == (8, 8)
            spec = spec["template"]["spec"]
        found.append((body["kind"], read_requests(spec)["cpu"]))
    assert found == kinds


def test_names_that_differ_only_in_case_stay_apart(tmp_path: Path) -> None:
    jobs = [job("A", "d"), job("a", "d"), job("_a_", "d")]
    workload = read_pod_workload(
        batsim(tmp_path, jobs, {"d": {"type": "delay", "delay": 5}}), NODES
    )
    names = [body["metadata"]["name"] for _, body in workload.arrivals]
    assert sorted(names) == ["job-a", "job-a-2", "job-a-3"]


@pytest.mark.parametrize(
    ("text", "name"), [("A1", "a1"), ("x_.y", "x.y"), ("..", "x"), ("-a-", "a"), ("a--b", "a--b")]
)
def test_a_name_is_one_that_kubernetes_allows(text: str, name: str) -> None:
    assert object_name(text) == name


def test_an_swf_record_is_a_workload(tmp_path: Path) -> None:
    path = tmp_path / "a.swf"
    path.write_text("7 10 5 100 3 -1 -1 16 200 -1 1 1 1 1 1 1 -1 -1\n")
    workload = read_pod_workload(path, NODES)
    body = only_pod(workload)
    assert (workload.arrivals[-1][0], body["metadata"]["name"]) == (10_000, "job-7")
    assert (body["spec"]["activeDeadlineSeconds"], read_requests(body["spec"])) == (
        200, {"cpu": 3000},
    )  # fmt: skip


def test_the_openb_trace_is_a_workload(tmp_path: Path) -> None:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
        "creation_time,deletion_time,scheduled_time\n"
        "p,1500,16,2,460,T4|P100,LS,Failed,3,10,4\n"
    )
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nN,32000,64,2,T4\n")
    workload = read_pod_workload(pods, NodeChoice(file=nodes))
    body, node = only_pod(workload), workload.nodes[0]
    assert read_requests(body["spec"]) == {"cpu": 1500, "memory": 2**24, GPU_MILLI: 920}
    annotations = body["metadata"]["annotations"]
    assert (annotations[DURATION], annotations[EXIT_CODE]) == ("6", "1")
    assert node["status"]["capacity"][GPU_MILLI] == "2000"
    terms = body["spec"]["affinity"]["nodeAffinity"]
    (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert node["metadata"]["labels"][term["matchExpressions"][0]["key"]] == "T4"


MANIFESTS = """# comment
---
apiVersion: v1
kind: Node
metadata: {name: n0}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 10}}
---
---
apiVersion: v1
kind: Pod
metadata:
  name: late
  namespace: team
  annotations: {equipoise.dev/arrival: 1m30s, equipoise.dev/usage: "5s:500m:1Gi,1s:2:1Gi"}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: 0.5}}}]
--- # another
apiVersion: batch/v1
kind: Job
metadata: {name: early, annotations: {equipoise.dev/arrival: "2.5"}}
spec:
  template:
    metadata: {annotations: {equipoise.dev/duration: "3"}}
    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
"""


def test_manifests_arrive_at_their_times_with_the_namespaces_that_they_need(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(MANIFESTS)
    workload = read_pod_workload(path)
    found = [(at_ms, body["kind"], body["metadata"]["name"]) for at_ms, body in workload.arrivals]
    assert found == [(0, "Namespace", "team"), (2500, "Job", "early"), (90_000, "Pod", "late")]
    assert [node["metadata"]["name"] for node in workload.nodes] == ["n0"]


def test_a_folder_of_yaml_and_json_is_a_workload(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(MANIFESTS)
    inner = tmp_path / "more"
    inner.mkdir()
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "j"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }  # fmt: skip
    items = {"apiVersion": "v1", "kind": "List", "items": [pod]}
    (inner / "c.json").write_text(json.dumps(items))
    workload = read_pod_workload(tmp_path)
    assert [body["metadata"]["name"] for _, body in workload.arrivals] == [
        "team", "j", "early", "late",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "key"),
    [
        ("cpu: 0.5", "cpu: 0.5x", 16, "spec.containers[0].resources.requests.cpu"),
        ("cpu: 0.5", "cpu: -1", 16, "spec.containers[0].resources.requests.cpu"),
        ("1m30s", "soon", 14, "metadata.annotations.equipoise.dev/arrival"),
        ("5s:500m:1Gi", "5s:500m", 14, "metadata.annotations.equipoise.dev/usage"),
        ("memory: 8Gi", "memory: 8GB", 6, "status.capacity.memory"),
        ('equipoise.dev/duration: "3"', "equipoise.dev/duration: 3", 23, None),
        ("kind: Job", "kind: Jobs", 19, "kind"),
        ("batch/v1", "v1", 18, "apiVersion"),
        ("name: late", "title: late", 11, "metadata"),
        ("kind: Pod", "kind: Pod\nkind: Pod", 10, "kind"),
        ("  containers: [", "  boxes: [", 15, "spec"),
        ("  containers: [", "  hostname: 7\n  containers: [", 16, "spec.hostname"),
        ("image: i, resources", "imago: i, resources", 16, "spec.containers[0].imago"),
        ("name: late", "name: Late Pod", 12, "metadata.name"),
        ("restartPolicy: Never", "restartPolicy: Always", 24, "spec.template.spec.restartPolicy"),
        (
            "spec:\n  template",
            "spec:\n  parallelism: 2000000000\n  template",
            22,
            "spec.parallelism",
        ),
        ("name: early", "name: early, labels: {a b: c}", 20, "metadata.labels"),
    ],
)
def test_a_wrong_manifest_is_named_by_its_line_and_path(
    tmp_path: Path, old: str, new: str, line: int, key: str | None
) -> None:
    path = tmp_path / "all.yaml"
    assert old in MANIFESTS
    path.write_text(MANIFESTS.replace(old, new))
    with pytest.raises(InvalidInput) as caught:
        read_pod_workload(path)
    problem = caught.value.problems[0]
    assert (problem.line, problem.key if key else None, bool(problem.cure)) == (line, key, True)


def test_two_objects_of_one_kind_and_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(MANIFESTS)
    (tmp_path / "b.yaml").write_text("\n" + MANIFESTS.partition("---\n---\n")[2])
    with pytest.raises(InvalidInput) as caught:
        read_pod_workload(tmp_path)
    (problem,) = caught.value.problems
    assert (caught.value.source, problem.code) == (str(tmp_path / "b.yaml"), "duplicate-name")
    assert (problem.line, problem.key) == (5, "metadata.name")


def test_a_pod_on_a_node_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(MANIFESTS.replace("  containers: [", "  nodeName: n7\n  containers: ["))
    with pytest.raises(InvalidInput) as caught:
        read_pod_workload(path)
    assert caught.value.code == "unknown-name"
    path.write_text(path.read_text().replace("n7", "n0"))
    assert len(read_pod_workload(path).arrivals) == 3


@pytest.mark.parametrize(
    "choice", [NodeChoice(), NodeChoice(count=0), NodeChoice(count=1, cpu="x")]
)
def test_a_workload_without_nodes_is_refused(tmp_path: Path, choice: NodeChoice) -> None:
    path = batsim(tmp_path, [job("1", "d")], {"d": {"type": "delay", "delay": 5}})
    with pytest.raises(InvalidInput):
        read_pod_workload(path, choice)


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    stage = {"type": "data_staging", "nb_bytes": 1, "from": "a", "to": "b"}
    staging = batsim(tmp_path, [job("1", "s")], {"s": stage})
    other = tmp_path / "w.txt"
    other.write_text("x")
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (staging, other, empty, tmp_path / "missing.json"):
        with pytest.raises(InvalidInput):
            read_pod_workload(path, NODES)
    manifests = tmp_path / "all.yaml"
    manifests.write_text(MANIFESTS)
    with pytest.raises(InvalidInput) as caught:
        read_pod_workload(manifests, NODES)
    assert caught.value.code == "option-conflict"


@pytest.mark.parametrize(("name", "pods", "nodes"), [("burst", 200, 16), ("realistic", 40, 1)])
def test_a_generated_workload_has_a_name_and_nodes(name: str, pods: int, nodes: int) -> None:
    own = read_pod_workload(Path(name))
    assert (own.name, len(own.arrivals), len(own.nodes)) == (name, pods, nodes)
    chosen = read_pod_workload(Path(name), NodeChoice(count=3))
    assert (len(chosen.nodes), len(chosen.platform.hosts)) == (3, 3)
    assert chosen.arrivals == own.arrivals


def test_a_file_goes_before_a_generated_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "burst").mkdir()
    (tmp_path / "burst" / "all.yaml").write_text(MANIFESTS)
    assert len(read_pod_workload(Path("burst")).arrivals) != 200
    with pytest.raises(InvalidInput) as caught:
        read_pod_workload(Path("bursts"))
    assert caught.value.code == "invalid-value"
