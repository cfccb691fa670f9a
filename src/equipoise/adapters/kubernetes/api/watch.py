"""Watches: what clients receive of the changes, by their selectors and in both dialects.

An object that enters a selection is ADDED, one that leaves it is DELETED. Every change is encoded
once for all watches that show it in the same form. A watch sends what it has once per turn of the
event loop; one whose client does not read ends when it holds too much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from equipoise.adapters.kubernetes.api.errors import ApiError, bad_request, too_many
from equipoise.adapters.kubernetes.api.resources import PODS, Resource
from equipoise.adapters.kubernetes.api.selectors import Matches
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind, ObjectStore
from equipoise.adapters.kubernetes.api.verbs.rendering import Rendering, encode

Object = dict[str, Any]
Send = Callable[[bytes], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_BATCH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLimits:
    """How many watches there may be, how much one may hold, and how often it gets a bookmark."""

    watches_max: int = 2_000
    pending_bytes_max: int = 256 * 1024 * 1024
    bookmark_s: float = 60.0
    """Real seconds between bookmarks; 0 for none."""
    timeouts: bool = True
    """Whether a watch ends after the ``timeoutSeconds`` that its client asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """What a client asks to see."""

    rendering: Rendering
    namespace: str = ""
    matches: Matches | None = None
    version: str = ""
    bookmarks: bool = False
    initial_events: bool = False
    """Whether the client asks for the streaming dialect, which ends with a bookmark."""
    timeout_s: float = 0.0
    client: str = ""
    """The name of the client in the path: how a run tells its schedulers apart."""


class Watch:
    """One open watch: what it shows, and what it has not sent yet."""

    __slots__ = ("_pending_max", "ended", "is_sending", "pending", "pending_bytes", "request",
                 "wakeup")  # fmt: skip

    def __init__(self, request: WatchRequest, pending_max: int) -> None:
        self.request = request
        self.pending: list[bytes] = []
        self.pending_bytes = 0
        self.ended = False
        self.is_sending = False
        self.wakeup = asyncio.Event()
        self._pending_max = pending_max

    def put(self, line: bytes) -> None:
        """Hold a line for the next turn."""
        self.pending.append(line)
        self.pending_bytes += len(line)
        if self.pending_bytes > self._pending_max:
            # The client lists again when it comes back.
            self.pending.clear()
            self.pending_bytes = 0
            self.ended = True
        self.wakeup.set()

    def end(self) -> None:
        """End the watch after what it still holds."""
        self.ended = True
        self.wakeup.set()

    def take(self) -> bytes:
        """Return all that is held, as one piece."""
        piece = b"".join(self.pending)
        self.pending.clear()
        self.pending_bytes = 0
        return piece


