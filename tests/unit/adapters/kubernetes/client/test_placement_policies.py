"""Where our scheduler places pods, and why it does not."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from equipoise.adapters.kubernetes.client.cluster_view import ClusterView
from equipoise.adapters.kubernetes.client.policies import POLICIES, pods_to_evict

Object = dict[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_UIDS = count()
TOLERATION = {"key": "gpu", "operator": "Exists"}
TAINT = {"key": "gpu", "effect": "NoSchedule"}


def apart(**term: Any) -> Object:
    selector = {"matchLabels": {"app": "web"}}
    stated = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname", **term}
    return {"podAntiAffinity": {_REQUIRED: [stated]}}


def on_label(operator: str, *values: str) -> Object:
    expression = {"key": "disk", "operator": operator, "values": list(values)}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}


def node(name: str, cpu: str = "4", labels: Object | None = None, **spec: Any) -> Object:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {"allocatable": amounts},
    }


def pod(name: str, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> Object:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    metadata = {
        "name": name, "namespace": "default", "uid": f"u{next(_UIDS)}",
        "labels": spec.pop("labels", {}), "ownerReferences": spec.pop("owners", []),
    }  # fmt: skip
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def view_of(*objects: Object) -> ClusterView:
    view = ClusterView("default-scheduler")
    for body in objects:
        resource = "pods" if "containers" in body["spec"] else "nodes"
        view.apply(resource, "ADDED", body)
    return view


def schedule(policy: str, view: ClusterView) -> tuple[dict[str, str], dict[str, str]]:
    """Return the nodes of the pods that are placed, and the reasons of the others."""
    nodes, reasons = {}, {}
    for choice in POLICIES[policy](view):
        if choice.node is None:
            reasons[choice.pod.name] = choice.reason
        else:
            view.assume(choice.pod, choice.node)
            nodes[choice.pod.name] = choice.node.name
    return nodes, reasons


ALL = pytest.mark.parametrize("policy", list(POLICIES))


def test_first_fit_fills_the_first_node() -> None:
    view = view_of(node("n1", "2"), node("n2"), pod("a"), pod("b"), pod("c"))
    assert schedule("first-fit", view)[0] == {"a": "n1", "b": "n1", "c": "n2"}


@pytest.mark.parametrize("policy", ["least-loaded", "balance"])
def test_pods_spread_over_equal_nodes(policy: str) -> None:
    view = view_of(node("n1"), node("n2"), node("n3"), *(pod(name) for name in "abcdef"))
    nodes, reasons = schedule(policy, view)
    assert sorted(nodes.values()) == ["n1", "n1", "n2", "n2", "n3", "n3"]
    assert reasons == {}


@ALL
def test_no_node_takes_more_than_it_has(policy: str) -> None:
    view = view_of(node("n1", "2"), node("n2", "2"), *(pod(name) for name in "abcdef"))
    nodes, reasons = schedule(policy, view)
    assert sorted(nodes.values()) == ["n1", "n1", "n2", "n2"]
    assert sorted(nodes) == ["a", "b", "c", "d"], "in order of arrival"
    assert set(reasons.values()) == {"0/2 nodes are available: 2 with too little cpu."}


@ALL
def test_a_higher_priority_is_served_first(policy: str) -> None:
    view = view_of(node("n1", "1"), pod("low"), pod("high", priority=5))
    assert schedule(policy, view)[0] == {"high": "n1"}


@ALL
@pytest.mark.parametrize(
    ("closed", "demands"),
    [
        (node("n1"), {"nodeSelector": {"disk": "ssd"}}),
        (node("n1", taints=[TAINT]), {}),
        (node("n1", taints=[TAINT]), {"tolerations": [{**TOLERATION, "key": "other"}]}),
        (node("n1", taints=[TAINT]), {"tolerations": [{"key": "gpu", "value": "x"}]}),
        (node("n1", unschedulable=True), {}),
        (node("n1"), {"affinity": on_label("In", "ssd", "nvme")}),
        (node("n1", labels={"disk": "hdd"}), {"affinity": on_label("NotIn", "hdd")}),
    ],
)
def test_a_node_that_may_not_take_a_pod_is_left_out(
    policy: str, closed: Object, demands: Object
) -> None:
    view = view_of(closed, pod("p", **demands))
    assert schedule(policy, view)[0] == {}
    view.apply("nodes", "ADDED", node("n2", labels={"disk": "ssd"}))
    assert schedule(policy, view)[0] == {"p": "n2"}


def test_an_empty_term_of_a_node_affinity_matches_no_node() -> None:
    affinity: Object = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{}]}}}
    assert schedule("first-fit", view_of(node("n1"), pod("p", affinity=affinity)))[0] == {}


@ALL
def test_a_tolerated_taint_closes_nothing(policy: str) -> None:
    view = view_of(node("n1", taints=[TAINT]), pod("p", tolerations=[TOLERATION]))
    assert schedule(policy, view)[0] == {"p": "n1"}


@ALL
def test_replicas_with_anti_affinity_have_a_node_each(policy: str) -> None:
    replicas = [pod(name, labels={"app": "web"}, affinity=apart()) for name in "abc"]
    nodes, reasons = schedule(policy, view_of(node("n1"), node("n2"), *replicas))
    assert sorted(nodes.values()) == ["n1", "n2"]
    assert len(reasons) == 1


@ALL
def test_anti_affinity_of_a_running_pod_keeps_others_away(policy: str) -> None:
    running = pod("r", nodeName="n1", affinity=apart())
    view = view_of(node("n1"), node("n2"), running, pod("w", labels={"app": "web"}), pod("x"))
    assert schedule(policy, view)[0]["w"] == "n2"


@ALL
@pytest.mark.parametrize(
    "demand",
    [
        {"affinity": apart(topologyKey="zone")},
        {"affinity": {"podAffinity": {_REQUIRED: [{"topologyKey": "zone"}]}}},
        {"affinity": on_label("Gt", "5")},
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]},
        {"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]},
    ],
)
def test_a_pod_that_demands_the_unknown_waits_with_the_reason(policy: str, demand: Object) -> None:
    nodes, reasons = schedule(policy, view_of(node("n1"), pod("p", **demand), pod("q")))
    assert nodes == {"q": "n1"}
    assert "not supported" in reasons["p"]


def test_pods_of_other_schedulers_and_gated_pods_are_not_placed() -> None:
    others = [pod("a", schedulerName="x"), pod("b", schedulingGates=[{"name": "g"}])]
    view = view_of(node("n1", "1"), *others, pod("c"))
    assert schedule("first-fit", view)[0] == {"c": "n1"}


def test_the_end_of_a_pod_makes_room() -> None:
    running, waiting = pod("r", nodeName="n1"), pod("w")
    view = view_of(node("n1", "1"), running, waiting)
    assert schedule("balance", view)[0] == {}
    view.changed = False
    view.apply("pods", "MODIFIED", {**waiting, "status": {"conditions": []}})
    assert not view.changed, "a condition gives no room"
    view.apply("pods", "MODIFIED", {**running, "status": {"phase": "Succeeded"}})
    assert view.changed
    assert schedule("balance", view)[0] == {"w": "n1"}


def test_balance_would_move_only_pods_that_are_created_again() -> None:
    owner = {"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    crowded = [pod(name, nodeName="n1", owners=[owner]) for name in "abcd"]
    nodes = (node("n1"), node("n2"))
    moved = pods_to_evict(view_of(*nodes, *crowded))
    assert 1 <= len(moved) <= 2
    bare = [pod(name, nodeName="n1") for name in "abcd"]
    assert pods_to_evict(view_of(*nodes, *bare)) == []
    even = [
        pod(name, nodeName=f"n{number % 2 + 1}", owners=[owner])
        for number, name in enumerate("abcd")
    ]
    assert pods_to_evict(view_of(*nodes, *even)) == []
