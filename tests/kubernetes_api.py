"""The Kubernetes API in the process of the test, without sockets; and short objects."""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any, Self

from equipoise.adapters.kubernetes.api.server import ApiServer, ServerOptions
from equipoise.adapters.kubernetes.api.store import ObjectStore

Object = dict[str, Any]

PODS_PATH = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def a_pod(name: str = "p", **spec: Any) -> Object:
    """Return a pod with one container."""
    containers = [{"name": "c", "image": "busybox:1"}]
    metadata = {"name": name, "labels": spec.pop("labels", {})}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def a_node(name: str = "n", **fields: Any) -> Object:
    """Return a node that is ready."""
    status = {
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"metadata": {"name": name}, "status": status, **fields}


class Answer:
    """The answer to a request."""

    def __init__(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.status = status
        self.headers = headers
        self.content = content

    @property
    def body(self) -> Any:
        """Return the body, which is JSON."""
        return json.loads(self.content)

    @property
    def reason(self) -> str:
        """Return the reason of a refusal."""
        return str(self.body["reason"])


class Stream:
    """An open watch."""

    def __init__(self, api: InProcessApi, path: str, query: str, accept: str) -> None:
        self._api = api
        self._leave = asyncio.Event()
        self._chunks: list[bytes] = []
        self.status = 0
        self._body_sent = False
        self._task = api.loop.create_task(self._run(path, query, accept))

    async def _run(self, path: str, query: str, accept: str) -> None:
        scope = _scope("GET", path, query, {"accept": accept})
        await self._api.server.app(scope, self._receive, self._send)

    async def _receive(self) -> Object:
        if not self._body_sent:
            self._body_sent = True
            return {"type": "http.request", "body": b""}
        await self._leave.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Object) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self._chunks.append(message.get("body", b""))

    def events(self) -> list[Object]:
        """Return the events that have arrived since the last call."""
        self._api.turn()
        lines = b"".join(self._chunks).splitlines()
        self._chunks.clear()
        return [json.loads(line) for line in lines]

    @property
    def is_done(self) -> bool:
        """Return whether the server has ended the watch."""
        self._api.turn()
        return self._task.done()

    def close(self) -> None:
        """Close the connection."""
        self._leave.set()
        self._api.loop.run_until_complete(self._task)


class InProcessApi:
    """A store and its API, with a clock that the test sets."""

    def __init__(self, options: ServerOptions | None = None, *, history_max: int = 50_000) -> None:
        self.now_ms = 0
        self.loop = asyncio.new_event_loop()
        self.store = ObjectStore(lambda: self.now_ms, history_max=history_max)
        self.server = ApiServer(self.store, options)
        self._streams: list[Stream] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for stream in self._streams:
            stream.close()
        self.loop.close()
        assert self.server.bugs == []

    def turn(self) -> None:
        """Let everything that can go on go on."""
        self.loop.run_until_complete(self.server.turn())

    def watch(self, path: str, query: str = "", accept: str = "application/json") -> Stream:
        """Open a watch."""
        stream = Stream(self, path, f"watch=true&{query}", accept)
        self._streams.append(stream)
        return stream

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request. A body that is not bytes is sent as JSON."""
        path, _, query = path.partition("?")
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        sent = {"content-type": content_type} if body is not None else {}
        return self.loop.run_until_complete(
            self._request(_scope(method, path, query, {**sent, **(headers or {})}), raw)
        )

    async def _request(self, scope: Object, raw: bytes) -> Answer:
        messages: list[Object] = []

        async def receive() -> Object:
            return {"type": "http.request", "body": raw}

        async def send(message: Object) -> None:
            messages.append(message)

        await self.server.app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in messages[1:])
        headers = {key.decode(): value.decode() for key, value in messages[0]["headers"]}
        return Answer(messages[0]["status"], headers, content)

    def get(self, path: str, accept: str = "application/json") -> Answer:
        """Read."""
        return self.request("GET", path, headers={"accept": accept})

    def post(self, path: str, body: Any) -> Answer:
        """Create."""
        return self.request("POST", path, body)

    def put(self, path: str, body: Any) -> Answer:
        """Replace."""
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, content_type: str = STRATEGIC) -> Answer:
        """Change."""
        return self.request("PATCH", path, body, content_type)

    def delete(self, path: str, body: Any = None) -> Answer:
        """Delete."""
        return self.request("DELETE", path, body)


def _scope(method: str, path: str, query: str, headers: dict[str, str]) -> Object:
    pairs = [(key.lower().encode(), value.encode("latin-1")) for key, value in headers.items()]
    return {
        "type": "http", "method": method, "path": path, "query_string": query.encode(),
        "headers": pairs,
    }  # fmt: skip
