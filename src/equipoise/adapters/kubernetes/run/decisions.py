"""The decisions of a run: what schedulers wrote, with the instant, in a file that can be replayed.

A decision is placed by its instant and by the number of things that had happened in the cluster
before it. So a replay needs no scheduler, no network and no clock of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from equipoise.adapters.kubernetes.api.app import KubernetesApp, RequestRecord
from equipoise.adapters.kubernetes.run.moment import Moment
from equipoise.adapters.kubernetes.run.scheduler import SchedulerSettings, StartedScheduler
from equipoise.errors import InputProblem, InvalidInput, WorldError

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSED: Final = 400


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a scheduler that changed something."""

    at_ns: int
    after: int
    """How many things had happened in the cluster before."""
    method: str
    path: str
    query: str = ""
    content_type: str = "application/json"
    body: Any = None


class RunHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a file of decisions: the run that it belongs to."""

    workload: str
    """The SHA-256 of nodes and arrivals."""
    schedulers: tuple[str, ...]
    clock: str


class DecisionLog:
    """Receives requests and keeps those that decide; writes them to a file as they come."""

    def __init__(self, moment: Moment, path: Path | None = None) -> None:
        self.decisions = 0
        self._moment = moment
        self._path = path
        self._file: TextIOWrapper | None = None
        self.delivered = _no_events
        """Returns how many things have happened; set before the run."""
        self.wrote = _no_reaction
        """Called after each decision; set before the run."""

    def begin(self, head: RunHead) -> None:
        """Write the first line."""
        if self._path is not None:
            try:
                self._file = self._path.open("w", encoding="utf-8")
            except OSError as error:
                what = f"cannot be written: {(error.strerror or '').lower()}"
                raise _problem(self._path, what, "name another file") from error
            self._write(head)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def receive(self, request: RequestRecord) -> None:
        """Keep a request that changed pods; a second copy of an event decides nothing."""
        if request.method in _READS or request.status >= _REFUSED or "/events" in request.path:
            return
        self.decisions += 1
        self.wrote()
        if self._file is not None:
            self._write(
                Decision(
                    at_ns=self._moment.now_ns,
                    after=self.delivered(),
                    method=request.method,
                    path=request.path,
                    query=request.query,
                    content_type=request.content_type,
                    body=request.body,
                )
            )

    def _write(self, line: msgspec.Struct) -> None:
        assert self._file is not None
        self._file.write(msgspec.json.encode(line).decode() + "\n")


def _no_events() -> int:
    return 0


def _no_reaction() -> None:
    """Do nothing: no run has begun."""


def read_decisions(path: Path) -> tuple[RunHead, list[Decision]]:
    """Read a file of decisions; an unfinished last line is left out."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _problem(path, "cannot be read", "name a file of decisions") from error
    head, decisions = None, list[Decision]()
    for number, line in enumerate(lines[:-1], start=1):
        try:
            if head is None:
                head = msgspec.json.decode(line, type=RunHead)
            else:
                decisions.append(msgspec.json.decode(line, type=Decision))
        except msgspec.DecodeError as error:
            raise _problem(path, f"line {number}: {error}", "replay an unchanged file") from None
    if head is None:
        raise _problem(path, "has no first line", "name a file of decisions")
    return head, decisions


class RecordedClock:
    """Plays recorded decisions in place of a scheduler."""

    name = "replay"
    acts_alone = True
    notes: Sequence[str] = ()
    settings = SchedulerSettings()

    def __init__(self, moment: Moment, app: KubernetesApp, decisions: Sequence[Decision]) -> None:
        self._moment = moment
        self._app = app
        self._waiting = deque(decisions)
        self.delivered = _no_events

    def environment(self, number: int) -> dict[str, str]:
        """Return nothing: no program is started."""
        del number
        return {}

    def attach(self, scheduler: StartedScheduler) -> None:
        """No scheduler is attached."""

    async def settle(self) -> None:
        """Apply the decisions that followed what has happened by now."""
        while self._waiting:
            first = self._waiting[0]
            if first.after > self.delivered() or first.at_ns > self._moment.now_ns:
                return
            self._waiting.popleft()
            status = await _apply(self._app, first)
            if status >= _REFUSED:
                text = f"{first.method} {first.path} is refused with status {status}"
                raise WorldError(f"the record does not fit the run: {text}", code="stale-plan")

    def next_timer_ns(self) -> int | None:
        """Return when the next recorded decision was made, if nothing happens before."""
        if not self._waiting or self._waiting[0].after > self.delivered():
            return None
        return max(self._waiting[0].at_ns, self._moment.now_ns)

    def advance(self, to_ns: int) -> None:
        """Let the time of the run pass."""
        self._moment.advance(to_ns)

    def close(self) -> None:
        """Nothing is held."""

    @property
    def left(self) -> int:
        """How many decisions were not played."""
        return len(self._waiting)


async def _apply(app: KubernetesApp, decision: Decision) -> int:
    """Let the application answer a decision without a network; return the status."""
    body = b"" if decision.body is None else msgspec.json.encode(decision.body)
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": decision.method,
        "path": decision.path,
        "query_string": decision.query.encode(),
        "headers": [(b"content-type", decision.content_type.encode("latin-1"))],
    }
    await app(scope, receive, send)
    return statuses[0]


def _problem(path: Path, what: str, cure: str) -> InvalidInput:
    return InvalidInput(str(path), [InputProblem(key="", what=what, cure=cure)])
