"""A simulated cluster keeps the API and its nodes equal, and its controllers reach their goals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.resources import (
    DEPLOYMENTS,
    JOBS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
)
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind
from equipoise.adapters.kubernetes.cluster.kubelets import NodeRuntime, pod_name
from equipoise.adapters.kubernetes.cluster.simulated_cluster import ClusterOptions
from equipoise.adapters.kubernetes.workload.pod_workload import node_object
from equipoise.sim.pods.pod import PodStage
from equipoise.sim.pods.spec import KubeletOptions
from kubernetes_world import World

Object = dict[str, Any]
Step = tuple[int, str, str, int]
"""A time in seconds, what happens, to what, and a number."""

PHASES = {
    PodStage.BOUND: "Pending", PodStage.PULLING: "Pending", PodStage.INITIALIZING: "Pending",
    PodStage.RUNNING: "Running", PodStage.WAITING: "Running", PodStage.SUCCEEDED: "Succeeded",
    PodStage.FAILED: "Failed",
}  # fmt: skip
NEXT_PHASES = {
    "Pending": {"Pending", "Running", "Succeeded", "Failed"},
    "Running": {"Running", "Succeeded", "Failed", "Pending"},
    "Succeeded": {"Succeeded"},
    "Failed": {"Failed"},
}
"""A pod whose node has failed may wait for its images again."""
NAMES = st.sampled_from(["a", "b", "c"])
NODE_NAMES = st.sampled_from(["n0", "n1"])


def template(seconds: int | None, codes: str, restart: str, cpu: int = 1) -> Object:
    annotations = {"equipoise.dev/exit-code": codes, "equipoise.dev/stop": "2"}
    if seconds is not None:
        annotations["equipoise.dev/duration"] = str(seconds)
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    return {
        "metadata": {"labels": {"app": "x"}, "annotations": annotations},
        "spec": {"containers": [container], "restartPolicy": restart},
    }


steps = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 90), st.just("pod"), NAMES, st.integers(0, 30)),
        st.tuples(st.integers(0, 90), st.just("job"), NAMES, st.integers(1, 4)),
        st.tuples(st.integers(0, 90), st.just("deployment"), NAMES, st.integers(0, 4)),
        st.tuples(st.integers(0, 90), st.just("scale"), NAMES, st.integers(0, 4)),
        st.tuples(st.integers(0, 90), st.just("delete"), NAMES, st.integers(0, 9)),
        st.tuples(st.integers(0, 90), st.just("evict"), st.just(""), st.integers(0, 9)),
        st.tuples(st.integers(0, 90), st.just("fail"), NODE_NAMES, st.just(0)),
        st.tuples(st.integers(0, 90), st.just("return"), NODE_NAMES, st.just(0)),
        st.tuples(st.integers(0, 90), st.just("force"), NODE_NAMES, st.integers(0, 5)),
    ),
    max_size=12,
)


def new_world(*, rejects: bool = True) -> World:
    kubelet = KubeletOptions(pull_ms=300, start_ms=200, rejects_over_allocation=rejects)
    options = ClusterOptions(
        runtime=NodeRuntime(kubelet=kubelet), monitor_grace_ms=5000, tolerated_ms=7000
    )
    return World([node_object(f"n{n}", cpu_milli=2000 + n * 1000) for n in (0, 1)], options)


def apply(world: World, step: Step) -> None:
    _, kind, name, number = step
    try:
        if kind in ("pod", "job", "deployment"):
            world.create(manifest(kind, name, number))
        elif kind in ("fail", "return"):
            change = world.cluster.fail_node if kind == "fail" else world.cluster.return_node
            change(name)
        else:
            write(world, kind, name, number)
    except ApiError:
        return  # the object is or is not there


def manifest(kind: str, name: str, number: int) -> Object:
    if kind == "pod":
        body = template(number, "0" if number % 2 else "1,0", "OnFailure")
        return {"kind": "Pod", **body, "metadata": {**body["metadata"], "name": name}}
    if kind == "job":
        spec = {"parallelism": 2, "completions": number, "template": template(5, "0", "Never")}
        return {"kind": "Job", "metadata": {"name": name}, "spec": spec}
    spec = {
        "replicas": number, "template": template(None, "0", "Always"),
        "selector": {"matchLabels": {"app": "x"}},
    }  # fmt: skip
    return {"kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def write(world: World, kind: str, name: str, number: int) -> None:
    store, pods = world.store, world.pods()
    waiting = [each for each in pods if not each["spec"].get("nodeName")]
    if kind == "scale":
        store.update(
            DEPLOYMENTS, name, "default",
            lambda body: {**body, "spec": {**body["spec"], "replicas": number}},
        )  # fmt: skip
    elif kind == "delete":
        resource = (PODS, JOBS, DEPLOYMENTS)[number % 3]
        store.delete(resource, name, "default", grace_s=number)
    elif kind == "evict" and pods:
        store.delete(PODS, pods[number % len(pods)]["metadata"]["name"], "default")
    elif kind == "force" and waiting:
        store.bind("default", waiting[0]["metadata"]["name"], name)


def check(world: World) -> None:
    """The store and the simulation agree, and no node holds too much without a record."""
    known = dict(world.cluster.pods.pods)
    for body in world.pods():
        pod = known.pop(pod_name(body), None)
        if pod is None:
            assert not body["spec"].get("nodeName")
            continue
        assert pod.node.name == body["spec"]["nodeName"]
        if pod.stage in PHASES and not (pod.stage is PodStage.BOUND and pod.node.is_down):
            assert body["status"]["phase"] == PHASES[pod.stage]
        if not pod.node.is_down:
            assert bool(body["metadata"].get("deletionTimestamp")) == pod.is_deleted
    assert not known
    for node in world.cluster.pods.nodes.values():
        held = [pod for pod in node.pods.values() if not pod.stage.is_final]
        assert node.requested.get("cpu", 0) == sum(pod.spec.requests["cpu"] for pod in held)
        if node.requested.get("cpu", 0) > node.allocatable["cpu"]:
            assert any(
                found.node == node.name and found.end_ms is None
                for found in world.cluster.over_allocations
            )


def play(world: World, given: Sequence[Step], until_s: int, cuts: Sequence[int] = ()) -> None:
    for step in sorted(given, key=lambda step: step[0]):
        for cut_ms in sorted(cuts):
            if world.time.now_ms < cut_ms < step[0] * 1000:
                world.run(cut_ms)
                check(world)
        world.run(step[0] * 1000)
        check(world)
        apply(world, step)
        world.settle()
        check(world)
    for cut_ms in sorted(cuts):
        if world.time.now_ms < cut_ms < until_s * 1000:
            world.run(cut_ms)
    world.run(until_s * 1000)
    check(world)


def state_of(world: World) -> list[Object]:
    """Return all objects without their versions."""
    found = []
    for resource in (NODES, PODS, JOBS, REPLICA_SETS, DEPLOYMENTS, POD_DISRUPTION_BUDGETS):
        for body in world.store.list(resource):
            metadata = {k: v for k, v in body["metadata"].items() if k != "resourceVersion"}
            found.append({**body, "metadata": metadata})
    return found


@given(steps, st.booleans())
def test_the_store_and_the_cluster_agree_and_phases_never_go_back(
    given_steps: list[Step],
    rejects: bool,
) -> None:
    world = new_world(rejects=rejects)
    phases: dict[str, str] = {}

    def note(change: Change) -> None:
        uid, phase = change.object["metadata"]["uid"], change.object["status"]["phase"]
        if change.kind is not ChangeKind.DELETED:
            assert phase in NEXT_PHASES[phases.get(uid, "Pending")]
            phases[uid] = phase

    world.store.subscribe(note, PODS)
    play(world, given_steps, 300)


@given(steps, st.lists(st.integers(0, 200_000), max_size=8))
def test_a_cluster_does_not_depend_on_how_time_is_cut(
    given_steps: list[Step], cuts: list[int]
) -> None:
    whole, cut = new_world(), new_world()
    play(whole, given_steps, 200)
    play(cut, given_steps, 200, cuts)
    assert state_of(whole) == state_of(cut)


@given(steps)
def test_with_all_nodes_up_everything_reaches_its_goal(given_steps: list[Step]) -> None:
    world = new_world()
    play(world, [*given_steps, (100, "return", "n0", 0), (100, "return", "n1", 0)], 100)
    for body in world.store.list(DEPLOYMENTS):
        # Room for those that have an end.
        name = body["metadata"]["name"]
        apply(world, (0, "scale", name, 1 if name == "a" else 0))
    world.run(4_000_000)
    check(world)
    for body in world.store.list(DEPLOYMENTS):
        assert body["status"].get("availableReplicas", 0) == body["spec"]["replicas"]
    for body in world.store.list(JOBS):
        kinds = {each["type"] for each in body["status"]["conditions"]}
        assert "Complete" in kinds or body["status"].get("failed", 0) > 6
    for body in world.pods():
        if "equipoise.dev/duration" in body["metadata"]["annotations"]:
            assert body["status"]["phase"] in ("Succeeded", "Failed")


@given(
    st.lists(st.booleans(), max_size=8),
    st.integers(0, 6),
    st.integers(1, 4),
    st.integers(1, 4),
    st.booleans(),
)
def test_a_job_completes_below_its_limit_of_failures_and_fails_above(
    fails: list[bool],
    limit: int,
    parallelism: int,
    completions: int,
    indexed: bool,
) -> None:
    """The pods of the job fail in any pattern, in the order of their creation."""
    world = World([node_object("n", cpu_milli=64_000)])
    pattern = iter(fails)

    def choose(change: Change) -> None:
        if change.kind is ChangeKind.ADDED and next(pattern, False):
            metadata = change.object["metadata"]
            annotations = {**metadata["annotations"], "equipoise.dev/exit-code": "1"}
            world.store.update(
                PODS, metadata["name"], "default",
                lambda body: {**body, "metadata": {**body["metadata"], "annotations": annotations}},
            )  # fmt: skip

    world.store.subscribe(choose, PODS)
    mode = "Indexed" if indexed else "NonIndexed"
    spec = {
        "parallelism": parallelism, "completions": completions, "backoffLimit": limit,
        "completionMode": mode, "template": template(5, "0", "Never"),
    }  # fmt: skip
    world.create({"kind": "Job", "metadata": {"name": "j"}, "spec": spec})
    world.run(10_000_000)
    status = world.store.get(JOBS, "j", "default")["status"]
    kinds = {each["type"] for each in status["conditions"]}
    if sum(fails) <= limit:
        assert kinds == {"Complete"}
        assert (status["succeeded"], status["active"]) == (completions, 0)
    else:
        # It may have enough successes before it has too many failures.
        assert kinds == ({"Failed"} if status.get("failed", 0) > limit else {"Complete"})
    assert all(each["status"]["phase"] in ("Succeeded", "Failed") for each in world.pods())