class Watches:
    """All open watches of a store."""

    def __init__(self, store: ObjectStore, limits: WatchLimits) -> None:
        self._store = store
        self._limits = limits
        self._by_resource: dict[Resource, list[Watch]] = {}
        self._unsubscribe = store.subscribe(self._on_change)
        self._count = 0
        self._held: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """Return how many watches are open."""
        return self._count

    @property
    def unsent(self) -> int:
        """Return how many watches have events that they may send and have not sent."""
        return sum(
            watch.is_sending or (bool(watch.pending) and not self._is_held(watch))
            for watches in self._by_resource.values()
            for watch in watches
        )

    def hold(self, clients: frozenset[str]) -> None:
        """Keep the events of these clients from now on, and send those of all others."""
        self._held = clients
        for watch in self._all():
            if watch.pending and not self._is_held(watch):
                watch.wakeup.set()

    def has_events(self, client: str) -> bool:
        """Return whether a watch of a client has events that it has not sent."""
        return any(watch.pending and watch.request.client == client for watch in self._all())

    def close(self) -> None:
        """End all watches."""
        self._unsubscribe()
        for watch in self._all():
            watch.end()

    def poke(self, *, everywhere: bool = False) -> int:
        """Send a bookmark on the oldest watch of pods, or on every watch; return on how many."""
        watches = [watch for watch in self._all() if watch.request.bookmarks and not watch.ended]
        if not everywhere:
            watches.sort(key=lambda watch: watch.request.rendering.served.resource is not PODS)
            del watches[1:]
        for watch in watches:
            watch.put(self._bookmark(watch.request))
        return len(watches)

    def check(self) -> None:
        """Raise ``ApiError`` 429 if there are too many watches."""
        if self._count >= self._limits.watches_max:
            text = f"at most {self._limits.watches_max} watches may be open"
            raise too_many(text, retry_after_s=1)

    async def serve(
        self, request: WatchRequest, send: Send, receive: Receive, opened: Callable[[], None]
    ) -> None:
        """Send a watch until it ends; ``opened`` is called when the initial events are sent."""
        watch = Watch(request, self._limits.pending_bytes_max)
        try:
            initial = self._initial(request)
        except ApiError as error:
            await send(encode({"type": "ERROR", "object": error.status()}) + b"\n")
            return
        served = self._by_resource.setdefault(request.rendering.served.resource, [])
        served.append(watch)
        self._count += 1
        timers = _Timers(watch, self._limits, lambda: self._bookmark(request))
        leaving = asyncio.ensure_future(_end_when_left(watch, receive))
        try:
            for batch in _batches(initial):
                await send(batch)
            opened()
            while True:
                await watch.wakeup.wait()
                watch.wakeup.clear()
                if watch.pending and (watch.ended or not self._is_held(watch)):
                    watch.is_sending = True
                    await send(watch.take())
                    watch.is_sending = False
                if watch.ended and not watch.pending:
                    return
        finally:
            timers.cancel()
            leaving.cancel()
            served.remove(watch)
            self._count -= 1

    def _is_held(self, watch: Watch) -> bool:
        return watch.request.client in self._held

    def _all(self) -> list[Watch]:
        return [watch for watches in self._by_resource.values() for watch in watches]

    def _initial(self, request: WatchRequest) -> Iterable[bytes]:
        """Return the lines before the live ones. What is wrong with the request is raised now."""
        rendering = request.rendering
        resource = rendering.served.resource
        if not request.initial_events and request.version not in ("", "0"):
            version = parse_version(request.version)
            changes = self._store.changes_since(resource, version)
            return [
                rendering.event(*shown)
                for change in changes
                if (shown := shown_change(request, change)) is not None
            ]
        if request.version not in ("", "0"):
            self._store.check_reached(parse_version(request.version))
        objects = self._store.list(resource, request.namespace, request.matches)
        return self._initial_objects(request, objects)

    def _initial_objects(self, request: WatchRequest, objects: list[Object]) -> Iterator[bytes]:
        end = self._bookmark(request, end=True)
        for stored in objects:
            yield request.rendering.event("ADDED", stored)
        if request.initial_events and request.bookmarks:
            yield end

    def _bookmark(self, request: WatchRequest, *, end: bool = False) -> bytes:
        metadata: Object = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        if end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        return request.rendering.bookmark(metadata)

    def _on_change(self, change: Change) -> None:
        watches = self._by_resource.get(change.resource)
        if not watches:
            return
        lines: dict[tuple[Rendering, str], bytes] = {}
        for watch in watches:
            if watch.ended:
                continue
            shown = shown_change(watch.request, change)
            if shown is None:
                continue
            # The kind of event implies which state it shows.
            key = (watch.request.rendering, shown[0])
            line = lines.get(key)
            if line is None:
                line = lines[key] = watch.request.rendering.event(*shown)
            watch.put(line)


def shown_change(request: WatchRequest, change: Change) -> tuple[str, Object] | None:
    """Return the type and the object of the event that a change is to a watch, if it is one."""
    stored = change.object
    if request.namespace and stored["metadata"].get("namespace") != request.namespace:
        return None
    matches = request.matches
    if matches is None:
        return change.kind.value, stored
    old = change.old
    was_selected = old is not None and matches(old)
    if change.kind is ChangeKind.DELETED:
        return ("DELETED", stored) if was_selected else None
    if matches(stored):
        return ("MODIFIED" if was_selected else "ADDED"), stored
    if not was_selected:
        return None
    assert old is not None
    # As the real API: the last state that was selected, with the version at which it left.
    version = stored["metadata"]["resourceVersion"]
    return "DELETED", {**old, "metadata": {**old["metadata"], "resourceVersion": version}}


def parse_version(text: str) -> int:
    """Return the number of a resource version, or raise ``ApiError`` 400."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):  # noqa: PLR2004
        raise bad_request(f"Invalid value: {text!r}: resourceVersion must be a number")
    return int(text)


def _batches(lines: Iterable[bytes]) -> Iterator[bytes]:
    batch: list[bytes] = []
    for line in lines:
        batch.append(line)
        if len(batch) == _BATCH:
            yield b"".join(batch)
            batch.clear()
    if batch:
        yield b"".join(batch)


async def _end_when_left(watch: Watch, receive: Receive) -> None:
    """End a watch when its client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    watch.pending.clear()
    watch.end()


class _Timers:
    """The bookmarks and the end of a watch, in real seconds of the event loop."""

    def __init__(self, watch: Watch, limits: WatchLimits, bookmark: Callable[[], bytes]) -> None:
        self._watch = watch
        self._bookmark = bookmark
        self._bookmark_s = limits.bookmark_s if watch.request.bookmarks else 0.0
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.TimerHandle | None = None
        self._next: asyncio.TimerHandle | None = None
        if limits.timeouts and watch.request.timeout_s > 0:
            self._end = self._loop.call_later(watch.request.timeout_s, watch.end)
        if self._bookmark_s:
            self._next = self._loop.call_later(self._bookmark_s, self._send_bookmark)

    def cancel(self) -> None:
        for timer in (self._end, self._next):
            if timer is not None:
                timer.cancel()

    def _send_bookmark(self) -> None:
        self._watch.put(self._bookmark())
        self._next = self._loop.call_later(self._bookmark_s, self._send_bookmark)
