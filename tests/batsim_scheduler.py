"""A small Batsim scheduler, and the ways in which one can fail.

As a program: ``python batsim_scheduler.py ENDPOINT [FAULT]``. In a test: ``ThreadScheduler``, which
serves a socket in a thread, so that a run needs no process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq

PLATFORM = """<platform version="4.1"><zone id="z" routing="Vivaldi">
<host id="master_host" coordinates="0 0 0" speed="1f"/>
<host id="a" coordinates="0 0 0" speed="10f"/>
<host id="b" coordinates="0 0 0" speed="10f"/>
</zone></platform>"""
WORKLOAD = {
    "nb_res": 2,
    "jobs": [
        {"id": 0, "subtime": 0, "res": 1, "profile": "five", "walltime": 100},
        {"id": 1, "subtime": 10, "res": 1, "profile": "five", "walltime": 100},
        {"id": 2, "subtime": 20, "res": 1, "profile": "five", "walltime": 100},
    ],
    "profiles": {"five": {"type": "delay", "delay": 5}},
}


def write_inputs(folder: Path) -> tuple[str, ...]:
    """Write a platform of two hosts and three jobs; return the options that name them."""
    (folder / "platform.xml").write_text(PLATFORM)
    (folder / "jobs.json").write_text(json.dumps(WORKLOAD))
    return ("-p", str(folder / "platform.xml"), "-w", str(folder / "jobs.json"))


def event(now: float, kind: str, **data: Any) -> dict[str, Any]:
    """Return an event of a reply."""
    return {"timestamp": now, "type": kind, "data": data}


class FirstComeFirstServed:
    """Starts each job on the lowest free host, in the order of arrival."""

    def __init__(self) -> None:
        self.free: set[int] = set()
        self.queue: list[str] = []

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a message."""
        now, events = message["now"], []
        for each in message["events"]:
            data = each["data"]
            if each["type"] == "SIMULATION_BEGINS":
                self.free = set(range(data["nb_compute_resources"]))
            elif each["type"] == "JOB_SUBMITTED":
                self.queue.append(data["job_id"])
            elif each["type"] == "JOB_COMPLETED":
                self.free.add(int(data["alloc"]))
        while self.queue and self.free:
            host = min(self.free)
            self.free.discard(host)
            events.append(event(now, "EXECUTE_JOB", job_id=self.queue.pop(0), alloc=str(host)))
        return {"now": now, "events": events}


Answer = bytes | list[bytes] | None
"""The frames of an answer; None to close the socket without one."""


def is_at(message: dict[str, Any], kind: str, job: str = "w0!1") -> bool:
    """True if a message has an event of this kind, and of this job if it names one."""
    return any(
        each["type"] == kind and each["data"].get("job_id", job) == job
        for each in message["events"]
    )


class ThreadScheduler:
    """Serves one socket in a thread; ``fault`` may replace the answer to a message."""

    def __init__(
        self, fault: Callable[[dict[str, Any], bytes], Answer] = lambda message, good: good
    ) -> None:
        self.messages: list[dict[str, Any]] = []
        self._fault = fault
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.linger = 1000
        port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self.endpoint = f"tcp://127.0.0.1:{port}"
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> ThreadScheduler:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ending.set()
        self._thread.join(10)
        self._context.destroy()

    def _serve(self) -> None:
        policy = FirstComeFirstServed()
        while not self._ending.is_set():
            if not self._socket.poll(20):
                continue
            message = json.loads(self._socket.recv())
            self.messages.append(message)
            answer = self._fault(message, json.dumps(policy.answer(message)).encode())
            if answer is None:
                self._socket.close()
                return
            if answer == b"hang":
                self._ending.wait(10)
                return
            self._socket.send_multipart(answer if isinstance(answer, list) else [answer])


def main(endpoint: str, fault: str) -> int:
    """Serve until the end of the simulation, unless the fault comes first."""
    socket = zmq.Context().socket(zmq.REP)
    socket.bind(endpoint)
    policy = FirstComeFirstServed()
    if fault == "noise":
        sys.stdout.write("x" * 2_000_000 + "\n")
    while True:
        message = json.loads(socket.recv())
        if fault and is_at(message, "JOB_SUBMITTED"):
            if fault == "slow exit":
                socket.close()
            _fail(fault)
        socket.send(json.dumps(policy.answer(message)).encode())
        if is_at(message, "SIMULATION_ENDS"):
            break
    if fault == "linger":
        time.sleep(3600)
    return 7 if fault == "code" else 0


def _fail(fault: str) -> None:
    """Fail in the middle of a run."""
    if fault == "slow exit":
        time.sleep(1.5)  # a large process, or a busy machine
    if fault in {"exit", "slow exit"}:
        sys.stderr.write("no more ideas\n")
        sys.exit(5)
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault in {"hang", "stubborn"}:
        if fault == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "3600"])
        Path("child.pid").write_text(f"{child.pid}\n")
        time.sleep(3600)


if __name__ == "__main__":
    sys.exit(main(*[*sys.argv[1:], ""][:2]))
