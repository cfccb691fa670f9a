"""The ASGI application: reads a request, lets a verb answer it, and writes the answer.

Everything that a client may get wrong becomes a ``Status`` object. A bug of the server becomes one
with code 500, and its trace is kept for the one who looks.
"""

from __future__ import annotations

import hmac
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from equipoise.adapters.kubernetes.api import errors
from equipoise.adapters.kubernetes.api.discovery import Discovery
from equipoise.adapters.kubernetes.api.store import ObjectStore
from equipoise.adapters.kubernetes.api.verbs import bodies, reads, subresources, writes
from equipoise.adapters.kubernetes.api.verbs.rendering import encode
from equipoise.adapters.kubernetes.api.verbs.request import (
    JSON,
    ApiRequest,
    parse_accept,
    parse_path,
    parse_query,
)
from equipoise.adapters.kubernetes.api.watch import Watches

Object = dict[str, Any]
Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Verb = Callable[[ApiRequest, ObjectStore], tuple[int, Object]]

CLIENTS_PATH: Final = "/clients/"
"""The API is also below this path and a name: clients send no token over plain HTTP."""
_TRACES_MAX: Final = 20
_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request that was answered, or a watch that was opened, for a log of decisions."""

    method: str
    path: str
    query: str
    body: Any
    """The decoded body, or None."""
    status: int
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    content_type: bytes = b"application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()


class KubernetesApp:
    """The application. ``requests_open`` counts what is not answered whole."""

    def __init__(
        self, store: ObjectStore, watches: Watches, *, token: str, body_bytes_max: int,
        objects_max: int,
    ) -> None:  # fmt: skip
        self.store = store
        self.watches = watches
        self.requests_open = 0
        self.requests_total = 0
        self.on_request: Callable[[RequestRecord], None] | None = None
        self.bugs: list[str] = []
        """The traces of errors of the server itself, the last ones."""
        self._token = token.encode()
        self._body_bytes_max = body_bytes_max
        self._objects_max = objects_max
        self._discovery = Discovery()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        self.requests_open += 1
        self.requests_total += 1
        exchange = _Exchange(scope, receive, send, self)
        try:
            await exchange.answer()
        finally:
            exchange.close()

    def authorise(self, headers: dict[bytes, bytes]) -> None:
        """Raise ``ApiError`` if a request may not be answered."""
        if self._token:
            given = headers.get(b"authorization", b"")
            scheme, _, token = given.partition(b" ")
            is_bearer = scheme.lower() == b"bearer"
            if not hmac.compare_digest(token.strip() if is_bearer else b"", self._token):
                raise errors.ApiError(401, "Unauthorized", "Unauthorized")
            return
        # Without a token any program of this machine may ask, but no page that a browser shows.
        if b"origin" in headers or not _is_local(headers.get(b"host", b"localhost")):
            text = "requests from web pages and for other host names are refused without a token"
            raise errors.ApiError(403, "Forbidden", text)

    async def body_of(self, receive: Receive, headers: dict[bytes, bytes]) -> bytes:
        """Return the body of a request, or raise ``ApiError`` 413 if it is too large."""
        limit = self._body_bytes_max
        length = headers.get(b"content-length", b"0")
        too_large = errors.ApiError(
            413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}"
        )
        if length.isdigit() and int(length[:18]) > limit:
            raise too_large
        message = await receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body"):
            if len(body) > limit:
                raise too_large
            message = await receive()
            body += message.get("body", b"")
        if len(body) > limit:
            raise too_large
        return body

    def discovered(self, path: str, accept: str, query: dict[str, str]) -> _Answer | None:
        """Return the answer of a path that is about the API itself, not about objects."""
        found = self._discovery.answer(path, accept, query)
        if found is None:
            return None
        body, content_type = found
        return _Answer(200, body, content_type.encode())

    def verb_of(self, request: ApiRequest) -> Verb:
        """Return the function that answers a request for objects."""
        target = request.target
        if target.rest:
            raise errors.no_such_path()
        resource = target.served.resource
        if not target.subresource:
            verbs = _COLLECTION_VERBS if not target.name else _OBJECT_VERBS
        elif target.subresource == "status" and resource.has_status:
            verbs = _STATUS_VERBS
        elif target.subresource in resource.subresources:
            verbs = _SUBRESOURCE_VERBS[target.subresource]
        else:
            raise errors.no_such_path()
        verb = verbs.get(request.method)
        if verb is None:
            raise errors.method_not_allowed()
        if verb is writes.create:
            if resource.namespaced and not target.namespace:
                raise errors.method_not_allowed()
            if self.store.objects >= self._objects_max:
                text = f"the store holds at most {self._objects_max} objects"
                raise errors.forbidden(resource.group, resource.plural, "", text)
        return verb


def _split_client(path: str) -> tuple[str, str]:
    """Return the client that a path names, if it does, and the path without it."""
    if not path.startswith(CLIENTS_PATH):
        return "", path
    client, _, rest = path.removeprefix(CLIENTS_PATH).partition("/")
    return client, f"/{rest}"


def _is_local(host: bytes) -> bool:
    name = host.rpartition(b":")[0] if not host.endswith(b"]") and b":" in host else host
    return name in (b"localhost", b"[::1]") or name.startswith(b"127.")


_COLLECTION_VERBS: Final[dict[str, Verb]] = {
    "GET": lambda request, store: (200, reads.list_objects(request, store)),
    "POST": writes.create,
    "DELETE": writes.delete_collection,
}
_OBJECT_VERBS: Final[dict[str, Verb]] = {
    "GET": lambda request, store: (200, reads.get(request, store)),
    "PUT": writes.update,
    "PATCH": writes.patch,
    "DELETE": writes.delete,
}
_STATUS_VERBS: Final[dict[str, Verb]] = {
    "GET": _OBJECT_VERBS["GET"],
    "PUT": writes.update,
    "PATCH": writes.patch,
}
_SUBRESOURCE_VERBS: Final[dict[str, dict[str, Verb]]] = {
    "binding": {"POST": subresources.bind},
    "eviction": {"POST": subresources.evict},
    "log": {"GET": lambda request, store: (200, {"log": subresources.log_of(request, store)})},
    "scale": {
        "GET": subresources.get_scale,
        "PUT": subresources.put_scale,
        "PATCH": subresources.patch_scale,
    },
}


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, app: KubernetesApp) -> None:
        self._app = app
        self._receive = receive
        self._send = send
        self._method: str = scope["method"]
        self._client, self._path = _split_client(scope["path"])
        self._query_text: bytes = scope["query_string"]
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self._body: Any = None
        self._is_open = True

    def close(self) -> None:
        """Count the request as answered, once."""
        if self._is_open:
            self._is_open = False
            self._app.requests_open -= 1

    async def answer(self) -> None:
        try:
            answer = await self._answer()
        except errors.ApiError as error:
            answer = _status_answer(error)
        except Exception:
            # A bug: the client gets a Status and the server goes on.
            del self._app.bugs[: -_TRACES_MAX + 1]
            self._app.bugs.append(traceback.format_exc())
            text = "an error of the server itself"
            answer = _status_answer(errors.ApiError(500, "InternalError", text))
        if answer is None:
            return
        self._record(answer.status)
        headers = [
            (b"content-type", answer.content_type),
            (b"content-length", str(len(answer.body)).encode()),
            *answer.headers,
        ]
        start = {"type": "http.response.start", "status": answer.status, "headers": headers}
        await self._send(start)
        await self._send({"type": "http.response.body", "body": answer.body})

    def _record(self, status: int) -> None:
        if self._app.on_request is not None:
            query = self._query_text.decode("ascii", "replace")
            content_type = self._headers.get(b"content-type", b"").decode("latin-1")
            record = RequestRecord(
                self._method, self._path, query, self._body, status, content_type
            )
            self._app.on_request(record)

    async def _answer(self) -> _Answer | None:
        app = self._app
        # A client that may not ask sends no body that is kept.
        app.authorise(self._headers)
        raw = await app.body_of(self._receive, self._headers)
        query = parse_query(self._query_text)
        accept = self._headers.get(b"accept", b"").decode("latin-1")
        if self._method == "GET":
            found = app.discovered(self._path, accept, query)
            if found is not None:
                return found
        form = parse_accept(accept)
        if form is None:
            text = (
                "only the following media types are accepted: application/json, application/yaml;"
                " this server does not write protobuf"
            )
            raise errors.ApiError(406, "NotAcceptable", text)
        content_type = self._headers.get(b"content-type", b"").decode("latin-1")
        if raw and bodies.is_protobuf(raw, content_type) and self._is_review():
            # The answer to a question about the client does not depend on the question.
            self._body = {}
        elif raw:
            self._body = bodies.decode(raw, content_type)
        special = self._special()
        if special is not None:
            return _json_answer(*special)
        target = parse_path(self._path)
        if target is None:
            raise errors.no_such_path()
        request = ApiRequest(
            self._method, self._path, target, query, form[0],
            content_type.partition(";")[0].strip(), self._body,
            self._headers.get(b"user-agent", b"").decode("latin-1"),
        )  # fmt: skip
        if self._method == "GET" and not target.subresource and (
            target.is_watch or request.flag("watch")
        ):  # fmt: skip
            await self._watch(request)
            return None
        status, answered = app.verb_of(request)(request, app.store)
        if target.subresource == "log":
            return _Answer(status, answered["log"].encode(), _TEXT.encode())
        return _written(status, answered, form[1], request.warnings)

    def _is_review(self) -> bool:
        return tuple(self._path.strip("/").split("/")[1:]) in subresources.REVIEWS

    def _special(self) -> tuple[int, Object] | None:
        """Answer what can only be created: bindings and questions about the client."""
        parts = self._path.strip("/").split("/")
        match parts:
            case ["apis", group, version, plural] if (
                group, version, plural
            ) in subresources.REVIEWS:  # fmt: skip
                if self._method != "POST":
                    raise errors.method_not_allowed()
                return subresources.review(group, version, plural, self._body)
            case ["api", "v1", "namespaces", namespace, "bindings"] if namespace:
                if self._method != "POST":
                    raise errors.method_not_allowed()
                target = parse_path(f"/api/v1/namespaces/{namespace}/pods")
                assert target is not None
                query = parse_query(self._query_text)
                request = ApiRequest("POST", self._path, target, query, body=self._body)
                return subresources.bind(request, self._app.store)
        return None

    async def _watch(self, request: ApiRequest) -> None:
        watches = self._app.watches
        watches.check()
        asked = reads.watch_request(request, self._app.store, self._client)
        self._record(200)
        await self._send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        send = self._send

        async def send_piece(piece: bytes) -> None:
            await send({"type": "http.response.body", "body": piece, "more_body": True})

        await watches.serve(asked, send_piece, self._receive, self.close)
        await send({"type": "http.response.body", "body": b""})


def _written(status: int, answered: Object, form: str, warnings: list[str]) -> _Answer:
    headers = tuple(
        (b"warning", b'299 - "' + text.replace('"', '\\"').encode("ascii", "replace") + b'"')
        for text in warnings[:20]
    )
    if form != JSON:
        return _Answer(status, msgspec.yaml.encode(answered), form.encode(), headers)
    return _Answer(status, encode(answered), headers=headers)


def _json_answer(status: int, answered: Object) -> _Answer:
    return _Answer(status, encode(answered))


def _status_answer(error: errors.ApiError) -> _Answer:
    headers: tuple[tuple[bytes, bytes], ...] = ()
    retry = (error.details or {}).get("retryAfterSeconds")
    if retry:
        headers = ((b"retry-after", str(retry).encode()),)
    if error.code == 401:  # noqa: PLR2004
        headers = ((b"www-authenticate", b"Bearer"),)
    return _Answer(error.code, encode(error.status()), headers=headers)
