"""One run of Ansible, in a process of its own that can be ended whatever Ansible does.

The process ends itself when we are gone. The folder of a run is for us alone, and nothing is left
of it, for secrets stand in it. Never says what an event means.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Any, Final

from equipoise.errors import MissingExtra
from equipoise.hosts.ansible.brake import Brake
from equipoise.hosts.ansible.heard import Ending, Event, Heard, event_of
from equipoise.hosts.ansible.layout import kept_of
from equipoise.hosts.ansible.sweep import MARK, sweep

GRACE_S: Final = 20.0
"""How long a run may take to end after it was told to."""
TAIL: Final = 1000
PLAYER: Final = "ansible-playbook"

Listener = Callable[[Event], object]


def need_ansible() -> None:
    """Raise ``MissingExtra`` if Ansible is not installed."""
    if find_spec("ansible_runner") is None or shutil.which(PLAYER, path=_search_path()) is None:
        raise MissingExtra("ansible", "acting on hosts by Ansible")


def run(
    files: Mapping[str, str],
    settings: Mapping[str, str],
    timeout_s: int,
    listener: Listener,
    brake: Brake,
) -> Heard:
    """Run Ansible in a folder with these files, and listen until it has ended."""
    with _folder(files) as folder:
        own = {
            "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            "ANSIBLE_HOME": str(folder / "home"),
            "PATH": _search_path(),
            MARK: str(folder),
        }
        order = {"folder": str(folder), "timeout_s": timeout_s, "environment": {**settings, **own}}
        with _Player(folder) as player:
            return player.play(order, timeout_s, listener, brake)


class _Player:
    """The process, from its start to its certain end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._events: list[Event] = []
        self._end: Mapping[str, Any] | None = None
        self._is_late = self._is_interrupted = False
        self._ender: Timer | None = None

    def __enter__(self) -> _Player:
        with (self._folder / "complaints").open("w", encoding="utf-8") as complaints:
            self._process = subprocess.Popen(
                (sys.executable, "-P", "-m", "equipoise.hosts.ansible.talk"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                env=kept_of(os.environ),
                start_new_session=True,  # Ctrl-C comes to us, and we tell it
            )
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        if self._end is None:
            sweep(self._folder)

    def play(
        self, order: Mapping[str, Any], timeout_s: int, listener: Listener, brake: Brake
    ) -> Heard:
        """Give the order and listen to the end."""
        with _at(timeout_s + GRACE_S, self._give_up):
            try:
                self._order(order)
                with brake.wired(self._interrupt):
                    self._listen(listener)
            except KeyboardInterrupt:
                self._interrupt()
                with suppress(KeyboardInterrupt):  # who insists does not want to wait for the rest
                    self._listen(lambda _event: None)
        if self._ender is not None:
            self._ender.cancel()
        return self._heard()

    def _order(self, order: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has died already, and what it complained is heard
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()

    def _listen(self, listener: Listener) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            document = json.loads(line)
            if "end" in document:
                self._end = document["end"]
                return
            event = event_of(document["event"])
            self._events.append(event)
            listener(event)

    def _interrupt(self) -> None:
        self._is_interrupted = True
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()  # that is the sign
        self._ender = Timer(GRACE_S, self._process.kill)
        self._ender.daemon = True
        self._ender.start()

    def _give_up(self) -> None:
        self._is_late = True
        self._process.kill()

    def _heard(self) -> Heard:
        if self._end is None:
            ending = Ending.TIME_UP if self._is_late else Ending.DIED
            if self._is_interrupted:
                ending = Ending.INTERRUPTED
            complaints = (self._folder / "complaints").read_text("utf-8", "replace")
            return Heard(
                ending=ending,
                events=tuple(self._events),
                tail=complaints[-TAIL:],
                is_interrupted=self._is_interrupted,
            )
        endings = {"timeout": Ending.TIME_UP, "canceled": Ending.INTERRUPTED}
        return Heard(
            ending=endings.get(self._end["status"], Ending.BY_ITSELF),
            events=tuple(self._events),
            stats=self._end["stats"],
            rc=self._end["rc"],
            tail=self._end["tail"],
            is_interrupted=self._is_interrupted,
        )


@contextmanager
def _folder(files: Mapping[str, str]) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="equipoise-")).resolve()  # readable by nobody else
    try:
        for name, text in files.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch(mode=0o600)
            place.write_text(text, encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _at(delay_s: float, deed: Callable[[], object]) -> Iterator[None]:
    """Do something if what happens here takes too long."""
    timer = Timer(delay_s, deed)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _search_path() -> str:
    """Where programs are found: those of our own environment first."""
    own = str(Path(sys.executable).parent)
    return os.pathsep.join(filter(None, (own, os.environ.get("PATH", ""))))
