"""Pods follow their stages, keep within their nodes, and end when a plain count says so."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from equipoise.sim.pods.cluster import PodCluster
from equipoise.sim.pods.node import PodNode
from equipoise.sim.pods.over_allocation import judge_node
from equipoise.sim.pods.pod import NEXT_STAGES, Pod, PodStage
from equipoise.sim.pods.spec import (
    KubeletOptions,
    PodImage,
    PodNodeSpec,
    PodSpec,
    RestartPolicy,
    UsagePhase,
)
from plain_pods import Operation, PlainCluster

CAPACITY = {"n0": 3, "n1": 2}
HORIZON_MS = 120
AT_MS = st.integers(0, 40)
SHORT = st.integers(0, 12)
IMAGES = st.sampled_from([PodImage("a", 3), PodImage("b"), PodImage("c", 5)])


@st.composite
def pod_specs(draw: st.DrawFn, name: str) -> PodSpec:
    usage = draw(
        st.lists(
            st.builds(UsagePhase, st.integers(1, 6), st.integers(0, 3), st.integers(0, 3)),
            max_size=3,
        )
    )
    return PodSpec(
        name=name,
        requests={"cpu": draw(st.integers(0, 2)), "memory": 1},
        memory_limit_bytes=draw(st.none() | st.just(2)),
        duration_ms=draw(st.none() | SHORT),
        exit_codes=tuple(draw(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=3))),
        restart=draw(st.sampled_from(RestartPolicy)),
        deadline_ms=draw(st.none() | st.integers(0, 30)),
        images=tuple(draw(st.lists(IMAGES, max_size=2))),
        init_ms=tuple(draw(st.lists(SHORT, max_size=2))),
        stop_ms=draw(SHORT),
        usage=tuple(usage),
    )


@st.composite
def pod_runs(
    draw: st.DrawFn,
) -> tuple[KubeletOptions, dict[str, PodSpec], list[Operation]]:
    options = KubeletOptions(
        pull_ms=draw(st.integers(0, 4)),
        pull_bytes_per_s=draw(st.none() | st.just(1000)),
        start_ms=draw(st.integers(0, 3)),
        backoff_ms=2,
        backoff_ms_max=7,
        rejects_over_allocation=draw(st.booleans()),
    )
    names = [f"p{index}" for index in range(draw(st.integers(1, 4)))]
    specs = {name: draw(pod_specs(name)) for name in names}
    nodes = st.sampled_from(sorted(CAPACITY))
    operations = []
    for name in names:
        start = Operation(draw(AT_MS), "start", name, draw(nodes))
        operations.append(start)
        for _ in range(draw(st.integers(0, 2))):
            grace_ms = draw(SHORT)
            at_ms = start.at_ms + draw(st.integers(0, 30))
            operations.append(Operation(at_ms, "delete", name, grace_ms=grace_ms))
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["fail", "return"]))
        operations.append(Operation(draw(AT_MS), kind, draw(nodes)))
    # Deletions of one time follow the start of that time, as in the list.
    return options, specs, sorted(operations, key=lambda operation: operation.at_ms)


class Recorder:
    """Writes down all that an observer receives, and checks each step."""

    def __init__(self, cluster: PodCluster) -> None:
        self.cluster = cluster
        self.log: list[tuple[Any, ...]] = []
        self.stages: dict[int, PodStage] = {}
        self.pods: dict[str, Pod] = {}
        cluster.observers.append(self)

    def pod_changed(self, pod: Pod) -> None:
        before = self.stages.get(id(pod), PodStage.BOUND)
        assert pod.stage in NEXT_STAGES[before] | {PodStage.INITIALIZING}
        self.stages[id(pod)] = pod.stage
        self.log.append((self.cluster.now_ms, pod.name, pod.stage, pod.init_index))

    def usage_changed(self, node: PodNode) -> None:
        used = sum(pod.cpu_milli for pod in node.pods.values())
        assert (node.cpu_milli, node.cpu_milli >= 0) == (used, True)
        self.log.append((self.cluster.now_ms, node.name, node.cpu_milli, node.memory_bytes))

    def node_changed(self, node: PodNode) -> None:
        self.log.append((self.cluster.now_ms, node.name, node.is_down))


def new_cluster(options: KubeletOptions) -> PodCluster:
    cluster = PodCluster(options)
    for name, cpu in CAPACITY.items():
        cluster.add_node(PodNodeSpec(name=name, allocatable={"cpu": cpu, "memory": 9, "pods": 9}))
    return cluster


def apply(cluster: PodCluster, recorder: Recorder, operation: Operation, spec: Any) -> None:
    match operation.kind:
        case "start":
            recorder.pods[spec.name] = cluster.start_pod(spec, operation.node)
        case "delete" if operation.subject in cluster.pods:
            cluster.delete_pod(operation.subject, operation.grace_ms)
        case "fail":
            cluster.fail_node(operation.subject)
        case "return":
            cluster.return_node(operation.subject)


def play(
    options: KubeletOptions,
    specs: dict[str, PodSpec],
    operations: list[Operation],
    cuts: tuple[int, ...] = (),
) -> Recorder:
    cluster = new_cluster(options)
    recorder = Recorder(cluster)
    for operation in operations:
        for cut_ms in cuts:
            if cluster.now_ms < cut_ms < operation.at_ms:
                cluster.advance(cut_ms)
        cluster.advance(operation.at_ms)
        apply(cluster, recorder, operation, specs.get(operation.subject))
        check_safety(cluster)
        cluster.advance(operation.at_ms)
    for cut_ms in cuts:
        if cluster.now_ms < cut_ms < HORIZON_MS:
            cluster.advance(cut_ms)
    cluster.advance(HORIZON_MS)
    check_safety(cluster)
    return recorder


def check_safety(cluster: PodCluster) -> None:
    """The sums are those of the pods, and what is too much is recorded, as the judge says."""
    for node in cluster.nodes.values():
        cpu = sum(pod.spec.requests["cpu"] for pod in node.pods.values())
        assert (node.requested.get("cpu", 0), node.requested["pods"]) == (cpu, len(node.pods))
        wrong = judge_node(node, ["cpu", "memory", "pods"]).keys()
        assert wrong == set(node.exceeded(node.requested))
        lasting = {
            found.resource
            for found in cluster.over_allocations
            if found.node == node.name and found.end_ms is None
        }
        assert lasting == wrong


@given(pod_runs())
def test_a_plain_count_of_milliseconds_gives_the_same_lives(run: Any) -> None:
    options, specs, operations = run
    recorder = play(options, specs, operations)
    plain = PlainCluster(dict(CAPACITY), specs, options)
    plain.run(operations, HORIZON_MS)
    for name, pod in recorder.pods.items():
        facts: tuple[object, ...] = (
            pod.stage.value, pod.outcome and pod.outcome.value, pod.taken_ms, pod.started_ms,
            pod.ended_ms, pod.restarts, pod.exit_code,
        )  # fmt: skip
        expected = plain.pods[name].facts
        if pod.node.is_down and not pod.stage.is_final:
            facts, expected = facts[2:], expected[2:]  # the plain one has no stage for it
        assert facts == expected, name


@given(pod_runs(), st.lists(st.integers(0, HORIZON_MS), max_size=8))
def test_nothing_depends_on_how_time_is_cut_into_steps(run: Any, cuts: list[int]) -> None:
    whole = play(*run)
    options, specs, operations = run
    cut = play(options, specs, operations, tuple(sorted(cuts)))
    assert whole.log == cut.log
    assert [each.pod for each in whole.cluster.over_allocations] == [
        each.pod for each in cut.cluster.over_allocations
    ]


@given(pod_runs())
def test_every_pod_with_a_duration_that_never_restarts_ends_on_a_node_that_is_up(run: Any) -> None:
    cluster = play(*run).cluster
    for pod in cluster.pods.values():
        spec = pod.spec
        if spec.duration_ms is not None and spec.restart is RestartPolicy.NEVER:
            assert pod.stage.is_final or pod.node.is_down
    assert all(node.cpu_milli == 0 for node in cluster.nodes.values() if not node.pods)
