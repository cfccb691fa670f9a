"""``equipoise kube import`` and ``kube schedule`` by the installed command."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from command import COMMAND, call, call_here
from equipoise.adapters.kubernetes.api.resources import NODES, PODS
from equipoise.adapters.kubernetes.api.server import ServerOptions
from equipoise.api.loading import read_inventory_with_warnings
from kubernetes_api import a_node, a_pod
from kubernetes_server import ServedApi

pytest.importorskip("uvicorn", reason="equipoise[kube] is missing")
TOKEN = "a-token"


def scheduler(policy: str) -> str:
    return f"{COMMAND} kube schedule --policy {policy} --server {{url}}"


def run(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = call("kube", "run", "--clock", "stock", "--json", *arguments)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("policy", ["first-fit", "least-loaded", "balance"])
def test_a_burst_runs_in_waves_under_our_placement(policy: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    jobs = [{"id": f"j{number}", "subtime": 0, "res": 1, "profile": "d"} for number in range(10)]
    profiles = {"d": {"type": "delay", "delay": 170}}
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    found = run("--nodes", "4", "-w", str(path), "--scheduler", scheduler(policy), "--twice")
    assert found["makespan"] == 3 * 170
    assert (found["bindings"], found["pending_count"], found["over_allocations"]) == (10, 0, [])
    assert found["repeated"] is True


def test_a_pod_that_no_node_may_take_ends_pending_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "pods.json"
    pods = [
        a_pod("good") | {"apiVersion": "v1", "kind": "Pod"},
        a_pod("bad", nodeSelector={"disk": "ssd"}) | {"apiVersion": "v1", "kind": "Pod"},
    ]
    for pod in pods:
        pod["metadata"]["annotations"] = {"equipoise.dev/duration": "5"}
        pod["spec"]["restartPolicy"] = "Never"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    arguments = ("--nodes", "2", "-w", str(path), "--scheduler", scheduler("balance"))
    found = run(*arguments, code=1)
    (pending,) = found["pending"]
    assert pending["pod"] == "default/bad"
    assert pending["reason"].startswith("0/2 nodes are available: 2 without the labels")
    assert (found["bindings"], found["makespan"]) == (1, 5)


def imported(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = call_here("kube", "import", "--json", *arguments)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_a_cluster_is_imported_and_simulated(tmp_path: Path) -> None:
    kubeconfig, output = tmp_path / "config", tmp_path / "cluster.yaml"
    inventory, token = tmp_path / "inventory.yaml", tmp_path / "token"
    token.write_text(TOKEN)
    with ServedApi(ServerOptions(token=TOKEN)) as api:
        for name in ("n1", "n2"):
            api.call(partial(api.store.create, NODES, a_node(name)))
        pods = [a_pod("here", nodeName="n1"), a_pod("waiting")]
        for pod in pods:
            api.call(partial(api.store.create, PODS, pod, "default"))
        version = api.store.version
        kubeconfig.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "c", "cluster": {"server": api.url}}],
                    "users": [{"name": "u", "user": {"tokenFile": "token"}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                }
            )
        )
        found = imported(
            "--kubeconfig", str(kubeconfig), "--context", "x",
            "-o", str(output), "--inventory", str(inventory),
        )  # fmt: skip
        assert (found["nodes"], found["pods"]) == (2, 2)
        assert list(found) == ["nodes", "pods", "warnings"]
        by_url = imported("--server", api.url, "--token-file", str(token))
        assert by_url == found
        refused = imported("--server", api.url, code=3)
        assert refused["code"] == "api-unauthorized"
        assert api.store.version == version, "nothing is written"
    unreachable = imported("--server", api.url, code=3)
    assert unreachable["code"] == "api-unreachable"
    assert [vm.host for vm in read_inventory_with_warnings(inventory)[0].vms] == ["n1", None]
    outcome = run("-w", str(output), "--scheduler", scheduler("least-loaded"))
    assert (outcome["bindings"], outcome["pending_count"]) == (1, 0), "one has its node already"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "option-conflict"),
        (("--server", "http://h", "--kubeconfig", "f"), "option-conflict"),
        (("--kubeconfig", "f", "--token-file", "t"), "option-conflict"),
        (("--server", "http://h", "--context", "x"), "option-conflict"),
        (("--server", "h"), "invalid-value"),
        (("--kubeconfig", "absent"), "file-not-readable"),
    ],
)
def test_options_that_do_not_fit_are_named(arguments: tuple[str, ...], code: str) -> None:
    assert imported(*arguments, code=2)["code"] == code
