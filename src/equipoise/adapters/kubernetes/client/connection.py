"""HTTP requests and watches of the Kubernetes API, with the standard library alone."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from equipoise.errors import InputProblem, InvalidInput, WorldError

Object = dict[str, Any]

PAGE: Final = 500
"""Objects in one answer to a list."""
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_TIMEOUT_S: Final = 30.0
_KEEPALIVE: Final = (
    (socket.TCP_KEEPIDLE, 60),
    (socket.TCP_KEEPINTVL, 15),
    (socket.TCP_KEEPCNT, 4),
)
_TEXT_MAX: Final = 300
_GONE: Final = 410
_CODES: Final[Mapping[int, str]] = {
    401: "api-unauthorized",
    403: "api-forbidden",
    404: "api-not-found",
}
_CURES: Final[Mapping[int, str]] = {
    401: "give a token or a client certificate that the cluster accepts",
    403: "ask the administrator for the right, or use another user",
    404: "check the server and the path of its URL",
}


class ApiRefusal(WorldError):
    """The API answered with an error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, code=_CODES.get(status, "api-error"))
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAddress:
    """Where an API is, and how a client shows who it is."""

    url: str
    token: str = ""
    token_file: Path | None = None
    """Read whenever a connection opens, because clusters renew such tokens."""
    tls: ssl.SSLContext | None = None
    """``None``: the authorities that the machine trusts."""


def address_of(
    url: str, *, key: str = "--server", source: str = "kube", **details: Any
) -> ApiAddress:
    """Return a checked address; ``InvalidInput`` names the key of a wrong one."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
        is_valid = is_valid and (parts.port is None or parts.port > 0) and "@" not in parts.netloc
    except ValueError:
        is_valid = False
    if not is_valid:
        what, cure = f"is {url!r:.80}, no address of an API", "write https://HOST:PORT"
        raise InvalidInput(
            source, [InputProblem(key=key, what=what, cure=cure, code="invalid-value")]
        )
    return ApiAddress(url=url.rstrip("/"), **details)


class ApiConnection:
    """Requests to one API over one connection that stays open."""

    def __init__(self, address: ApiAddress) -> None:
        self.address = address
        self._open: HTTPConnection | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def list_all(self, path: str) -> tuple[list[Object], str]:
        """Return all objects of a collection, page by page, and the version of the list."""
        items: list[Object] = []
        query: dict[str, str] = {"limit": str(PAGE)}
        while True:
            try:
                page = self.request("GET", f"{path}?{urlencode(query)}")
            except ApiRefusal as error:
                if error.status != _GONE or "continue" not in query:
                    raise
                # The pages that are left are too old by now, so the list is read in one answer.
                items, query = [], {}
                continue
            if not isinstance(page.get("items"), list):
                raise WorldError(
                    f"{self.address.url}{path} is no list of objects", code="api-error"
                )
            items += page["items"]
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return items, str(metadata.get("resourceVersion", ""))
            query = {"limit": str(PAGE), "continue": str(metadata["continue"])}

    def request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """Send a request and return the object of the answer; ``ApiRefusal`` if it is an error."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json"}
        if content is not None:
            headers["Content-Type"] = content_type
        was_open = self._open is not None
        try:
            response, answer = self._exchange(method, path, content, headers)
        except WorldError:
            if not was_open:
                raise
            # The server may have closed a connection that was idle for long.
            response, answer = self._exchange(method, path, content, headers)
        return self._read(method, path, response, answer)

    def _exchange(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str]
    ) -> tuple[HTTPResponse, bytes]:
        headers = headers | _authorisation(self.address)
        try:
            if self._open is None:
                self._open = _connect(self.address, _TIMEOUT_S)
            url = urlsplit(self.address.url).path + path
            self._open.request(method, url, content, headers)
            response = self._open.getresponse()
            return response, response.read()
        except (OSError, HTTPException) as error:
            self.close()
            raise _unreachable(self.address, error) from None

    def _read(self, method: str, path: str, response: HTTPResponse, answer: bytes) -> Object:
        try:
            found = json.loads(answer)
        except ValueError:
            found = None
        if response.status >= 400:  # noqa: PLR2004
            raise _refusal(
                self.address, f"{method} {path.partition('?')[0]}", response.status, found
            )
        if not isinstance(found, dict):
            text = f"{self.address.url}{path.partition('?')[0]} does not answer in JSON"
            raise WorldError(f"{text}: check that it is an API of Kubernetes", code="api-error")
        return found

    def watch(self, path: str, version: str) -> Iterator[tuple[str, Object]]:
        """Yield the type and object of each event after a version, on a connection of its own.

        The iterator blocks between events, without a timer, and ends when the server ends the
        watch. A version that is too old raises ``ApiRefusal`` with the status 410.
        """
        query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        url = f"{urlsplit(self.address.url).path}{path}?{urlencode(query)}"
        headers = {"Accept": "application/json"} | _authorisation(self.address)
        connection = response = None
        try:
            connection = _connect(self.address, None)
            connection.request("GET", url, None, headers)
            response = connection.getresponse()
            if response.status >= 400:  # noqa: PLR2004
                self._read("GET", path, response, response.read())
            while line := response.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = int(event["object"].get("code") or 0)
                    raise _refusal(self.address, f"GET {path}", status, event["object"])
                yield event["type"], event["object"]
        except (OSError, HTTPException) as error:
            raise _unreachable(self.address, error) from None
        except (ValueError, KeyError, TypeError):
            text = f"the watch of {self.address.url}{path} sends no events"
            raise WorldError(text, code="api-error") from None
        finally:
            if response is not None:
                response.close()
            if connection is not None:
                connection.close()


