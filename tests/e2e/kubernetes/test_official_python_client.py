"""The official Python client works with the API as with a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from equipoise.adapters.kubernetes.api.resources import NODES, PODS
from equipoise.adapters.kubernetes.api.server import ServerOptions
from kubernetes_api import a_node, a_pod
from kubernetes_server import ServedApi

kubernetes = pytest.importorskip("kubernetes", reason="the official Python client is missing")
pytest.importorskip("uvicorn", reason="equipoise[kube] is missing")
# The client leaves its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

from kubernetes import client, watch  # noqa: E402


@pytest.fixture
def api() -> Iterator[ServedApi]:
    with ServedApi() as served:
        yield served


@pytest.fixture
def core(api: ServedApi) -> Iterator[Any]:
    yield from _client(api.url)


def _client(url: str, token: str = "") -> Iterator[Any]:
    configuration = client.Configuration(host=url)
    if token:
        configuration.api_key = {"authorization": f"Bearer {token}"}
    with client.ApiClient(configuration) as connection:
        yield client.CoreV1Api(connection)


def test_objects_are_created_read_changed_and_deleted(core: Any) -> None:
    created = core.create_namespaced_pod("default", a_pod("p", labels={"app": "x"}))
    assert (created.status.phase, created.spec.scheduler_name) == ("Pending", "default-scheduler")
    assert [pod.metadata.name for pod in core.list_pod_for_all_namespaces().items] == ["p"]
    patched = core.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"b": "y"}}})
    assert patched.metadata.labels == {"app": "x", "b": "y"}
    patched.metadata.labels["c"] = "z"
    assert core.replace_namespaced_pod("p", "default", patched).metadata.labels["c"] == "z"
    with pytest.raises(client.ApiException) as stale:
        core.replace_namespaced_pod("p", "default", patched)
    assert (stale.value.status, stale.value.reason) == (409, "Conflict")
    core.delete_namespaced_pod("p", "default")
    with pytest.raises(client.ApiException) as missing:
        core.read_namespaced_pod("p", "default")
    assert missing.value.status == 404


def test_a_scheduler_watches_and_binds(api: ServedApi, core: Any) -> None:
    api.call(lambda: api.store.create(NODES, a_node("n1")))
    for name in ("a", "b"):
        api.call(lambda name=name: api.store.create(PODS, a_pod(name)))  # type: ignore[misc]
    seen = []
    follow: Any = watch.Watch
    stream = follow().stream(
        core.list_pod_for_all_namespaces, timeout_seconds=20,
        field_selector="status.phase!=Succeeded,status.phase!=Failed",
    )  # fmt: skip
    for event in stream:
        pod = event["object"]
        seen.append((event["type"], pod.metadata.name))
        if event["type"] == "ADDED":
            body = client.V1Binding(
                metadata=client.V1ObjectMeta(name=pod.metadata.name),
                target=client.V1ObjectReference(kind="Node", name="n1"),
            )
            core.create_namespaced_pod_binding(
                pod.metadata.name, "default", body, _preload_content=False
            )
        elif event["type"] == "MODIFIED":
            assert pod.spec.node_name == "n1"
            core.patch_namespaced_pod_status(
                pod.metadata.name, "default", {"status": {"phase": "Succeeded"}}
            )
        if len(seen) == 6:
            break
    assert sorted(seen) == [
        (kind, name) for kind in ("ADDED", "DELETED", "MODIFIED") for name in ("a", "b")
    ]
    assert core.list_namespaced_pod("default", field_selector="spec.nodeName=n1").items[0]


def test_a_disruption_budget_refuses_an_eviction(api: ServedApi, core: Any) -> None:
    policy: Any = client.PolicyV1Api(core.api_client)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    policy.create_namespaced_pod_disruption_budget(
        "default", {"metadata": {"name": "b"}, "spec": spec}
    )
    for name in ("a", "b"):
        core.create_namespaced_pod("default", a_pod(name, labels={"app": "x"}, nodeName="n"))
        core.patch_namespaced_pod_status(name, "default", {"status": {"phase": "Running"}})
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="a"))
    core.create_namespaced_pod_eviction("a", "default", eviction, _preload_content=False)
    with pytest.raises(client.ApiException) as refused:
        core.create_namespaced_pod_eviction("b", "default", eviction, _preload_content=False)
    assert refused.value.status == 429


def test_a_token_is_needed_when_the_server_has_one() -> None:
    with ServedApi(ServerOptions(token="secret")) as served:
        (core,) = _client(served.url)
        with pytest.raises(client.ApiException) as refused:
            core.list_node()
        assert refused.value.status == 401
        (core,) = _client(served.url, "secret")
        assert core.list_node().items == []
