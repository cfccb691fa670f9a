"""Builds the Go program ``data/clock_probe`` and runs it step by step on a virtual clock."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from equipoise.adapters.kubernetes.clock.overlay import go_version, write_overlay
from equipoise.adapters.kubernetes.clock.page import START_NS, VirtualClockPage
from equipoise.adapters.kubernetes.clock.quiescence import wait_until_idle
from equipoise.adapters.kubernetes.clock.sockets import Pair, SocketQueues
from equipoise.errors import EquipoiseError

SOURCE = Path(__file__).parent / "data" / "clock_probe"
WALL_NS = 1_700_000_000 * 10**9
LIMIT_S = 60.0


def local_goroot() -> Path:
    """The folder of the local Go; the test is skipped without one that the overlay knows."""
    program = shutil.which("go")
    if program is None:
        pytest.skip("Go is not installed")
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    line = (program, "env", "GOROOT")
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=environment)
    return Path(done.stdout.strip())


def build_probe(folder: Path) -> Path:
    """Build the probe with the overlay; seconds if Go's cache has its libraries."""
    goroot = local_goroot()
    try:
        overlay = write_overlay(goroot, folder)
    except EquipoiseError as error:
        pytest.skip(f"Go {go_version(goroot)}: {error.code}")
    program = folder / "probe"
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-buildvcs=false",
        "GOTOOLCHAIN": "local",
    }
    subprocess.run(
        ("go", "build", "-trimpath", "-overlay", str(overlay), "-o", str(program), "."),
        check=True, cwd=SOURCE, env=environment,
    )  # fmt: skip
    return program


class NoServer:
    """A server with the given connections and nothing to do."""

    requests_open = 0
    requests_total = 0

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.pairs: list[Pair] = []

    def connections(self) -> list[Pair]:
        return self.pairs

    def listening_socket(self) -> socket.socket:
        return self.listening

    async def turn(self) -> None:
        await asyncio.sleep(0)


@dataclass(slots=True)
class Probe:
    """A running probe. ``lines`` are what it printed: the virtual instant, and the words."""

    page: VirtualClockPage
    process: subprocess.Popen[str]
    output: IO[str]
    server: NoServer = field(default_factory=NoServer)
    queues: SocketQueues = field(default_factory=SocketQueues)
    lines: list[tuple[int, list[str]]] = field(default_factory=list)
    steps: int = 0

    @property
    def now_ns(self) -> int:
        """The virtual time since the start."""
        return self.page.now_ns - START_NS

    async def rest(self, limit_s: float = LIMIT_S) -> bool:
        """Wait until it is idle, and take what it has printed in this instant."""
        is_idle = await wait_until_idle(self.page, self.server, limit_s=limit_s, queues=self.queues)
        self.take()
        return is_idle

    def take(self) -> None:
        """Take what it has printed since the last time."""
        self.lines += [(self.now_ns, line.split()) for line in self.output.readlines()]

    async def step(self) -> bool:
        """Advance the clock to its next timer; ``False`` without one or after its end."""
        if not await self.run_on() or not self.page.next_timer_ns:
            return False
        self.page.advance(self.page.next_timer_ns)
        self.steps += 1
        return True

    async def run_on(self) -> bool:
        """Wait until it is idle; ``False`` if it has ended instead."""
        try:
            assert await self.rest(), "the probe is never idle"
        except EquipoiseError as error:
            if error.code != "scheduler-ended":
                raise
            self.take()
            return False
        return True

    def feed(self, text: str) -> None:
        """Write to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()


@contextmanager
def running(
    program: Path, folder: Path, *words: str, text: str = "", seed: int = 0
) -> Iterator[Probe]:
    """Start the probe. ``text`` is its whole standard input, unless that is empty."""
    output = folder / "output"
    with (
        VirtualClockPage(folder / "page", wall_ns=WALL_NS, seed=seed) as page,
        output.open("w+") as file,
    ):
        environment = os.environ | page.environment
        process = subprocess.Popen(
            (str(program), *words),
            env=environment, text=True, stdin=subprocess.PIPE, stdout=file,
        )  # fmt: skip
        with output.open() as reader, process:
            probe = Probe(page, process, reader)
            if text:
                probe.feed(text)
            try:
                yield probe
            finally:
                process.kill()
                probe.server.listening.close()
                probe.queues.close()


def run_to_end(program: Path, folder: Path, *words: str, text: str = "", seed: int = 0) -> Probe:
    """Run the probe from timer to timer until it ends, and check that it ended well."""
    with running(program, folder, *words, text=text, seed=seed) as probe:

        async def run() -> None:
            while await probe.step():
                pass

        asyncio.run(run())
        try:
            # The first thread may have ended a little before the process has.
            status = probe.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the probe waits for ever at {probe.now_ns}") from error
        assert status == 0
    return probe
