from __future__ import annotations

from typing import Any

import pytest

from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
)
from equipoise.adapters.kubernetes.api.store import (
    Change,
    ChangeKind,
    DeleteOptions,
    ObjectStore,
)
from kubernetes_api import a_node, a_pod


class Clock:
    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> ObjectStore:
    return ObjectStore(clock)


class refusal:  # noqa: N801
    def __init__(self, code: int) -> None:
        self.code = code

    def __enter__(self) -> None:
        """Expect an ``ApiError``."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        assert isinstance(error, ApiError), "it was accepted"
        assert error.code == self.code, error.message
        return True


def test_a_new_object_gets_an_id_a_version_and_a_time(store: ObjectStore, clock: Clock) -> None:
    clock.now_ms = 1500
    pod = store.create(PODS, a_pod("p"))
    metadata = pod["metadata"]
    assert (metadata["namespace"], metadata["generation"]) == ("default", 1)
    assert metadata["creationTimestamp"] == "2023-11-14T22:13:21Z"
    assert metadata["resourceVersion"] == str(store.version)
    assert (pod["status"]["phase"], pod["spec"]["priority"]) == ("Pending", 0)
    assert store.get(PODS, "p", "default") is pod


def test_generated_names_differ_and_are_the_same_in_every_run(clock: Clock) -> None:
    runs = []
    for _ in range(2):
        store = ObjectStore(clock, seed=7)
        body = {**a_pod(), "metadata": {"generateName": "job-"}}
        runs.append([store.create(PODS, body)["metadata"]["name"] for _ in range(50)])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 50
    assert all(len(name) == 9 for name in runs[0])


@pytest.mark.parametrize(
    ("spec", "priority", "policy"),
    [
        ({}, 0, "PreemptLowerPriority"),
        ({"priorityClassName": "high"}, 100, "Never"),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000, "PreemptLowerPriority"),
    ],
)
def test_the_priority_of_a_pod_is_that_of_its_class(
    store: ObjectStore, spec: dict[str, Any], priority: int, policy: str
) -> None:
    body = {"metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never"}
    store.create(PRIORITY_CLASSES, body)
    stored = store.create(PODS, a_pod("p", **spec))["spec"]
    assert (stored["priority"], stored["preemptionPolicy"]) == (priority, policy)


def test_a_default_class_counts_and_an_unknown_class_is_refused(store: ObjectStore) -> None:
    body = {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}
    store.create(PRIORITY_CLASSES, body)
    assert store.create(PODS, a_pod("p"))["spec"]["priority"] == 5
    with refusal(403):
        store.create(PODS, a_pod("q", priorityClassName="none"))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}, "Burstable"),
    ],
)
def test_the_quality_of_service_follows_requests_and_limits(
    store: ObjectStore, resources: dict[str, Any], expected: str
) -> None:
    pod = a_pod("p")
    pod["spec"]["containers"][0]["resources"] = resources
    stored = store.create(PODS, pod)
    assert stored["status"]["qosClass"] == expected
    limits = resources.get("limits", {})
    requests = stored["spec"]["containers"][0]["resources"].get("requests", {})
    assert set(limits) <= set(requests)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "Upper"}}, "metadata.name"),
        ({"metadata": {}}, "metadata.name"),
        ({"metadata": {"name": "p", "labels": {"a b": "x"}}}, "metadata.labels"),
        ({"spec": {"containers": []}}, "spec.containers"),
        ({"spec": {"containers": [{"name": "c"}]}}, "spec.containers[0].image"),
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0].name"),
    ],
)
def test_an_invalid_pod_is_refused_with_its_causes(
    store: ObjectStore, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(ApiError) as error:
        store.create(PODS, {**a_pod("p"), **change})
    assert error.value.code == 422
    assert error.value.details is not None
    assert field in [cause["field"] for cause in error.value.details["causes"]]


def test_a_change_of_the_specification_counts_a_generation_and_a_status_does_not(
    store: ObjectStore,
) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": a_pod()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = store.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    assert made["spec"]["replicas"] == 1
    scaled = store.replace(DEPLOYMENTS, {**made, "spec": {**made["spec"], "replicas": 3}})
    assert scaled["metadata"]["generation"] == 2
    body = {**scaled, "spec": {}, "status": {"replicas": 3}}
    reported = store.replace(DEPLOYMENTS, body, subresource="status")
    assert (reported["metadata"]["generation"], reported["spec"]["replicas"]) == (2, 3)
    ignored = store.replace(DEPLOYMENTS, {**reported, "status": {"replicas": 9}})
    assert ignored is reported


def test_a_pod_cannot_be_moved_or_changed_but_its_image_may(store: ObjectStore) -> None:
    pod = store.create(PODS, a_pod("p"))
    with refusal(422):
        store.replace(PODS, {**pod, "spec": {**pod["spec"], "nodeName": "n"}})
    with refusal(422):
        store.replace(PODS, {**pod, "spec": {**pod["spec"], "nodeSelector": {"a": "b"}}})
    containers = [{**pod["spec"]["containers"][0], "image": "other:2"}]
    changed = store.replace(PODS, {**pod, "spec": {**pod["spec"], "containers": containers}})
    assert changed["metadata"]["generation"] == 2


def test_a_pod_is_bound_once(store: ObjectStore) -> None:
    pod = store.create(PODS, a_pod("p"))
    with refusal(404):
        store.bind("default", "none", "n")
    with refusal(409):
        store.bind("default", "p", "n", uid="another")
    bound = store.bind("default", "p", "n", uid=pod["metadata"]["uid"])
    assert bound["spec"]["nodeName"] == "n"
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    with refusal(409):
        store.bind("default", "p", "n")


def test_a_bound_pod_ends_gracefully_and_a_second_deletion_hurries(
    store: ObjectStore, clock: Clock
) -> None:
    store.create(PODS, a_pod("p"))
    store.bind("default", "p", "n")
    dying = store.delete(PODS, "p", "default")["metadata"]
    assert dying["deletionGracePeriodSeconds"] == 30
    assert dying["deletionTimestamp"] == "2023-11-14T22:13:50Z"
    version = store.version
    store.delete(PODS, "p", "default", grace_s=40)
    assert store.version == version
    store.delete(PODS, "p", "default", grace_s=2)
    assert store.get(PODS, "p", "default")["metadata"]["deletionGracePeriodSeconds"] == 2
    store.delete(PODS, "p", "default", grace_s=0)
    assert store.find(PODS, "p", "default") is None


def test_finalizers_and_propagation_keep_an_object_until_they_are_removed(
    store: ObjectStore,
) -> None:
    store.create(NODES, a_node("n"))
    foreground = DeleteOptions(propagation="Foreground")
    store.delete(NODES, "n", options=foreground)
    node = store.get(NODES, "n")
    assert node["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert node["metadata"]["deletionTimestamp"]
    store.replace(NODES, {**node, "metadata": {**node["metadata"], "finalizers": []}})
    assert store.find(NODES, "n") is None


def test_a_namespace_goes_with_its_content_when_the_last_pod_has_ended(
    store: ObjectStore,
) -> None:
    store.create(NAMESPACES, {"metadata": {"name": "team"}})
    store.create(PODS, a_pod("p"), "team")
    store.create(CONFIG_MAPS, {"metadata": {"name": "c"}}, "team")
    store.bind("team", "p", "n")
    store.delete(NAMESPACES, "team")
    assert store.get(NAMESPACES, "team")["status"]["phase"] == "Terminating"
    assert store.list(CONFIG_MAPS) == []
    with refusal(403):
        store.create(CONFIG_MAPS, {"metadata": {"name": "d"}}, "team")
    store.delete(PODS, "p", "team", grace_s=0)
    assert store.find(NAMESPACES, "team") is None
    with refusal(404):
        store.create(PODS, a_pod("p"), "team")
    with refusal(403):
        store.delete(NAMESPACES, "default")


def test_listeners_get_changes_in_order_even_if_they_write(store: ObjectStore) -> None:
    seen: list[tuple[int, ChangeKind]] = []

    def finish(change: Change) -> None:
        if change.kind is ChangeKind.ADDED:
            metadata = change.object["metadata"]
            store.update(
                PODS, metadata["name"], "default",
                lambda pod: {**pod, "status": {"phase": "Failed"}},
            )  # fmt: skip
            store.delete(PODS, metadata["name"], "default")

    stop = store.subscribe(finish, PODS)
    store.subscribe(lambda change: seen.append((change.version, change.kind)))
    store.create(PODS, a_pod("p"))
    start = seen[0][0]
    assert seen == [
        (start, ChangeKind.ADDED),
        (start + 1, ChangeKind.MODIFIED),
        (start + 2, ChangeKind.DELETED),
    ]
    stop()
    store.create(PODS, a_pod("q"))
    assert store.find(PODS, "q", "default") is not None


def test_events_are_removed_after_an_hour(store: ObjectStore, clock: Clock) -> None:
    def event(name: str) -> None:
        store.create(EVENTS, {"metadata": {"name": name}, "involvedObject": {"kind": "Pod"}})

    event("old")
    clock.now_ms = 3_600_000
    event("new")
    assert [each["metadata"]["name"] for each in store.list(EVENTS)] == ["new"]


def test_a_job_selects_its_own_pods(store: ObjectStore) -> None:
    template = {"spec": {**a_pod()["spec"], "restartPolicy": "Never"}}
    job = store.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template}})
    spec, uid = job["spec"], job["metadata"]["uid"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert spec["template"]["metadata"]["labels"]["job-name"] == "j"
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 6)
    with refusal(422):
        always = {"spec": a_pod()["spec"]}
        store.create(JOBS, {"metadata": {"name": "k"}, "spec": {"template": always}})


def test_a_dry_run_leaves_no_trace(store: ObjectStore) -> None:
    version = store.version
    dry = store.create(PODS, a_pod("p"), dry_run=True)
    assert (store.version, store.find(PODS, "p", "default")) == (version, None)
    assert store.create(PODS, a_pod("p"))["metadata"]["uid"] == dry["metadata"]["uid"]


def test_admission_adds_tolerations_only_if_asked(clock: Clock) -> None:
    store = ObjectStore(clock, not_ready_tolerations=True)
    tolerations = store.create(PODS, a_pod("p"))["spec"]["tolerations"]
    assert [each["tolerationSeconds"] for each in tolerations] == [300, 300]
    assert "tolerations" not in ObjectStore(clock).create(PODS, a_pod("p"))["spec"]


def test_a_controller_may_select_by_namespace(store: ObjectStore) -> None:
    for namespace in ("default", "kube-system"):
        for name in ("b", "a"):
            store.create(PODS, a_pod(name), namespace)
    names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in store.list(PODS)]
    assert names == sorted(names)
    assert len(store.list(PODS, "default")) == 2
    assert len(store.list(PODS, "", lambda pod: pod["metadata"]["name"] == "a")) == 2


@pytest.mark.parametrize("amount", ["-4", "4 cores"])
def test_a_node_cannot_report_an_amount_that_is_none(store: ObjectStore, amount: str) -> None:
    """The simulation would keep the amount of before, and a scheduler take the new one."""
    node = store.create(NODES, a_node("n"))
    for part in ("capacity", "allocatable"):
        status = {**node["status"], part: {"cpu": amount}}
        with pytest.raises(ApiError) as refused:
            store.replace(NODES, {**node, "status": status}, subresource="status")
        assert refused.value.code == 422
