"""Kubelets: what the API shows of a pod from its binding to its end, and of nodes that fail."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.adapters.kubernetes.api.resources import NODES, PODS
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind
from equipoise.adapters.kubernetes.cluster.kubelets import NodeRuntime
from equipoise.adapters.kubernetes.cluster.simulated_cluster import ClusterOptions
from equipoise.adapters.kubernetes.workload.pod_workload import (
    node_object,
    pod_object,
    uniform_nodes,
)
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState
from equipoise.sim.jobs.work import JobState
from equipoise.sim.pods.job_records import PodJobRecords
from equipoise.sim.pods.spec import KubeletOptions
from kubernetes_world import World

Object = dict[str, Any]


def pod(name: str = "p", cpu: int = 1000, seconds: str | None = "10", **more: Any) -> Object:
    annotations = dict(more.pop("annotations", {}))
    if seconds is not None:
        annotations["equipoise.dev/duration"] = seconds
    body = pod_object(name, cpu_milli=cpu, annotations=annotations)
    body["spec"].update(more)
    return body


def world(count: int = 1, cpu: str = "2", *, schedules: bool = True, **more: Any) -> World:
    kubelet = KubeletOptions(**more.pop("kubelet", {}))
    runtime = NodeRuntime(kubelet=kubelet, **more.pop("runtime", {}))
    options = ClusterOptions(runtime=runtime, **more)
    return World(uniform_nodes(count, cpu), options, schedules=schedules)


def status(at: World, name: str = "p") -> Object:
    found: Object = at.store.get(PODS, name, "default")["status"]
    return found


def condition(body: Object, kind: str) -> Object:
    (found,) = (each for each in body["conditions"] if each["type"] == kind)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("start_ms", "phases"), [(0, ["Running"]), (1, ["Pending"])])
def test_a_pod_that_starts_at_once_is_written_once(start_ms: int, phases: list[str]) -> None:
    """What lasts no time is not shown: each change costs all watchers an event."""
    at = world(schedules=False, kubelet={"start_ms": start_ms})
    at.create(pod())
    at.settle()
    at.store.bind("default", "p", at.store.list(NODES)[0]["metadata"]["name"])
    seen: list[str] = []
    at.store.subscribe(lambda change: seen.append(change.object["status"]["phase"]), PODS)
    while at.cluster.next_event_ms() == 0:
        at.cluster.step()
    assert seen == phases


def test_a_pod_shows_its_life_with_the_times_of_the_run() -> None:
    at = world(kubelet={"pull_ms": 2000, "start_ms": 500})
    at.create(pod())
    at.settle()
    first = status(at)
    assert (first["phase"], first["startTime"]) == ("Pending", "2023-11-14T22:13:20Z")
    assert first["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert condition(first, "Ready")["reason"] == "ContainersNotReady"
    at.run(2500)
    runs = status(at)
    assert (runs["phase"], condition(runs, "Ready")["status"]) == ("Running", "True")
    assert runs["containerStatuses"][0]["state"] == {
        "running": {"startedAt": "2023-11-14T22:13:22Z"}
    }
    assert {runs["podIP"], runs["hostIP"]} == {"10.0.0.1", "192.168.0.1"}
    at.run(20_000)
    last = status(at)
    assert (last["phase"], condition(last, "Ready")["reason"]) == ("Succeeded", "PodCompleted")
    ended = last["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    assert (ended["startedAt"], ended["finishedAt"]) == (
        "2023-11-14T22:13:22Z", "2023-11-14T22:13:32Z",
    )  # fmt: skip
    assert all(each["status"] == "True" for each in [condition(last, "PodScheduled")])


@pytest.mark.parametrize(
    ("more", "phase", "reason", "container"),
    [
        ({"annotations": {"equipoise.dev/exit-code": "3"}}, "Failed", None, ("Error", 3)),
        ({"activeDeadlineSeconds": 4}, "Failed", "DeadlineExceeded", ("Error", 137)),
        ({"activeDeadlineSeconds": 10}, "Failed", "DeadlineExceeded", ("Error", 137)),
        ({"activeDeadlineSeconds": 11}, "Succeeded", None, ("Completed", 0)),
        ({"annotations": {"equipoise.dev/duration": "soon"}, "seconds": None},
         "Failed", "InvalidAnnotation", None),
        ({"annotations": {"equipoise.dev/work": "5e9"}, "seconds": None},
         "Failed", "InvalidAnnotation", None),
    ],
)  # fmt: skip
def test_a_pod_fails_for_a_reason(
    more: Object, phase: str, reason: str | None, container: tuple[str, int] | None
) -> None:
    at = world()
    at.create(pod(**more))
    at.run(60_000)
    found = status(at)
    assert (found["phase"], found.get("reason")) == (phase, reason)
    if container:
        ended = found["containerStatuses"][0]["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == container


def test_work_takes_as_long_as_the_cores_of_the_node_need() -> None:
    node = node_object("n", cpu_milli=2000, speed_flops=2e9)
    at = World([node])
    at.create(pod(seconds="1", annotations={"equipoise.dev/work": "5e9"}))
    at.run(3499)
    assert status(at)["phase"] == "Running"
    at.run(3500)
    assert status(at)["phase"] == "Succeeded"


def test_memory_above_the_limit_ends_the_pod() -> None:
    at = world()
    body = pod(annotations={"equipoise.dev/usage": "3s:100m:10Mi,1s:1:30Mi"})
    body["spec"]["containers"][0]["resources"]["limits"] = {"memory": "20Mi"}
    at.create(body)
    at.run(3000)
    found = status(at)
    assert found["phase"] == "Failed"
    assert found["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"


def test_a_pod_that_crashes_waits_longer_after_each_restart() -> None:
    at = world()
    at.create(
        pod(
            seconds="1",
            restartPolicy="OnFailure",
            annotations={"equipoise.dev/exit-code": "1,1,1,0"},
        )
    )
    waits: list[tuple[int, int]] = []

    def note(change: Change) -> None:
        statuses = change.object["status"].get("containerStatuses") or ()
        waits.extend((at.time.now_ms, each["restartCount"]) for each in statuses)

    at.store.subscribe(note, PODS)
    at.run(60_000)
    # The first restart is at once, the second after 10 s, the third after 20 s.
    starts = [
        ms for index, (ms, count) in enumerate(waits) if not index or waits[index - 1][1] < count
    ]
    assert starts == [0, 1000, 12_000, 33_000]
    assert status(at)["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("bindings", "reason"),
    [([("a", 2000), ("b", 1000)], "OutOfcpu"), ([("a", 1000), ("b", 1001)], "OutOfcpu")],
)
def test_a_kubelet_rejects_what_does_not_fit_and_says_who_led_to_it(
    bindings: list[tuple[str, int]], reason: str
) -> None:
    at = world(schedules=False)
    for name, cpu in bindings:
        at.create(pod(name, cpu))
        at.store.bind("default", name, "node-0")
    at.run(5000)
    assert (status(at, "a")["phase"], status(at, "b")["phase"]) == ("Running", "Failed")
    assert status(at, "b")["reason"] == reason
    (found,) = at.cluster.over_allocations
    assert (found.pod, found.pods, found.resource, found.rejected) == (
        "default/b", ("default/a", "default/b"), "cpu", True,
    )  # fmt: skip
    assert (found.requested, found.allocatable) == (sum(cpu for _, cpu in bindings), 2000)
    assert found.explanation


def test_an_over_allocated_node_runs_all_pods_if_it_may_as_in_batkube() -> None:
    at = world(schedules=False, kubelet={"rejects_over_allocation": False})
    for name in "abc":
        at.create(pod(name))
        at.store.bind("default", name, "node-0")
    at.run(20_000)
    assert at.phases() == {"Succeeded": 3}
    (found,) = at.cluster.over_allocations
    assert (found.pod, found.at_ms, found.end_ms, found.rejected) == ("default/c", 0, 10_000, False)


@pytest.mark.parametrize(
    ("stop", "grace_s", "gone_ms"),
    [("0", 30, 5000), ("3", 30, 8000), ("9", 3, 8000), ("60", 30, 10_000), ("5", 0, 5000)],
)
def test_a_deleted_pod_goes_when_it_has_stopped_or_after_its_grace(
    stop: str, grace_s: int, gone_ms: int
) -> None:
    at = world()
    at.create(pod(annotations={"equipoise.dev/stop": stop}))
    at.run(5000)
    at.store.delete(PODS, "p", "default", grace_s=grace_s)
    gone: list[int] = []
    if at.store.find(PODS, "p", "default") is None:
        gone.append(at.time.now_ms)
    at.store.subscribe(
        lambda change: gone.append(at.time.now_ms) if change.kind is ChangeKind.DELETED else None,
        PODS,
    )
    at.run(60_000)
    assert gone == [gone_ms]
    assert not at.cluster.pods.pods


def test_init_containers_run_first_and_count_if_they_request_more() -> None:
    at = world(cpu="4")
    body = pod(annotations={"equipoise.dev/init-duration": "2s,3s"})
    resources = {"requests": {"cpu": "3"}}
    body["spec"]["initContainers"] = [
        {"name": "i0", "image": "i", "resources": resources}, {"name": "i1", "image": "i"},
    ]  # fmt: skip
    at.create(body)
    at.run(2000)
    found = status(at)
    states = [next(iter(each["state"])) for each in found["initContainerStatuses"]]
    assert (found["phase"], states) == ("Pending", ["terminated", "running"])
    assert at.cluster.pods.nodes["node-0"].requested["cpu"] == 3000
    at.run(5000)
    assert status(at)["phase"] == "Running"


def test_a_pod_may_be_bound_to_a_node_that_comes_later() -> None:
    at = world(0, schedules=False)
    at.create({**pod(), "spec": {**pod()["spec"], "nodeName": "later"}})
    at.run(1000)
    assert status(at)["phase"] == "Pending"
    at.cluster.add_node(node_object("later", cpu_milli=1000))
    at.run(12_000)
    assert status(at)["phase"] == "Succeeded"


def test_a_node_that_is_down_is_tainted_and_its_pods_are_evicted_later() -> None:
    at = world(2, "4", schedules=False)
    at.create(pod("plain", seconds=None))
    forever = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}
    at.create(pod("loyal", seconds=None, tolerations=[forever]))
    at.create(pod("quick", seconds=None, tolerations=[{**forever, "tolerationSeconds": 5}]))
    for name in ("plain", "loyal", "quick"):
        at.store.bind("default", name, "node-0")
    at.run(1000)
    at.cluster.fail_node("node-0")
    at.run(40_999)
    ready = condition(at.store.get(NODES, "node-0")["status"], "Ready")
    assert ready["status"] == "True"
    at.run(41_000)
    node = at.store.get(NODES, "node-0")
    assert condition(node["status"], "Ready")["status"] == "Unknown"
    assert {each["effect"] for each in node["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
    assert condition(status(at, "loyal"), "Ready")["status"] == "False"

    def deleted() -> list[str]:
        return [
            each["metadata"]["name"]
            for each in at.pods()
            if each["metadata"].get("deletionTimestamp")
        ]

    at.run(46_000)
    assert deleted() == ["quick"]
    at.run(341_000)
    assert deleted() == ["plain", "quick"]
    at.cluster.return_node("node-0")
    at.run(341_000)
    assert [each["metadata"]["name"] for each in at.pods()] == ["loyal"]
    # It never restarts, and its containers are gone.
    assert status(at, "loyal")["phase"] == "Failed"
    node = at.store.get(NODES, "node-0")
    assert condition(node["status"], "Ready")["status"] == "True"
    assert "taints" not in node["spec"]


def test_a_short_failure_is_not_noticed_and_pods_start_again() -> None:
    at = world()
    at.create(pod(restartPolicy="Always", seconds=None))
    at.run(1000)
    at.cluster.fail_node("node-0")
    at.run(3000)
    at.cluster.return_node("node-0")
    at.run(100_000)
    found = status(at)["containerStatuses"][0]
    assert (status(at)["phase"], found["restartCount"]) == ("Running", 1)
    assert "taints" not in at.store.get(NODES, "node-0")["spec"]


def test_a_taint_of_an_operator_evicts_at_once_unless_it_is_tolerated() -> None:
    at = world()
    at.create(pod("a", seconds=None))
    at.create(
        pod("b", seconds=None, tolerations=[{"key": "k", "value": "v", "effect": "NoExecute"}])
    )
    at.run(1000)
    taint = {"key": "k", "value": "v", "effect": "NoExecute"}
    at.store.update(NODES, "node-0", "", lambda body: {**body, "spec": {"taints": [taint]}})
    at.run(1000)
    assert [each["metadata"]["name"] for each in at.pods()] == ["b"]


def test_pods_of_a_node_that_leaves_go_with_it() -> None:
    at = world(2)
    at.create(pod("a", 2000))
    at.create(pod("b", 2000))
    at.run(1000)
    at.cluster.remove_node("node-0")
    at.run(1000)
    assert [each["metadata"]["name"] for each in at.pods()] == ["b"]


def test_pods_are_jobs_in_the_records_and_nodes_draw_power_by_their_usage() -> None:
    state = PowerState(1.0, idle_w=100.0, base_w=100.0, full_w=200.0)
    host = JobHost(name="n", power_states=(state,), measures_power=True)
    platform = Platform(hosts=[host])
    ended: list[tuple[Any, ...]] = []

    class Rows:
        def write_job(self, job: Any) -> None:
            ended.append((job.name, job.state, job.submit_s, job.start_s, job.run_s, job.hosts))

        def write_hosts(self, now_s: float, counts: list[int]) -> None:
            pass

    at = World(
        [node_object("n", cpu_milli=2000)],
        records=lambda time: PodJobRecords(platform, time, recorder=Rows()),
    )
    at.create(pod("half", seconds="10"))
    at.create(pod("late", 2000, seconds="5", annotations={"equipoise.dev/exit-code": "1"}))
    at.create(pod("huge", 9000))
    at.run(20_000)
    at.store.delete(PODS, "huge", "default")
    assert at.records is not None
    at.records.finish()
    assert ended == [
        ("half", JobState.SUCCEEDED, 0.0, 0.0, 10.0, (0,)),
        ("late", JobState.FAILED, 0.0, 10.0, 5.0, (0,)),
        ("huge", JobState.REJECTED, 0.0, -1.0, -1.0, ()),
    ]
    # 10 s at half load, 5 s at full load, 5 s idle.
    assert at.records.energy_j == pytest.approx(10 * 150 + 5 * 200 + 5 * 100)
    assert at.records.summary.makespan_s == 15.0