def object_path(resource: str, metadata: Mapping[str, Any], subresource: str = "") -> str:
    """Return the path of an object of the core group, or of a part of it."""
    namespace = metadata.get("namespace")
    inside = f"/namespaces/{quote(str(namespace), safe='')}" if namespace else ""
    path = f"/api/v1{inside}/{resource}/{quote(str(metadata['name']), safe='')}"
    return f"{path}/{subresource}" if subresource else path


def _connect(address: ApiAddress, timeout_s: float | None) -> HTTPConnection:
    """Open a connection; ``timeout_s`` counts for each wait for data later."""
    parts = urlsplit(address.url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = address.tls or ssl.create_default_context()
        connection: HTTPConnection = HTTPSConnection(
            parts.hostname, parts.port, timeout=_TIMEOUT_S, context=context
        )
    else:
        connection = HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT_S)
    connection.connect()
    # The kernel finds out that a silent server has gone; the program needs no timer for it.
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        connection.sock.setsockopt(socket.IPPROTO_TCP, option, value)
    connection.sock.settimeout(timeout_s)
    return connection


def _authorisation(address: ApiAddress) -> dict[str, str]:
    token = address.token
    if address.token_file is not None:
        try:
            token = address.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise token_problem(address.token_file, error) from None
    if not all("!" <= sign <= "~" for sign in token):
        problem = InputProblem(
            key="token", what="has a character that no token has", cure="copy it whole",
            code="invalid-value",
        )  # fmt: skip
        raise InvalidInput(address.url, [problem])
    return {"Authorization": f"Bearer {token}"} if token else {}


def token_problem(path: Path, error: Exception) -> InvalidInput:
    """Return the error of a file of a token that cannot be read."""
    reason = getattr(error, "strerror", None) or "it is no text"
    problem = InputProblem(
        key="tokenFile", what=f"cannot be read: {str(reason).lower()}",
        cure="name a file with a token", code="file-not-readable",
    )  # fmt: skip
    return InvalidInput(str(path), [problem])


def _unreachable(address: ApiAddress, error: Exception) -> WorldError:
    if isinstance(error, ssl.SSLCertVerificationError):
        text = f"the certificate of {address.url} is not trusted ({error.verify_message})"
        return WorldError(f"{text}: name its authority in the kubeconfig", code="api-certificate")
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    text = f"{address.url} does not answer ({str(reason).lower()})"
    return WorldError(
        f"{text}: check that the cluster runs at this address", code="api-unreachable"
    )


def _refusal(address: ApiAddress, what: str, status: int, answer: Any) -> ApiRefusal:
    message = answer.get("message") if isinstance(answer, dict) else None
    text = f"{address.url} refuses {what} with {status}"
    if isinstance(message, str) and message:
        text += f" ({message[:_TEXT_MAX]})"
    cure = _CURES.get(status)
    return ApiRefusal(f"{text}: {cure}" if cure else text, status)
