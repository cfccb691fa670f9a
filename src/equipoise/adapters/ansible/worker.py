"""The worker process that calls ansible-runner for one run and reports it line by line.

Started by ``python -m equipoise.adapters.ansible.worker`` with the order as JSON in the first line
of standard input. Each line of standard output is a JSON document: an event, and finally the end.
When standard input ends, the parent is gone, and the worker ends the run. It interprets no events.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, TextIO

import ansible_runner

from equipoise.adapters.ansible.job import RunnerEventKind
from equipoise.adapters.ansible.process import kill_leftovers

_REPORTED_EVENTS: Final = frozenset(RunnerEventKind)
_WITH_RESULT: Final = frozenset(
    (RunnerEventKind.FAILED, RunnerEventKind.UNREACHABLE, RunnerEventKind.ITEM_FAILED)
)
_TAIL_CHARACTERS: Final = 2000
"""The length of the reported end of the output, which holds only what is not an event."""


def main() -> None:
    """Execute the order of standard input."""
    order = json.loads(sys.stdin.readline())
    folder = Path(order["folder"])
    parent_gone = Event()
    Thread(target=_watch, args=(sys.stdin, parent_gone), daemon=True).start()
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # output of a library must not mix with the answer
        run = ansible_runner.run(
            private_data_dir=str(folder),
            playbook="batch.yaml",
            inventory=str(folder / "inventory" / "hosts.yaml"),
            envvars=order["environment"],
            timeout=order["timeout_s"],
            event_handler=lambda event: _report(event, out),
            cancel_callback=parent_gone.is_set,
            suppress_env_files=True,
            quiet=True,
        )
        if run.status in ("canceled", "timeout"):
            kill_leftovers(folder)
        end = {"status": run.status, "rc": run.rc, "stats": run.stats, "tail": _tail(run)}
    if not _write({"end": end}, out):
        shutil.rmtree(folder, ignore_errors=True)  # the parent is gone and cannot remove it
    os._exit(0)  # do not wait for the thread that still reads


def _watch(source: TextIO, parent_gone: Event) -> None:
    source.read()
    parent_gone.set()


def _report(event: dict[str, Any], out: TextIO) -> bool:
    kind, data = event.get("event", ""), event.get("event_data") or {}
    if kind in _REPORTED_EVENTS:
        result = data.get("res") or {}
        document = {
            "kind": kind,
            "host": data.get("host", ""),
            "task": data.get("task", ""),
            "changed": bool(result.get("changed")),
            "ignored": bool(data.get("ignore_errors")),
            "result": result if kind in _WITH_RESULT else {},
        }
        _write({"event": document}, out)
    return True  # the runner must store the event, or it has no statistics at the end


def _tail(run: Any) -> str:
    with run.stdout as output:
        text: str = output.read()
    return text[-_TAIL_CHARACTERS:]


def _write(document: dict[str, Any], out: TextIO) -> bool:
    """Write a document and return whether the parent still reads."""
    try:
        print(json.dumps(document), file=out, flush=True)
    except BrokenPipeError:
        return False
    return True


if __name__ == "__main__":
    main()
