"""kubectl works with the API: the commands that users type first."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.adapters.kubernetes.api.resources import EVENTS, NODES, PODS
from kubernetes_api import a_node, a_pod
from kubernetes_server import ServedApi

pytest.importorskip("uvicorn", reason="equipoise[kube] is missing")
pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is missing (Debian: kubernetes-client)"
)

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: c
        image: nginx:1
        resources: {requests: {cpu: CPU}}
"""


class Kubectl:
    """kubectl with its own folder, so that no configuration of the user counts."""

    def __init__(self, url: str, folder: Path) -> None:
        self._command = ["kubectl", "--server", url, "--cache-dir", str(folder / "cache")]
        self._environment = {
            "HOME": str(folder), "KUBECONFIG": str(folder / "none"), "PATH": "/usr/bin:/bin",
        }  # fmt: skip

    def run(self, *words: str, stdin: str = "", code: int = 0) -> str:
        done = subprocess.run(
            [*self._command, *words], input=stdin, env=self._environment, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout if code == 0 else done.stderr

    def rows(self, *words: str) -> list[list[str]]:
        return [line.split() for line in self.run(*words).splitlines()]

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._command, *words], env=self._environment, stdout=subprocess.PIPE, text=True
        )


@pytest.fixture
def api() -> Iterator[ServedApi]:
    with ServedApi() as served:
        served.call(lambda: served.store.create(NODES, a_node("n1")))
        yield served


@pytest.fixture
def kubectl(api: ServedApi, tmp_path: Path) -> Kubectl:
    return Kubectl(api.url, tmp_path)


def test_pods_and_nodes_are_listed_with_ages_in_virtual_time(
    api: ServedApi, kubectl: Kubectl
) -> None:
    def bind_a_pod() -> None:
        api.store.create(PODS, a_pod("p1"))
        api.store.bind("default", "p1", "n1")
        api.now_ms = 3_600_000

    api.call(bind_a_pod)
    titles, row = kubectl.rows("get", "pods", "-o", "wide")
    assert titles[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:7] == ["p1", "0/1", "Pending", "0", "60m", "<none>", "n1"]
    assert kubectl.rows("get", "nodes", "--no-headers")[0][:4] == ["n1", "Ready", "<none>", "60m"]
    assert kubectl.rows("get", "ns", "--no-headers")[0] == ["default", "Active", "60m"]
    assert "v1.36" in kubectl.run("version")


def test_a_watch_prints_what_happens(api: ServedApi, kubectl: Kubectl) -> None:
    api.call(lambda: api.store.create(PODS, a_pod("p1")))
    process = kubectl.start("get", "pods", "-w", "--no-headers")
    assert process.stdout is not None
    assert process.stdout.readline().split()[:3] == ["p1", "0/1", "Pending"]
    while api.call(lambda: api.server.watches_open) == 0:
        threading.Event().wait(0.02)
    api.call(
        lambda: api.store.update(
            PODS, "p1", "default", lambda pod: {**pod, "status": {"phase": "Succeeded"}}
        )
    )
    assert process.stdout.readline().split()[:3] == ["p1", "0/1", "Succeeded"]
    process.terminate()
    process.communicate()


def test_describe_shows_events_of_both_groups(api: ServedApi, kubectl: Kubectl) -> None:
    api.call(lambda: api.store.create(PODS, a_pod("p1")))
    about = {"kind": "Pod", "name": "p1", "namespace": "default"}
    pod_uid = api.call(lambda: api.store.get(PODS, "p1", "default")["metadata"]["uid"])
    event = {
        "metadata": {"name": "p1.1"}, "involvedObject": {**about, "uid": pod_uid},
        "reason": "FailedScheduling", "message": "0/1 nodes are available", "type": "Warning",
    }  # fmt: skip
    api.call(lambda: api.store.create(EVENTS, event))
    assert "0/1 nodes are available" in kubectl.run("describe", "pod", "p1")
    assert "Allocatable" in kubectl.run("describe", "node", "n1")


