"""A scheduler under test in a process of its own, asked in JSON lines.

Whatever it does, the one who asks gets an answer: a plan, a crash it survived, or a ``WorldError``
if it died, talked nonsense or was silent for too long. A worker that was lost stays lost.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from equipoise.errors import WorldError
from equipoise.fuzz.schedulers.scheduler import TooLate, Unsupported
from equipoise.fuzz.targets.encode import Cluster
from equipoise.fuzz.targets.environment import TARGETS, find
from equipoise.fuzz.targets.folder import MissingTarget

START_S_MAX: Final = 120.0
_LEAVING_S_MAX: Final = 0.5
_WORDS_MAX: Final = 2000


@dataclass(frozen=True, slots=True)
class Move:
    """One migration that a target wants, with the source that it believes in."""

    vm: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Planned:
    """What a target would do, in its order, and how long it thought."""

    moves: tuple[Move, ...]
    seconds: float
    """Deciding only, measured by the worker: neither building its model nor the pipe."""

    def placement(self, before: Mapping[str, str]) -> dict[str, str]:
        """Where each VM is after the moves; one with a wrong source is not carried out."""
        after = dict(before)
        for move in self.moves:
            if after.get(move.vm) == move.source:
                after[move.vm] = move.target
        return after


@dataclass(frozen=True, slots=True)
class Crashed:
    """A target broke while it was deciding, but its process lives."""

    what: str


Answer = Planned | Crashed
Admission = tuple[bool, ...] | Crashed
"""Whether a VM may be put on each of the hosts that were asked for."""
Acceptance = bool | Crashed | Unsupported | TooLate
"""Whether a plan would be accepted."""
OwnPlan = dict[str, Any] | Crashed | Unsupported | TooLate | None
"""A plan in the target's own words, or nothing if it has found none."""
Placement = dict[str, str] | Crashed
"""Where each VM goes that goes anywhere, in the order in which it was decided."""
Acts = tuple[Mapping[str, Any], ...] | Crashed
"""What it would do, in its order: each with ``do``, and with whom it is done."""
_Asked = Sequence[Mapping[str, Any]]
_Read = TypeVar("_Read")


