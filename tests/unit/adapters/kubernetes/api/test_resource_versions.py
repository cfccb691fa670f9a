"""The versions that a client may ask for: of lists, of pages and of single objects."""

from __future__ import annotations

import pytest

from equipoise.adapters.kubernetes.api.resources import NODES
from kubernetes_api import JSON_PATCH, PODS_PATH, InProcessApi, a_node, a_pod


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nodes?resourceVersion=999999",
        "/api/v1/nodes?resourceVersion=999999&resourceVersionMatch=NotOlderThan",
        "/api/v1/nodes?resourceVersion=999999&resourceVersionMatch=Exact",
        "/api/v1/nodes?resourceVersion=999999&limit=1",
        "/api/v1/nodes/a?resourceVersion=999999",
    ],
)
def test_a_version_that_is_not_reached_is_a_timeout_with_its_cause(path: str) -> None:
    """As in Kubernetes: a client sees the cause, and lists again without a version."""
    with InProcessApi() as api:
        api.store.create(NODES, a_node("a"))
        answer = api.get(path)
        assert (answer.status, answer.reason) == (504, "Timeout")
        (cause,) = answer.body["details"]["causes"]
        assert cause["reason"] == "ResourceVersionTooLarge"
        assert answer.headers["retry-after"] == "1"


def test_an_object_is_read_at_any_version_that_is_reached() -> None:
    with InProcessApi() as api:
        version = api.store.create(NODES, a_node("a"))["metadata"]["resourceVersion"]
        for text in ("0", "1", version):
            assert api.get(f"/api/v1/nodes/a?resourceVersion={text}").status == 200
        assert api.get("/api/v1/nodes/a?resourceVersion=new").status == 400


def test_a_page_takes_its_version_from_its_token() -> None:
    with InProcessApi() as api:
        for name in "abc":
            api.store.create(NODES, a_node(name))
        first = api.get("/api/v1/nodes?limit=1").body
        token = first["metadata"]["continue"]
        path = f"/api/v1/nodes?limit=1&continue={token}"
        assert api.get(f"{path}&resourceVersion=0").status == 200
        assert api.get(f"{path}&resourceVersion=3").status == 400


@pytest.mark.parametrize(
    ("value", "status"),
    [(1, 200), (1.0, 200), (True, 422), ("1", 422), (None, 422), ([1], 422)],
)
def test_a_json_patch_compares_values_with_their_types(value: object, status: int) -> None:
    with InProcessApi() as api:
        api.post(PODS_PATH, a_pod(terminationGracePeriodSeconds=1))
        test = {"op": "test", "path": "/spec/terminationGracePeriodSeconds", "value": value}
        assert api.patch(f"{PODS_PATH}/p", [test], JSON_PATCH).status == status


def test_the_log_of_a_container_that_is_not_there_is_refused() -> None:
    with InProcessApi() as api:
        api.post(PODS_PATH, a_pod())
        assert api.get(f"{PODS_PATH}/p/log?container=c").status == 200
        assert api.get(f"{PODS_PATH}/p/log?container=x").status == 400
