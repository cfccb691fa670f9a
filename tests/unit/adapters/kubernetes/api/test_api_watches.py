from __future__ import annotations

import pytest

from equipoise.adapters.kubernetes.api.resources import EVENTS, NODES, PODS
from equipoise.adapters.kubernetes.api.server import ServerOptions
from equipoise.adapters.kubernetes.api.watch import WatchLimits
from kubernetes_api import PODS_PATH, TABLE, InProcessApi, a_node, a_pod

STREAMING = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
UNFINISHED = "fieldSelector=status.phase!=Succeeded,status.phase!=Failed"


def test_the_streaming_dialect_sends_all_objects_then_a_bookmark_then_changes() -> None:
    with InProcessApi() as api:
        for name in ("b", "a"):
            api.store.create(PODS, a_pod(name))
        stream = api.watch("/api/v1/pods", STREAMING)
        first = stream.events()
        assert [event["type"] for event in first] == ["ADDED", "ADDED", "BOOKMARK"]
        assert [event["object"]["metadata"]["name"] for event in first[:2]] == ["a", "b"]
        bookmark = first[2]["object"]
        assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert bookmark["metadata"]["resourceVersion"] == str(api.store.version)
        assert (bookmark["kind"], bookmark["apiVersion"]) == ("Pod", "v1")
        api.store.bind("default", "a", "n")
        assert [event["type"] for event in stream.events()] == ["MODIFIED"]


@pytest.mark.parametrize("version", ["", "resourceVersion=0"])
def test_the_classic_dialect_without_a_version_begins_with_all_objects(version: str) -> None:
    with InProcessApi() as api:
        api.store.create(PODS, a_pod("a"))
        stream = api.watch("/api/v1/pods", version)
        assert [event["type"] for event in stream.events()] == ["ADDED"]


def test_the_classic_dialect_sends_what_came_after_a_version() -> None:
    with InProcessApi() as api:
        version = api.store.create(PODS, a_pod("a"))["metadata"]["resourceVersion"]
        api.store.bind("default", "a", "n")
        api.store.delete(PODS, "a", "default", grace_s=0)
        stream = api.watch("/api/v1/pods", f"resourceVersion={version}")
        events = stream.events()
        assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
        assert events[1]["object"]["metadata"]["resourceVersion"] == str(api.store.version)


def test_a_finished_pod_leaves_the_watch_of_a_scheduler() -> None:
    with InProcessApi() as api:
        stream = api.watch("/api/v1/pods", f"{STREAMING}&{UNFINISHED}")
        stream.events()
        api.post(PODS_PATH, a_pod("p"))
        api.patch(f"{PODS_PATH}/p/status", {"status": {"phase": "Succeeded"}})
        api.patch(f"{PODS_PATH}/p/status", {"status": {"message": "again"}})
        api.patch(f"{PODS_PATH}/p/status", {"status": {"phase": "Running"}})
        events = stream.events()
        assert [event["type"] for event in events] == ["ADDED", "DELETED", "ADDED"]
        left = events[1]["object"]
        assert left["status"]["phase"] == "Pending"
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        assert versions == sorted(versions)


@pytest.mark.parametrize("version", ["1", "999999"])
def test_a_version_that_is_too_old_or_of_another_store_is_gone(version: str) -> None:
    with InProcessApi(history_max=1) as api:
        for name in "abc":
            api.store.create(NODES, a_node(name))
        stream = api.watch("/api/v1/nodes", f"resourceVersion={version}")
        (event,) = stream.events()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert event["object"]["reason"] == "Expired"
        assert stream.is_done
        expected = 410 if version == "1" else 504
        assert api.get(f"/api/v1/nodes?resourceVersion={version}&limit=1").status == expected


@pytest.mark.parametrize(
    "query",
    ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "sendInitialEvents=false"],
)
def test_options_that_do_not_fit_are_invalid(query: str) -> None:
    with InProcessApi() as api:
        assert api.get(f"/api/v1/pods?watch=true&{query}").status == 422