class Worker:
    """A long-lived process; leave it with ``with`` or ``close``.

    ``line`` is the command that starts it, ``name`` what it is called when it is in trouble.
    """

    def __init__(
        self, line: Sequence[str | Path], *, name: str, start_s_max: float = START_S_MAX
    ) -> None:
        self._name = name
        self._lost = ""
        self._late = threading.Event()
        # A file, not a pipe: nobody reads it while the process runs, and a pipe would fill up.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the worker)
        clean = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
        try:
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
                start_new_session=True, env=clean,
            )  # fmt: skip
        except OSError as error:
            self._said.close()
            raise WorldError(f"{self._name} cannot be started: {error}") from error
        try:
            hello = self._exchange({"ask": "hello"}, start_s_max)
            self.version = str(hello.get("version", ""))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def plan(self, cluster: Cluster, *, seconds_max: float = 300.0) -> Answer:
        """Ask what the target would do with a cluster; nothing is remembered between questions."""
        said = self._exchange({"ask": "plan", "cluster": cluster}, seconds_max)
        if "crash" in said:
            return Crashed(str(said["crash"]))
        try:
            moves = tuple(
                Move(str(move["vm"]), str(move["from"]), str(move["to"])) for move in said["moves"]
            )
            return Planned(moves, float(said["seconds"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._lose(f"answered nonsense: {json.dumps(said)[:200]}") from error

    def admits(self, questions: _Asked, *, seconds_max: float = 300.0) -> tuple[Admission, ...]:
        """Ask which hosts a VM may be put on; each question is answered by itself."""
        return self._ask_each({"ask": "admits"}, questions, seconds_max, _admission)

    def place(self, questions: _Asked, *, seconds_max: float = 300.0) -> tuple[Placement, ...]:
        """Ask where some VMs go; each question is answered by itself."""
        return self._ask_each({"ask": "place"}, questions, seconds_max, _placement)

    def act(self, questions: _Asked, *, seconds_max: float = 300.0) -> tuple[Acts, ...]:
        """Ask what the target would do, action by action; each question is answered by itself."""
        return self._ask_each({"ask": "act"}, questions, seconds_max, _acts)

    def accepts(
        self, questions: _Asked, *, each_s_max: int, seconds_max: float = 300.0
    ) -> tuple[Acceptance, ...]:
        """Ask whether plans would be accepted; each question is answered by itself, and in time."""
        ask = {"ask": "accepts", "limit_s": each_s_max}
        return self._ask_each(ask, questions, seconds_max, _acceptance)

    def checks(self, questions: _Asked, *, seconds_max: float = 300.0) -> tuple[Acceptance, ...]:
        """Ask whether the target's own checker accepts plans; there is no search to be limited."""
        ask = {"ask": "checks", "limit_s": 0}
        return self._ask_each(ask, questions, seconds_max, _acceptance)

    def plans(
        self, questions: _Asked, *, each_s_max: int, seconds_max: float = 300.0
    ) -> tuple[OwnPlan, ...]:
        """Ask which plans it would make; each question is answered by itself, and in time."""
        ask = {"ask": "plans", "limit_s": each_s_max}
        return self._ask_each(ask, questions, seconds_max, _own_plan)

    def _ask_each(
        self,
        ask: Mapping[str, Any],
        questions: _Asked,
        seconds_max: float,
        read: Callable[[Mapping[str, Any]], _Read],
    ) -> tuple[_Read | Crashed, ...]:
        said = self._exchange({**ask, "questions": questions}, seconds_max)
        if "crash" in said:  # the target answers each by itself, so it is none of its crashes
            raise WorldError(f"{self._name} cannot put a question: {said['crash']}")
        try:
            return tuple(
                Crashed(str(one["crash"])) if "crash" in one else read(one)
                for _, one in zip(questions, said["answers"], strict=True)
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._lose(f"answered nonsense: {json.dumps(said)[:200]}") from error

    @property
    def is_late(self) -> bool:
        """Whether it was lost because it gave no answer in time."""
        return self._late.is_set()

    def close(self) -> None:
        """End the process; once is enough."""
        self._kill()  # first, so that no stream waits for somebody who does not listen
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what was not sent need not arrive any more
                if stream is not None:
                    stream.close()
        self._said.close()
        self._lost = self._lost or f"{self._name} is closed"

    def _exchange(self, question: Mapping[str, Any], seconds_max: float) -> dict[str, Any]:
        """Send a line and read one. When time is up the process dies, which ends both waits."""
        if self._lost:
            raise WorldError(self._lost)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(seconds_max, self._give_up)
        timer.daemon = True
        timer.start()
        line = b""
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            pass  # it is dead, as the empty line will tell
        finally:
            timer.cancel()
        if self._late.is_set():
            raise self._lose(f"gave no answer within {seconds_max:g} s")
        if not line.endswith(b"\n"):
            raise self._lose("died")
        try:
            said = json.loads(line)
        except ValueError as error:
            raise self._lose(f"answered nonsense: {line[:200]!r}") from error
        if not isinstance(said, dict):
            raise self._lose(f"answered nonsense: {line[:200]!r}")
        return said

    def _give_up(self) -> None:
        self._late.set()
        self._kill()

    def _lose(self, how: str) -> WorldError:
        """End what is left of the process and say how it ended, with its own last words."""
        # One that has just closed its end may be leaving by itself: its own exit code says more.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LEAVING_S_MAX)
        self._kill()
        code = self._process.wait()
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - _WORDS_MAX))
        words = self._said.read().decode(errors="replace").strip()
        ended = f" (exit code {code})" if how == "died" else ""
        self._lost = f"{self._name} {how}{ended}" + (f":\n{words}" if words else "")
        return WorldError(self._lost)

    def _kill(self) -> None:
        """Kill it and whatever it started: all of them are in the session that it leads."""
        if self._process.returncode is None:  # else its number may belong to somebody else by now
            os.killpg(self._process.pid, signal.SIGKILL)


def _admission(said: Mapping[str, Any]) -> tuple[bool, ...]:
    return tuple(map(bool, said["passes"]))


def _placement(said: Mapping[str, Any]) -> dict[str, str]:
    return {str(vm): str(host) for vm, host in said["placed"].items()}


def _acts(said: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return tuple({"do": str(one["do"]), **one} for one in said["acts"])


def _acceptance(said: Mapping[str, Any]) -> bool | Unsupported | TooLate:
    match said:
        case {"accepts": bool(yes)}:
            return yes
        case {"unsupported": str(why)}:
            return Unsupported(why)
        case {"late": True}:
            return TooLate("it gave no answer in time")
    raise ValueError("none of the answers that there are")


def _own_plan(said: Mapping[str, Any]) -> dict[str, Any] | Unsupported | TooLate | None:
    match said:
        case {"plan": None}:
            return None
        case {"plan": dict(plan)}:
            return plan
    why = _acceptance(said)
    if isinstance(why, bool):
        raise ValueError("it was not asked whether it accepts")
    return why


def start(name: str) -> Worker:
    """Start the worker of a target whose environment is there already."""
    python = find(name)
    if python is None:
        raise missing(name)
    # -s: packages of the person who runs this have no place in a pinned environment
    script = TARGETS[name].script
    return Worker([python, "-s", script], name=script.stem)


def why_missing(name: str) -> str:
    """Why a target cannot be asked on this machine, and what would help; nothing if it can."""
    return "" if find(name) is not None else str(missing(name))


def missing(name: str) -> MissingTarget:
    """What is wrong if the environment of a target is not there, and what helps."""
    target = TARGETS[name]
    why = f"there is no whole environment in {target.folder}"
    return MissingTarget(target, why, f"run '{target.command}'")