def test_apply_validates_creates_and_merges(kubectl: Kubectl) -> None:
    manifest = DEPLOYMENT.replace("REPLICAS", "3").replace("CPU", "100m")
    assert "created" in kubectl.run("apply", "-f", "-", stdin=manifest)
    assert "unchanged" in kubectl.run("apply", "-f", "-", stdin=manifest)
    assert "dry run" in kubectl.run("apply", "-f", "-", "--dry-run=server", stdin=manifest)
    changed = manifest.replace("100m", "200m")
    assert "configured" in kubectl.run("apply", "-f", "-", stdin=changed)
    stored = json.loads(kubectl.run("get", "deployment", "web", "-o", "json"))
    (container,) = stored["spec"]["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "200m"}}
    assert stored["metadata"]["generation"] == 2
    wrong = manifest.replace("replicas:", "replicaz:")
    assert "replicaz" in kubectl.run("apply", "-f", "-", stdin=wrong, code=1)
    kubectl.run("scale", "deployment", "web", "--replicas=7")
    path = "jsonpath={.spec.replicas}"
    assert kubectl.run("get", "deployment", "web", "-o", path) == "7"
    kubectl.run("delete", "deployment", "web")
    assert kubectl.run("get", "deployments", "-o", "name") == ""


def test_a_manager_that_applies_another_value_gets_the_conflict(kubectl: Kubectl) -> None:
    manifest = DEPLOYMENT.replace("CPU", "100m")
    first, second = (manifest.replace("REPLICAS", count) for count in "37")
    apply = ("apply", "-f", "-", "--server-side")
    kubectl.run(*apply, "--field-manager=first", stdin=first)
    refused = kubectl.run(*apply, "--field-manager=second", stdin=second, code=1)
    assert '"first": .spec.replicas' in refused
    kubectl.run(*apply, "--field-manager=second", "--force-conflicts", stdin=second)
    assert kubectl.run("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "7"


def test_objects_are_created_replaced_patched_labelled_and_deleted(kubectl: Kubectl) -> None:
    pod = json.dumps({"apiVersion": "v1", "kind": "Pod", **a_pod("p1")})
    assert "created" in kubectl.run("create", "-f", "-", stdin=pod)
    kubectl.run("create", "-f", "-", stdin=pod, code=1)
    kubectl.run("label", "pod", "p1", "tier=front")
    kubectl.run("annotate", "pod", "p1", "note=x")
    kubectl.run("patch", "pod", "p1", "--type=merge", "-p", '{"metadata":{"labels":{"a":"b"}}}')
    operation = '[{"op":"replace","path":"/metadata/labels/a","value":"c"}]'
    kubectl.run("patch", "pod", "p1", "--type=json", "-p", operation)
    assert kubectl.run("get", "pods", "-l", "a=c,tier", "-o", "name").strip() == "pod/p1"
    edited = json.loads(kubectl.run("get", "pod", "p1", "-o", "json"))
    edited["metadata"]["labels"] = {"only": "this"}
    kubectl.run("replace", "-f", "-", stdin=json.dumps(edited))
    assert kubectl.run("get", "pods", "-l", "only=this,!a", "-o", "name").strip() == "pod/p1"
    kubectl.run("delete", "pod", "p1", "--wait=true")
    assert kubectl.run("get", "pods", "-o", "name") == ""


def test_nodes_are_cordoned_and_tainted_and_the_client_may_do_everything(kubectl: Kubectl) -> None:
    kubectl.run("cordon", "n1")
    assert kubectl.rows("get", "nodes", "--no-headers")[0][1] == "Ready,SchedulingDisabled"
    kubectl.run("uncordon", "n1")
    kubectl.run("taint", "node", "n1", "k=v:NoSchedule")
    path = "jsonpath={.spec.taints[0].effect}"
    assert kubectl.run("get", "node", "n1", "-o", path) == "NoSchedule"
    assert kubectl.run("auth", "can-i", "create", "pods").strip() == "yes"
    names = kubectl.run("api-resources", "-o", "name").split()
    assert {"pods", "nodes", "jobs.batch", "deployments.apps", "leases.coordination.k8s.io"} <= {
        *names
    }
