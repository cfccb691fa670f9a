"""What becomes of nodes and pods of a live cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equipoise.adapters.kubernetes.client.importer import ImportedCluster, convert_cluster
from equipoise.adapters.kubernetes.workload.load import read_pod_workload
from equipoise.files.parse import parse_inventory
from equipoise.files.write import plain_to_yaml, to_yaml
from equipoise.model.rule import KeepApart, StayWithin
from equipoise.model.vm import VmState

Object = dict[str, Any]
SECRET = "s3cr3t"
ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"app": "web"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


def node(name: str, labels: Object | None = None, **spec: Any) -> Object:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "2000Gi"}
    return {
        "metadata": {
            "name": name, "uid": SECRET, "labels": labels or {}, "managedFields": [{"a": SECRET}],
            "annotations": {"note": SECRET},
        },
        "spec": {"providerID": SECRET, **spec},
        "status": {
            "capacity": amounts,
            "allocatable": amounts | {"cpu": "3920m", "memory": "7Gi"},
            "conditions": [{"type": "Ready", "status": "True", "message": SECRET}],
            "images": [{"names": [SECRET]}],
        },
    }  # fmt: skip


def pod(name: str, node_name: str = "", phase: str = "Running", **more: Any) -> Object:
    metadata = more.pop("metadata", {})
    container = {
        "name": "c", "image": "i", "command": [SECRET], "env": [{"name": "A", "value": SECRET}],
        "envFrom": [{"secretRef": {"name": SECRET}}], "volumeMounts": [{"name": SECRET}],
        "resources": {"requests": more.pop("requests", {"cpu": "500m", "memory": "1Gi"})},
    }  # fmt: skip
    spec = {
        "containers": [container], "volumes": [{"name": "v", "secret": {"secretName": SECRET}}],
        "serviceAccountName": SECRET, "restartPolicy": "Always", **more,
    }  # fmt: skip
    annotations = {"last-applied": SECRET, "equipoise.dev/duration": "60"}
    return {
        "metadata": {
            "name": name, "namespace": "shop", "annotations": annotations,
            "labels": {"app": "web"}, **metadata,
        },
        "spec": spec | ({"nodeName": node_name} if node_name else {}),
        "status": {"phase": phase, "message": SECRET},
    }  # fmt: skip


def text_of(found: ImportedCluster) -> str:
    return plain_to_yaml(found.manifests()) + to_yaml(found.inventory)


def test_nothing_secret_and_no_status_is_copied() -> None:
    found = convert_cluster([node("n1")], [pod("p", "n1")])
    assert SECRET not in text_of(found)
    assert list(found.pods[0]) == ["apiVersion", "kind", "metadata", "spec"]
    assert found.pods[0]["metadata"]["annotations"] == {"equipoise.dev/duration": "60"}
    assert found.nodes[0]["status"]["allocatable"]["cpu"] == "3920m"


def test_the_manifests_are_a_workload(tmp_path: Path) -> None:
    taint = {"key": "gpu", "value": "1e3", "effect": "NoSchedule"}
    labels = {"zone": "no", "commit": "12e45", "empty": ""}
    nodes = [node("n1", labels, taints=[taint]), node("n2")]
    found = convert_cluster(nodes, [pod("p", "n1"), pod("q", phase="Pending")])
    path = tmp_path / "cluster.yaml"
    path.write_text(plain_to_yaml(found.manifests()), encoding="utf-8")
    workload = read_pod_workload(path)
    assert workload.nodes == list(found.nodes)
    assert workload.nodes[0]["metadata"]["labels"] == labels
    assert workload.nodes[0]["spec"]["taints"] == [taint]
    pods = [body for _, body in workload.arrivals if body["kind"] == "Pod"]
    assert pods == list(found.pods)
    assert [body["spec"].get("nodeName") for body in pods] == ["n1", None]


def test_requests_are_reservations_and_the_rest_of_a_node_is_its_reserve() -> None:
    found = convert_cluster([node("n1")], [pod("p", "n1"), pod("q", phase="Pending")])
    (host,), (running, waiting) = found.inventory.hosts, found.inventory.vms
    assert (host.usable_cpu_mhz, host.usable_memory_mib) == (3920, 7 * 1024)
    assert host.cores == 4
    assert host.capacity == {"pods": 110, "ephemeral-storage": 2000 * 1024}
    assert (running.id, running.host, running.state) == ("shop/p", "n1", VmState.RUNNING)
    assert (running.cpu.reservation_mhz, running.memory.reservation_mib) == (500, 1024)
    assert (waiting.host, waiting.state) == (None, VmState.READY)


def test_the_inventory_can_be_read_back() -> None:
    nodes = [node("n1", {"disk": "ssd"}), node("n2", unschedulable=True)]
    pods = [
        pod("a", "n1", affinity=ANTI),
        pod("b", "n2", affinity=ANTI),
        pod("c", "n1", nodeSelector={"disk": "ssd"}, metadata={"labels": {}}),
    ]
    found = convert_cluster(nodes, pods)
    assert parse_inventory(to_yaml(found.inventory).encode(), "i.yaml") == found.inventory
    kinds = [type(rule) for rule in found.inventory.rules]
    assert kinds.count(KeepApart) == 1
    within = [rule for rule in found.inventory.rules if isinstance(rule, StayWithin)]
    assert ("shop/c",) in [rule.vms for rule in within] or any(
        "shop/c" in rule.vms and rule.hosts == ("n1",) for rule in within
    )


def test_replicas_that_exclude_each_other_are_one_rule() -> None:
    nodes = [node(f"n{number}") for number in range(4)]
    pods = [pod(f"p{number}", f"n{number}", affinity=ANTI) for number in range(4)]
    (rule,) = convert_cluster(nodes, pods).inventory.rules
    assert isinstance(rule, KeepApart)
    assert rule.vms == ("shop/p0", "shop/p1", "shop/p2", "shop/p3")


def test_a_pod_of_a_daemon_set_is_pinned() -> None:
    owner = {"kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    found = convert_cluster([node("n1")], [pod("p", "n1", metadata={"ownerReferences": [owner]})])
    assert found.inventory.vms[0].agent


def test_what_is_left_out_is_counted() -> None:
    ending = pod("e", "n1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    broken = pod("x", "n1", requests={"cpu": "much"})
    pods = [
        pod("a", "n1", "Succeeded"), pod("b", "n1", "Succeeded"), pod("c", "n1", "Failed"),
        ending, broken, pod("lost", "absent"), pod("free", "n1", requests={}),
    ]  # fmt: skip
    found = convert_cluster([node("n1")], pods)
    assert [body["metadata"]["name"] for body in found.pods] == ["free"]
    counts = sorted(int(warning.split()[0]) for warning in found.warnings)
    assert counts == [1, 1, 1, 1, 1, 2]


def test_a_name_that_is_longer_than_an_id_is_shortened() -> None:
    first, second = "a" * 200 + "1", "a" * 200 + "2"
    found = convert_cluster([node("n1")], [pod(first, "n1"), pod(second, "n1")])
    ids = {vm.id for vm in found.inventory.vms}
    assert len(ids) == 2
    assert parse_inventory(to_yaml(found.inventory).encode(), "i.yaml") == found.inventory
    assert len(found.warnings) == 1
