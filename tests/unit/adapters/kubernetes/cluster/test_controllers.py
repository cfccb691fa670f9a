"""Controllers: Jobs, Deployments, garbage, budgets, and the workloads of the Batkube thesis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.resources import (
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
)
from equipoise.adapters.kubernetes.api.store import DeleteOptions
from equipoise.adapters.kubernetes.cluster.simulated_cluster import ClusterOptions
from equipoise.adapters.kubernetes.workload.load import NodeChoice, read_pod_workload
from equipoise.adapters.kubernetes.workload.pod_workload import uniform_nodes
from kubernetes_world import World

Object = dict[str, Any]


def template(seconds: str | None = "10", cpu: str = "1", code: str = "0", **more: Any) -> Object:
    annotations = {"equipoise.dev/exit-code": code}
    if seconds is not None:
        annotations["equipoise.dev/duration"] = seconds
    resources = {"requests": {"cpu": cpu}}
    container = {"name": "c", "image": "i", "resources": resources}
    spec = {"containers": [container], **more}
    return {"metadata": {"labels": {"app": "a"}, "annotations": annotations}, "spec": spec}


def job(name: str = "j", pods: Object | None = None, **spec: Any) -> Object:
    body = template(restartPolicy="Never") if pods is None else pods
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": body, **spec},
    }  # fmt: skip


def deployment(replicas: int = 3, image: str = "i", **spec: Any) -> Object:
    pods = template(None)
    pods["spec"]["containers"][0]["image"] = image
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": pods,
            **spec,
        },
    }  # fmt: skip


def job_status(world: World, name: str = "j") -> Object:
    status: Object = world.store.get(JOBS, name, "default")["status"]
    return status


def conditions(status: Object) -> dict[str, str]:
    return {each["type"]: each.get("reason", "") for each in status.get("conditions") or ()}


def test_a_job_runs_its_pods_side_by_side_until_enough_have_succeeded() -> None:
    world = World(uniform_nodes(1, "8"))
    world.create(job(parallelism=3, completions=7))
    world.run(5000)
    assert (job_status(world)["active"], job_status(world)["ready"]) == (3, 3)
    world.run(100_000)
    status = job_status(world)
    assert (status["succeeded"], status["active"], conditions(status)) == (7, 0, {"Complete": ""})
    assert status["completionTime"] == "2023-11-14T22:13:50Z"
    assert len(world.pods()) == 7


def test_an_indexed_job_completes_every_index_once() -> None:
    world = World(uniform_nodes(1, "8"))
    pods = template(restartPolicy="Never")
    world.create(job(pods=pods, parallelism=2, completions=5, completionMode="Indexed"))
    world.run(100_000)
    key = "batch.kubernetes.io/job-completion-index"
    indexes = sorted(each["metadata"]["annotations"][key] for each in world.pods())
    assert indexes == list("01234")
    assert job_status(world)["completedIndexes"] == "0-4"


@pytest.mark.parametrize(("limit", "pods", "end_ms"), [(0, 1, 10_000), (2, 3, 60_000)])
def test_a_job_fails_after_more_failures_than_allowed(limit: int, pods: int, end_ms: int) -> None:
    world = World(uniform_nodes(1, "8"))
    world.create(job(pods=template(code="1", restartPolicy="Never"), backoffLimit=limit))
    # The waits between the pods are 10 s and 20 s.
    world.run(end_ms - 1)
    assert conditions(job_status(world)) == {}
    world.run(end_ms)
    status = job_status(world)
    assert conditions(status) == {"Failed": "BackoffLimitExceeded"}
    assert (status["failed"], len(world.pods())) == (pods, pods)


def test_a_job_with_a_deadline_ends_its_pods() -> None:
    world = World(uniform_nodes(1, "8"))
    world.create(job(activeDeadlineSeconds=4, parallelism=2))
    world.run(100_000)
    assert conditions(job_status(world)) == {"Failed": "DeadlineExceeded"}
    assert world.pods() == []


def test_a_suspended_job_has_no_pods_and_begins_again() -> None:
    world = World(uniform_nodes(1, "8"))
    world.create(job(suspend=True))
    world.run(1000)
    assert (world.pods(), "startTime" in job_status(world)) == ([], False)

    def suspend(value: bool) -> None:
        world.store.update(
            JOBS, "j", "default", lambda body: {**body, "spec": {**body["spec"], "suspend": value}}
        )

    suspend(False)
    world.run(5000)
    suspend(True)
    world.run(6000)
    assert (world.pods(), job_status(world).get("failed", 0)) == ([], 0)
    suspend(False)
    world.run(16_000)
    assert "Complete" in conditions(job_status(world))


def test_a_finished_job_goes_with_its_pods_after_its_time() -> None:
    world = World(uniform_nodes(1, "8"))
    world.create(job(ttlSecondsAfterFinished=5))
    world.run(14_999)
    assert len(world.pods()) == 1
    world.run(15_000)
    assert (world.store.list(JOBS), world.pods()) == ([], [])


def test_a_deleted_pod_of_a_job_counts_as_failed_and_is_replaced() -> None:
    world = World(uniform_nodes(1, "8"))
    world.create(job(backoffLimit=1))
    world.run(5000)
    (body,) = world.pods()
    world.store.delete(PODS, body["metadata"]["name"], "default")
    world.run(100_000)
    status = job_status(world)
    assert (status["failed"], status["succeeded"]) == (1, 1)
    assert "Complete" in conditions(status)


def test_a_deployment_reaches_its_replicas_and_rolls_to_a_new_template() -> None:
    world = World(uniform_nodes(1, "8"))
    world.create(deployment(4, strategy={
        "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1},
    }))  # fmt: skip
    world.run(1000)
    status = world.store.get(DEPLOYMENTS, "d", "default")["status"]
    assert (status["availableReplicas"], status["updatedReplicas"]) == (4, 4)
    seen: list[tuple[int, int]] = []

    def note(_change: object) -> None:
        live = [each for each in world.pods() if not each["metadata"].get("deletionTimestamp")]
        ready = sum(
            1
            for each in live
            for condition in each["status"].get("conditions") or ()
            if condition["type"] == "Ready" and condition["status"] == "True"
        )
        seen.append((len(live), ready))

    world.store.subscribe(note, PODS)
    pods = deployment(image="new")["spec"]["template"]
    world.store.update(
        DEPLOYMENTS, "d", "default",
        lambda body: {**body, "spec": {**body["spec"], "template": pods}},
    )  # fmt: skip
    world.run(2000)
    images = {each["spec"]["containers"][0]["image"] for each in world.pods()}
    assert (images, len(world.pods())) == ({"new"}, 4)
    assert max(count for count, _ in seen) <= 5
    assert min(ready for _, ready in seen) >= 3
    assert len(world.store.list(REPLICA_SETS)) == 2
    status = world.store.get(DEPLOYMENTS, "d", "default")["status"]
    assert conditions(status)["Progressing"] == "NewReplicaSetAvailable"


def test_a_deployment_that_recreates_has_no_old_pods_beside_new_ones() -> None:
    world = World(uniform_nodes(1, "8"))
    world.create(deployment(3, strategy={"type": "Recreate"}))
    world.run(1000)
    world.store.update(
        DEPLOYMENTS, "d", "default",
        lambda body: {**body, "spec": deployment(2, "new", strategy={"type": "Recreate"})["spec"]},
    )  # fmt: skip
    world.run(2000)
    images = [each["spec"]["containers"][0]["image"] for each in world.pods()]
    assert images == ["new", "new"]


def test_a_deployment_replaces_pods_and_scales_down_those_without_a_node_first() -> None:
    world = World(uniform_nodes(1, "2"))
    world.create(deployment(4))
    world.run(1000)
    assert world.phases() == {"Pending": 2, "Running": 2}
    world.store.update(
        DEPLOYMENTS, "d", "default",
        lambda body: {**body, "spec": {**body["spec"], "replicas": 2}},
    )  # fmt: skip
    world.run(2000)
    assert world.phases() == {"Running": 2}
    world.store.delete(PODS, world.pods()[0]["metadata"]["name"], "default")
    world.run(40_000)
    assert world.phases() == {"Running": 2}


@pytest.mark.parametrize(
    ("propagation", "left"),
    [("", (0, 0)), ("Background", (0, 0)), ("Foreground", (0, 0)), ("Orphan", (1, 2))],
)
def test_what_an_owner_leaves_is_deleted_or_set_free(
    propagation: str, left: tuple[int, int]
) -> None:
    world = World(uniform_nodes(1, "8"))
    world.create(deployment(2))
    world.run(1000)
    options = DeleteOptions(propagation=propagation)
    world.store.delete(DEPLOYMENTS, "d", "default", options=options)
    if propagation == "Foreground":
        assert world.store.find(DEPLOYMENTS, "d", "default") is not None
    world.run(60_000)
    assert world.store.find(DEPLOYMENTS, "d", "default") is None
    assert (len(world.store.list(REPLICA_SETS)), len(world.pods())) == left


def test_an_object_whose_owner_never_was_is_deleted() -> None:
    world = World(uniform_nodes(1, "8"))
    body = {"kind": "Pod", **template(None)}
    owner = {"apiVersion": "v1", "kind": "ReplicaSet", "name": "x", "uid": "0-0"}
    body["metadata"] = {"name": "p", "ownerReferences": [owner]}
    world.create(body)
    world.run(1000)
    assert world.pods() == []


def test_a_budget_says_how_many_pods_may_go() -> None:
    world = World(uniform_nodes(1, "3"))
    world.create(
        {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
            "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "a"}}},
        }
    )  # fmt: skip
    world.create(deployment(4))
    world.run(1000)
    status = world.store.get(POD_DISRUPTION_BUDGETS, "b", "default")["status"]
    names = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    assert [status[name] for name in names] == [4, 3, 2, 1]


def test_a_namespace_goes_when_its_last_pod_has_stopped() -> None:
    world = World(uniform_nodes(1, "8"))
    world.create({"kind": "Namespace", "metadata": {"name": "team"}})
    body = deployment(2)
    body["metadata"]["namespace"] = "team"
    body["spec"]["template"]["metadata"]["annotations"]["equipoise.dev/stop"] = "3"
    world.create(body)
    world.run(1000)
    world.store.delete(NAMESPACES, "team")
    world.run(3000)
    assert world.store.get(NAMESPACES, "team")["status"]["phase"] == "Terminating"
    world.run(5000)
    assert (world.store.find(NAMESPACES, "team"), world.pods()) == (None, [])


def test_a_cluster_without_controllers_leaves_jobs_to_others() -> None:
    world = World(uniform_nodes(1, "8"), ClusterOptions(controllers=False))
    world.create(job())
    world.run(1000)
    assert world.pods() == []


@pytest.mark.parametrize(
    ("spacing_s", "makespan_ms"), [(0, 13 * 170_000), (10, 2_280_000), (1000, 199_170_000)]
)
def test_the_workloads_of_the_thesis_take_as_long_as_they_must(
    tmp_path: Path, spacing_s: int, makespan_ms: int
) -> None:
    """200 jobs of 170 s on 16 nodes: 13 rounds at once; 11 s apart they never wait."""
    jobs = [
        {"id": str(number), "subtime": number * spacing_s, "walltime": 1000, "res": 1,
         "profile": "delay"}
        for number in range(200)
    ]  # fmt: skip
    profile = {"type": "delay", "delay": 170, "scheduler": "default", "cpu": "1"}
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": {"delay": profile}}))
    workload = read_pod_workload(path, NodeChoice(count=16))
    world = World(workload.nodes)
    world.run_workload(workload, 10**9)
    assert (world.phases(), world.time.now_ms) == ({"Succeeded": 200}, makespan_ms)
    assert world.cluster.over_allocations == []


@pytest.mark.parametrize("count", [150_001, 2_000_000_000])
@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "Job"])
def test_a_number_of_pods_that_no_cluster_has_is_refused(kind: str, count: int) -> None:
    """Controllers make their pods at one instant, so such a number would stop the server."""
    world = World([], schedules=False)
    field = "parallelism" if kind == "Job" else "replicas"
    more = {} if kind != "Job" else {"restartPolicy": "Never"}
    spec: Object = {"template": template(**more), field: count}
    if kind != "Job":
        spec["selector"] = {"matchLabels": {"app": "a"}}
    body = {"kind": kind, "metadata": {"name": "x"}, "spec": spec}
    with pytest.raises(ApiError) as caught:
        world.create(body)
    (cause,) = (caught.value.details or {})["causes"]
    assert (caught.value.code, cause["field"]) == (422, f"spec.{field}")
    spec[field] = 2
    world.create(body)
    assert len(world.pods()) == 2
