"""Our scheduler as a client of the API: bindings, conditions, evictions and lost watches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from equipoise.adapters.kubernetes.api.resources import NODES, PODS
from equipoise.adapters.kubernetes.api.server import ServerOptions
from equipoise.adapters.kubernetes.client.connection import ApiConnection, ApiRefusal, address_of
from equipoise.adapters.kubernetes.client.own_scheduler import OwnScheduler, OwnSchedulerOptions
from equipoise.errors import InvalidInput, WorldError
from kubernetes_api import a_node, a_pod
from kubernetes_server import ServedApi

pytest.importorskip("uvicorn", reason="equipoise[kube] is missing")
TOKEN = "a-token"
_LIMIT_S = 20.0


class Scheduling:
    """A scheduler in a thread, and the API that it serves."""

    def __init__(self, api: ServedApi, scheduler: OwnScheduler) -> None:
        self.api = api
        self.scheduler = scheduler
        self.failures: list[WorldError] = []
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.scheduler.run()
        except WorldError as error:
            self.failures.append(error)
        finally:
            self.scheduler.close()

    def create(self, body: dict[str, Any]) -> None:
        resource, namespace = (
            (PODS, "default") if "containers" in body.get("spec", {}) else (NODES, "")
        )
        self.api.call(lambda: self.api.store.create(resource, body, namespace))

    def pod(self, name: str) -> dict[str, Any]:
        return self.api.call(lambda: self.api.store.get(PODS, name, "default"))

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def has_node(self, name: str) -> bool:
        return bool(self.node_of(name))

    def condition(self, name: str) -> str:
        conditions = self.pod(name).get("status", {}).get("conditions") or [{}]
        return str(conditions[0].get("message", ""))

    def end_watches(self) -> None:
        """End all watches, as a server does after some time, and wait until they are back."""
        server = self.api.server
        before = server.requests_total

        def end_all() -> None:
            for watch in server._watches._all():
                watch.end()

        self.api.call(end_all)
        self.until(lambda: server.requests_total >= before + 2 and server.watches_open == 2)

    def until(self, holds: Callable[[], bool]) -> None:
        end_s = time.monotonic() + _LIMIT_S
        while not holds():
            assert time.monotonic() < end_s, "it does not come true"
            assert not self.failures
            time.sleep(0.005)


@contextmanager
def scheduling(token: str = "", **options: Any) -> Iterator[Scheduling]:
    with ServedApi(ServerOptions(token=token)) as api:
        found = OwnScheduler(address_of(api.url, token=token), OwnSchedulerOptions(**options))
        running = Scheduling(api, found)
        running.thread.start()
        yield running
    running.thread.join(_LIMIT_S)
    assert [getattr(error, "code", "") for error in running.failures] == ["api-unreachable"]


def test_pods_are_bound_and_the_others_have_a_reason() -> None:
    with scheduling(TOKEN) as running:
        running.create(a_pod("p"))
        running.until(lambda: running.condition("p") == "0/0 nodes are available.")
        running.create(a_node("n1"))
        running.until(lambda: running.node_of("p") == "n1")
        running.create(a_pod("q", nodeSelector={"disk": "ssd"}))
        running.until(lambda: "node selector" in running.condition("q"))
        assert running.scheduler.bindings == 1


def test_an_idle_scheduler_sends_nothing() -> None:
    with scheduling() as running:
        running.create(a_node("n1"))
        running.create(a_pod("p"))
        running.create(a_pod("q", nodeSelector={"disk": "ssd"}))
        running.until(lambda: bool(running.node_of("p") and running.condition("q")))
        time.sleep(0.2)
        sent = running.api.server.requests_total
        time.sleep(0.5)
        assert running.api.server.requests_total == sent


def test_a_watch_that_ends_is_opened_again() -> None:
    with scheduling() as running:
        running.until(lambda: running.api.server.watches_open == 2)
        for name in ("p", "q"):
            running.create(a_node(f"node-of-{name}"))
            running.create(a_pod(name))
            running.until(partial(running.has_node, name))
            running.end_watches()


def test_after_a_version_that_is_too_old_objects_are_listed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch, refused = ApiConnection.watch, set[str]()

    def watch_later(self: ApiConnection, path: str, version: str) -> Iterator[Any]:
        if path not in refused:
            refused.add(path)
            raise ApiRefusal("too old", 410)
        return watch(self, path, version)

    monkeypatch.setattr(ApiConnection, "watch", watch_later)
    with scheduling() as running:
        running.create(a_node("n1"))
        running.create(a_pod("p"))
        running.until(lambda: running.node_of("p") == "n1")
        assert len(refused) == 2
        running.until(lambda: running.api.server.watches_open == 2)


def test_pods_that_balance_would_move_are_evicted() -> None:
    owner = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True,
    }  # fmt: skip
    with scheduling(deschedule_s=0) as running:
        running.create(a_node("n1"))
        for name in "abcd":
            body = a_pod(name, nodeName="n1")
            body["metadata"]["ownerReferences"] = [owner]
            body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
            running.create(body)
        running.until(lambda: len(running.scheduler.view.pods) == 4)
        running.create(a_node("n2"))
        running.until(lambda: running.scheduler.evictions > 0)
        assert running.scheduler.evictions <= 2


def test_a_policy_has_a_known_name() -> None:
    with pytest.raises(InvalidInput) as wrong:
        OwnScheduler(address_of("http://h"), OwnSchedulerOptions(policy="best"))
    assert wrong.value.problems[0].key == "--policy"


def test_a_policy_that_packs_pods_is_not_for_the_descheduler() -> None:
    for policy in ("balance", "least-loaded"):
        OwnScheduler(
            address_of("http://h"), OwnSchedulerOptions(policy=policy, deschedule_s=1)
        ).close()
    with pytest.raises(InvalidInput) as wrong:
        OwnScheduler(
            address_of("http://h"), OwnSchedulerOptions(policy="first-fit", deschedule_s=1)
        )
    assert (wrong.value.problems[0].key, wrong.value.code) == ("--deschedule", "option-conflict")


def test_a_wrong_token_ends_the_scheduler() -> None:
    with ServedApi(ServerOptions(token=TOKEN)) as api:
        scheduler = OwnScheduler(address_of(api.url, token="wrong"), OwnSchedulerOptions())
        with pytest.raises(WorldError) as refused:
            scheduler.run()
        assert refused.value.code == "api-unauthorized"
