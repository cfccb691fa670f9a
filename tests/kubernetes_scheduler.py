"""A scheduler for pods in the dialect of Kubernetes, without a library: first fit, in order.

    python kubernetes_scheduler.py URL [--mode MODE] [--count N]

It binds each pod to the first node with enough CPU. Modes: ``die`` ends with exit code 7 after N
bindings, ``spread`` prefers the emptiest node, ``blind`` binds all pods to the first node.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from queue import Queue
from typing import Any
from urllib.parse import urlsplit

NAME = "default-scheduler"


def milli(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else round(1000 * float(quantity))


def requested(pod: dict[str, Any]) -> int:
    containers = pod["spec"]["containers"]
    return sum(
        milli(str(each.get("resources", {}).get("requests", {}).get("cpu", "0")))
        for each in containers
    )


class Api:
    def __init__(self, url: str) -> None:
        self.address = urlsplit(url).netloc

    def send(self, method: str, path: str, body: Any, kind: str = "application/json") -> int:
        connection = HTTPConnection(self.address)
        connection.request(method, path, json.dumps(body), {"Content-Type": kind})
        status = connection.getresponse().status
        connection.close()
        return status

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        """List, then watch: the dialect of clients before streamed lists."""
        connection = HTTPConnection(self.address)
        connection.request("GET", path)
        found = json.loads(connection.getresponse().read())
        for item in found["items"]:
            yield {"type": "ADDED", "object": item}
        version = found["metadata"]["resourceVersion"]
        connection.request("GET", f"{path}?watch=true&resourceVersion={version}")
        answer = connection.getresponse()
        while line := answer.readline():
            yield json.loads(line)


class Scheduler:
    def __init__(self, api: Api, mode: str, count: int) -> None:
        self.api = api
        self.mode = mode
        self.count = count
        self.nodes: dict[str, int] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.told: set[str] = set()

    def free(self) -> dict[str, int]:
        free = dict(self.nodes)
        for pod in self.pods.values():
            node = pod["spec"].get("nodeName")
            if node in free and pod["status"].get("phase") not in {"Succeeded", "Failed"}:
                free[node] -= requested(pod)
        return free

    def choose(self, pod: dict[str, Any], free: dict[str, int]) -> str | None:
        if self.mode == "blind":
            return next(iter(free), None)
        if pod["spec"].get("nodeSelector"):
            return None
        fitting = [node for node, amount in free.items() if amount >= requested(pod)]
        if self.mode == "spread":
            fitting.sort(key=lambda node: -free[node])
        return fitting[0] if fitting else None

    def schedule(self) -> None:
        free = self.free()
        for key, pod in list(self.pods.items()):
            if pod["spec"].get("nodeName") or pod["spec"].get("schedulerName") != NAME:
                continue
            path = (
                f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            )
            node = self.choose(pod, free)
            if node is None:
                if key not in self.told:
                    self.told.add(key)
                    reason = {"type": "PodScheduled", "status": "False", "message": "no node fits"}
                    patch = {"status": {"conditions": [reason]}}
                    kind = "application/strategic-merge-patch+json"
                    self.api.send("PATCH", f"{path}/status", patch, kind)
                continue
            free[node] -= requested(pod)
            target = {"kind": "Node", "name": node}
            body = {"kind": "Binding", "apiVersion": "v1", "target": target}
            body["metadata"] = {"name": pod["metadata"]["name"]}
            if self.api.send("POST", f"{path}/binding", body) == 201:
                pod["spec"]["nodeName"] = node
                self.count -= 1
                if self.mode == "die" and self.count == 0:
                    sys.stdout.write("no more\n")
                    sys.exit(7)

    def run(self) -> None:
        events: Queue[tuple[str, dict[str, Any]]] = Queue()

        def follow(resource: str) -> None:
            for event in self.api.watch(f"/api/v1/{resource}"):
                events.put((resource, event))

        for resource in ("nodes", "pods"):
            threading.Thread(target=follow, args=(resource,), daemon=True).start()
        while True:
            resource, event = events.get()
            self.take(resource, event)
            while not events.empty():
                self.take(*events.get())
            self.schedule()

    def take(self, resource: str, event: dict[str, Any]) -> None:
        found = event["object"]
        metadata = found["metadata"]
        if event["type"] == "BOOKMARK":
            return
        if resource == "nodes":
            self.nodes[metadata["name"]] = milli(str(found["status"]["allocatable"]["cpu"]))
            return
        key = f"{metadata['namespace']}/{metadata['name']}"
        if event["type"] == "DELETED":
            self.pods.pop(key, None)
        else:
            self.pods[key] = found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--mode", default="first")
    parser.add_argument("--count", type=int, default=0)
    given = parser.parse_args()
    Scheduler(Api(given.url), given.mode, given.count).run()