def test_a_poke_is_a_bookmark_on_one_watch_of_pods() -> None:
    with InProcessApi() as api:
        nodes = api.watch("/api/v1/nodes", "allowWatchBookmarks=true")
        pods = [api.watch("/api/v1/pods", "allowWatchBookmarks=true") for _ in range(2)]
        plain = api.watch("/api/v1/pods")
        for stream in (nodes, *pods, plain):
            assert stream.events() == []
        assert api.server.poke() == 1
        assert [len(stream.events()) for stream in (nodes, *pods, plain)] == [0, 1, 0, 0]
        assert api.server.poke(everywhere=True) == 3
        assert [len(stream.events()) for stream in (nodes, *pods, plain)] == [1, 1, 1, 0]


def test_a_watch_ends_after_its_time_and_sends_bookmarks() -> None:
    with InProcessApi(ServerOptions(watches=WatchLimits(bookmark_s=0.01))) as api:
        query = "allowWatchBookmarks=true&timeoutSeconds=1"
        stream = api.watch("/api/v1/pods", query)
        kinds = []
        while not stream.is_done:
            kinds += [event["type"] for event in stream.events()]
        assert set(kinds) == {"BOOKMARK"}
        assert api.server.watches_open == 0


def test_events_of_a_client_wait_while_it_is_held() -> None:
    with InProcessApi() as api:
        one, two = (api.watch(f"/clients/{name}/api/v1/pods") for name in ("one", "two"))
        other = api.watch("/api/v1/pods")
        api.turn()
        api.server.hold(frozenset({"one"}))
        api.store.create(PODS, a_pod("p"))
        assert [len(stream.events()) for stream in (one, two, other)] == [0, 1, 1]
        # What is held is no open work of the server: its client cannot act.
        assert (api.server.has_events("one"), api.server.has_events("two")) == (True, False)
        assert api.server.requests_open == 0
        api.store.create(PODS, a_pod("q"))
        api.server.hold(frozenset({"two"}))
        assert [len(stream.events()) for stream in (one, two, other)] == [2, 0, 1]
        api.server.hold(frozenset())
        assert [len(stream.events()) for stream in (one, two, other)] == [0, 1, 0]


def test_watches_are_limited_in_number_and_in_what_they_hold() -> None:
    limits = WatchLimits(watches_max=1, pending_bytes_max=1000)
    with InProcessApi(ServerOptions(watches=limits)) as api:
        stream = api.watch("/api/v1/pods")
        assert stream.events() == []
        refused = api.get("/api/v1/pods?watch=true")
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        for name in "abc":
            api.store.create(PODS, a_pod(name))
        assert stream.is_done


def test_events_reach_the_watches_of_both_groups_in_their_own_form() -> None:
    with InProcessApi() as api:
        core = api.watch("/api/v1/events")
        other = api.watch("/apis/events.k8s.io/v1/events")
        body = {
            "metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p"}, "note": "text",
            "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "s",
        }  # fmt: skip
        path = "/apis/events.k8s.io/v1/namespaces/default/events"
        assert api.post(path, body).status == 201
        (stored,) = api.store.list(EVENTS)
        assert (stored["message"], stored["apiVersion"]) == ("text", "v1")
        (seen,) = core.events()
        assert seen["object"]["involvedObject"]["name"] == "p"
        (seen,) = other.events()
        assert (seen["object"]["note"], seen["object"]["apiVersion"]) == (
            "text", "events.k8s.io/v1",
        )  # fmt: skip
        series = {"series": {"count": 3, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
        assert api.patch(f"{path}/e", series).body["series"]["count"] == 3
        assert api.get("/api/v1/namespaces/default/events/e").body["series"]["count"] == 3


def test_a_watch_of_tables_sends_rows() -> None:
    with InProcessApi() as api:
        stream = api.watch("/api/v1/pods", "", TABLE)
        api.turn()
        api.post(PODS_PATH, a_pod("p"))
        (event,) = stream.events()
        assert event["object"]["kind"] == "Table"
        assert event["object"]["rows"][0]["cells"][:3] == ["p", "0/1", "Pending"]


def test_requests_are_open_while_events_are_not_sent() -> None:
    with InProcessApi() as api:
        stream = api.watch("/api/v1/pods")
        assert stream.events() == []
        assert api.server.requests_open == 0
        api.store.create(PODS, a_pod("p"))
        assert api.server.requests_open == 1
        api.turn()
        assert api.server.requests_open == 0


def test_a_closed_connection_ends_its_watch() -> None:
    with InProcessApi() as api:
        stream = api.watch("/api/v1/pods")
        stream.events()
        assert api.server.watches_open == 1
        stream.close()
        assert api.server.watches_open == 0
