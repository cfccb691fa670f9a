"""Our placement as a scheduler of Kubernetes, and our balance as a descheduler.

A thread for each watch blocks on its socket, and the scheduler on a queue: without events nothing
runs, not even a timer, so that a simulation sees at once that the program is at rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple

from equipoise.adapters.kubernetes.client.cluster_view import ClusterView
from equipoise.adapters.kubernetes.client.connection import (
    STRATEGIC_PATCH,
    ApiAddress,
    ApiConnection,
    ApiRefusal,
    object_path,
)
from equipoise.adapters.kubernetes.client.pod_view import NodeView, PodView
from equipoise.adapters.kubernetes.client.policies import POLICIES, pods_to_evict
from equipoise.errors import InputProblem, InvalidInput

Object = dict[str, Any]
_PATHS: Final = {"nodes": "/api/v1/nodes", "pods": "/api/v1/pods"}
_GONE: Final = 410
_DENIED: Final = frozenset({401, 403})


_PACKING: Final = "first-fit"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSchedulerOptions:
    """What the scheduler serves, and how."""

    policy: str = "balance"
    name: str = "default-scheduler"
    """The ``schedulerName`` of the pods that it serves."""
    deschedule_s: float | None = None
    """Evict pods that balance would move, at most this often by the clock of the API."""


class _Event(NamedTuple):
    resource: str
    kind: str
    body: Object


_Item = _Event | list[_Event] | Exception


class OwnScheduler:
    """A scheduler of one cluster."""

    def __init__(
        self,
        address: ApiAddress,
        options: OwnSchedulerOptions,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        if options.policy not in POLICIES:
            what, cure = f"is {options.policy!r:.40}", f"write one of {', '.join(POLICIES)}"
            problem = InputProblem(key="--policy", what=what, cure=cure, code="unknown-name")
            raise InvalidInput("kube", [problem])
        if options.deschedule_s is not None and options.policy == _PACKING:
            # It would evict the same pods again and again.
            what = f"is given with {_PACKING}, which puts evicted pods back where they were"
            cure = "choose the policy balance or least-loaded"
            problem = InputProblem(key="--deschedule", what=what, cure=cure, code="option-conflict")
            raise InvalidInput("kube", [problem])
        self._address = address
        self._options = options
        self._choose = POLICIES[options.policy]
        self._report = report
        self._connection = ApiConnection(address)
        self._items: SimpleQueue[_Item] = SimpleQueue()
        self._looked_s: float | None = None
        self.view = ClusterView(options.name)
        self.bindings = 0
        self.evictions = 0

    def run(self) -> None:
        """Schedule until the API ends the connection, which is a ``WorldError``."""
        for resource in _PATHS:
            Thread(target=self._follow, args=(resource,), daemon=True).start()
        # Nodes and pods are complete only together.
        started: set[str] = set()
        while True:
            for item in self._take():
                if isinstance(item, Exception):
                    raise item
                for event in item if isinstance(item, list) else (item,):
                    if event.kind == "LISTED":
                        started.add(event.resource)
                        self._forget_absent(event)
                    else:
                        self.view.apply(*event)
            if len(started) == len(_PATHS):
                if self.view.changed:
                    self._schedule()
                self._deschedule()

    def close(self) -> None:
        """Close the connection of requests."""
        self._connection.close()

    # Watching

    def _take(self) -> list[_Item]:
        """Wait for an item of the watches; return all that are there."""
        items = [self._items.get()]
        while True:
            try:
                items.append(self._items.get_nowait())
            except Empty:
                return items

    def _follow(self, resource: str) -> None:
        """Put the objects of a collection and then its events into the queue, for ever."""
        connection = ApiConnection(self._address)
        path = _PATHS[resource]
        try:
            while True:
                objects, version = connection.list_all(path)
                objects.sort(key=_age)
                listed = [_Event(resource, "ADDED", body) for body in objects]
                self._items.put([*listed, _Event(resource, "LISTED", {"items": objects})])
                self._follow_from(connection, resource, version)
        except Exception as error:  # the main thread raises it
            self._items.put(error)
        finally:
            connection.close()

    def _follow_from(self, connection: ApiConnection, resource: str, version: str) -> None:
        """Watch until the version is too old: the server ends each watch after some time."""
        while True:
            before = version
            try:
                for kind, body in connection.watch(_PATHS[resource], version):
                    version = body["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        self._items.put(_Event(resource, kind, body))
            except ApiRefusal as error:
                if error.status != _GONE:
                    raise
                return
            if version == before:
                # A server that ends watches at once is not asked again and again; a list fails if
                # it has gone.
                return

    def _forget_absent(self, listed: _Event) -> None:
        """Drop what a new list does not have any more."""
        items = listed.body["items"]
        if listed.resource == "nodes":
            there = {item["metadata"]["name"] for item in items}
            gone = [{"metadata": {"name": name}} for name in self.view.nodes if name not in there]
        else:
            there = {item["metadata"]["uid"] for item in items}
            gone = [{"metadata": {"uid": uid}} for uid in self.view.pods if uid not in there]
        for body in gone:
            self.view.apply(listed.resource, "DELETED", body)

    # Scheduling

    def _schedule(self) -> None:
        self.view.changed = False
        for choice in self._choose(self.view):
            if choice.node is None:
                self._explain(choice.pod, choice.reason)
            else:
                self._bind(choice.pod, choice.node)

    def _bind(self, pod: PodView, node: NodeView) -> None:
        self.view.assume(pod, node)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {**pod.path, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node.name},
        }
        try:
            self._connection.request("POST", object_path("pods", pod.path, "binding"), body)
        except ApiRefusal as error:
            if error.status in _DENIED:
                raise
            # The pod or the node has changed; the event that says so is on its way.
            self.view.revoke(pod)
            self.view.waiting.pop(pod.uid)
            self._report(f"{pod.namespace}/{pod.name} is not bound: {error}")
            return
        self.bindings += 1

    def _explain(self, pod: PodView, reason: str) -> None:
        """Write into the condition of a pod why it has no node, once."""
        if pod.reason == reason:
            return
        pod.reason = reason
        condition = {
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": reason,
        }  # fmt: skip
        path = object_path("pods", pod.path, "status")
        try:
            self._connection.request(
                "PATCH", path, {"status": {"conditions": [condition]}}, STRATEGIC_PATCH
            )
        except ApiRefusal as error:
            if error.status in _DENIED:
                raise
            self._report(f"the condition of {pod.namespace}/{pod.name} is not written: {error}")

    def _deschedule(self) -> None:
        """Evict the pods that balance would move, when something has become free."""
        view, every_s = self.view, self._options.deschedule_s
        if every_s is None or not view.freed:
            return
        if self._looked_s is not None and view.now_s - self._looked_s < every_s:
            return
        self._looked_s, view.freed = view.now_s, False
        if view.waiting:
            return  # what waits is placed first
        for pod in pods_to_evict(view):
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": pod.path}
            try:
                self._connection.request("POST", object_path("pods", pod.path, "eviction"), body)
            except ApiRefusal as error:
                if error.status in _DENIED:
                    raise
                self._report(f"{pod.namespace}/{pod.name} stays: {error}")
            else:
                self.evictions += 1


def _age(body: Object) -> tuple[str, int]:
    metadata = body["metadata"]
    version = str(metadata.get("resourceVersion", ""))
    return metadata.get("creationTimestamp") or "", int(version) if version.isdigit() else 0
