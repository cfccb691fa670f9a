"""A client of either dialect, with any selector, ends with exactly what the store has."""

from __future__ import annotations

from itertools import islice
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from equipoise.adapters.kubernetes.api.resources import PODS
from kubernetes_api import InProcessApi, a_pod

Object = dict[str, Any]

NAMES = ["a", "b", "c", "d", "e"]
SELECTORS = [
    "",
    "labelSelector=app%3Dx",
    "labelSelector=app%20in%20(x,y),!gone",
    "fieldSelector=status.phase!=Succeeded,status.phase!=Failed",
    "fieldSelector=spec.nodeName%3Dn1",
    "fieldSelector=metadata.name%3Da&labelSelector=app!%3Dy",
]
ACTS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(NAMES), st.sampled_from(["x", "y", ""])),
    st.tuples(st.just("label"), st.sampled_from(NAMES), st.sampled_from(["x", "y", ""])),
    st.tuples(st.just("phase"), st.sampled_from(NAMES), st.sampled_from(["Running", "Succeeded"])),
    st.tuples(st.just("bind"), st.sampled_from(NAMES), st.sampled_from(["n1", "n2"])),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just("")),
    st.tuples(st.just("reconnect"), st.just(""), st.just("")),
    st.tuples(st.just("bookmark"), st.just(""), st.just("")),
)
NAMESPACES = st.sampled_from(["default", "kube-system"])


class Client:
    """An informer: lists, watches, lists again when its version is too old."""

    def __init__(
        self, api: InProcessApi, path: str, selector: str, *, is_streaming: bool, page: int
    ) -> None:
        self.api, self.path, self.selector = api, path, selector
        self.is_streaming, self.page = is_streaming, page
        self.objects: dict[tuple[str, str], Object] = {}
        self.version = ""
        self.relists = 0
        self.synced = False
        self.connect()

    def connect(self) -> None:
        query = f"allowWatchBookmarks=true&{self.selector}"
        if self.version:
            query += f"&resourceVersion={self.version}"
        elif self.is_streaming:
            self.objects.clear()
            query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        else:
            self.list()
            query += f"&resourceVersion={self.version}"
        self.stream = self.api.watch(self.path, query)

    def list(self) -> None:
        self.objects.clear()
        query = f"?{self.selector}" + (f"&limit={self.page}" if self.page else "")
        answer = self.api.get(self.path + query)
        while True:
            body = answer.body
            if answer.status == 410:
                answer = self.api.get(self.path + query)
                self.objects.clear()
                continue
            for item in body["items"]:
                self.objects[_key(item)] = item
            self.version = body["metadata"]["resourceVersion"]
            if not body["metadata"].get("continue"):
                return
            answer = self.api.get(f"{self.path}{query}&continue={body['metadata']['continue']}")

    def follow(self) -> None:
        for event in self.stream.events():
            kind, shown = event["type"], event["object"]
            if kind == "ERROR":
                assert shown["code"] == 410
                self.version = ""
                self.relists += 1
                self.connect()
                self.follow()
                return
            version = shown["metadata"]["resourceVersion"]
            if self.synced or not self.is_streaming:
                assert int(version) >= int(self.version or 0)
            self.version = version
            if kind == "BOOKMARK":
                if "annotations" in shown["metadata"]:
                    self.synced = True
            elif kind == "DELETED":
                del self.objects[_key(shown)]
            else:
                assert (kind == "MODIFIED") == (_key(shown) in self.objects)
                self.objects[_key(shown)] = shown


def _key(item: Object) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def act(api: InProcessApi, kind: str, name: str, value: str, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    match kind:
        case "create":
            api.post(path, a_pod(name, labels={"app": value} if value else {}))
        case "label":
            api.patch(f"{path}/{name}", {"metadata": {"labels": {"app": value or None}}})
        case "phase":
            api.patch(f"{path}/{name}/status", {"status": {"phase": value}})
        case "bind":
            api.post(f"{path}/{name}/binding", {"target": {"name": value}})
        case "delete":
            api.delete(f"{path}/{name}", {"gracePeriodSeconds": 0})


@given(
    acts=st.lists(st.tuples(ACTS, NAMESPACES), max_size=40),
    selector=st.sampled_from(SELECTORS),
    path=st.sampled_from(["/api/v1/pods", "/api/v1/namespaces/default/pods"]),
    is_streaming=st.booleans(),
    page=st.sampled_from([0, 1, 2]),
    history_max=st.sampled_from([1, 3, 50_000]),
)
def test_a_client_ends_with_exactly_the_content_of_the_store(
    acts: list[tuple[tuple[str, str, str], str]],
    selector: str,
    path: str,
    is_streaming: bool,
    page: int,
    history_max: int,
) -> None:
    with InProcessApi(history_max=history_max) as api:
        client = Client(api, path, selector, is_streaming=is_streaming, page=page)
        for (kind, name, value), namespace in acts:
            if kind == "reconnect":
                client.follow()
                client.stream.close()
                # Versions pass while the client is away.
                act(api, "label", "a", "y", "default")
                client.connect()
            elif kind == "bookmark":
                api.server.poke()
            else:
                act(api, kind, name, value, namespace)
        client.follow()
        seen = client.api.get(f"{path}?{selector}").body
        assert {_key(item): item for item in seen["items"]} == client.objects
        assert int(client.version or 0) <= int(seen["metadata"]["resourceVersion"])
        in_store = {_key(item) for item in api.store.list(PODS)}
        assert set(client.objects) <= in_store


@given(acts=st.lists(st.tuples(ACTS, NAMESPACES), max_size=30))
def test_a_list_of_pages_is_one_moment_of_the_store(
    acts: list[tuple[tuple[str, str, str], str]],
) -> None:
    with InProcessApi() as api:
        for index, name in enumerate(NAMES):
            act(api, "create", name, "", ("default", "kube-system")[index % 2])
        first = api.get("/api/v1/pods?limit=2").body
        whole = api.get("/api/v1/pods").body
        assert first["metadata"]["remainingItemCount"] == len(NAMES) - 2
        items, token = first["items"], first["metadata"]["continue"]
        changes = iter(acts)
        while token:
            for (kind, name, value), namespace in islice(changes, 4):
                act(api, kind, name, value, namespace)
            page = api.get(f"/api/v1/pods?limit=2&continue={token}").body
            items += page["items"]
            token = page["metadata"].get("continue", "")
        assert items == whole["items"]


@given(acts=st.lists(st.tuples(ACTS, NAMESPACES), max_size=30))
def test_versions_of_changes_increase_and_two_runs_have_equal_bytes(
    acts: list[tuple[tuple[str, str, str], str]],
) -> None:
    contents = []
    for _ in range(2):
        with InProcessApi() as api:
            versions: list[int] = []
            api.store.subscribe(lambda change, seen=versions: seen.append(change.version))  # type: ignore[misc]
            start = api.store.version
            for (kind, name, value), namespace in acts:
                act(api, kind, name, value, namespace)
            assert versions == list(range(start + 1, start + 1 + len(versions)))
            contents.append(api.get("/api/v1/pods").content)
    assert contents[0] == contents[1]
