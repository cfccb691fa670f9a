"""The process that lets ansible-runner run: one run, told line by line as it is heard.

Enter by ``python -m equipoise.hosts.ansible.talk`` with the order as JSON in the first line of
standard input. Each line of standard output is a JSON document: what was heard, and at last the
end. When standard input ends, whoever ordered the run has gone, and the run is ended too. Never
decides what an event means.
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

from equipoise.hosts.ansible.sweep import sweep

_TOLD: Final = frozenset(
    (
        "runner_on_start",
        "runner_on_ok",
        "runner_on_skipped",
        "runner_on_failed",
        "runner_on_unreachable",
        "runner_item_on_failed",
    )
)
_WITH_RESULT: Final = frozenset(
    ("runner_on_failed", "runner_on_unreachable", "runner_item_on_failed")
)
_TAIL: Final = 2000
"""How much of the last output is told, in characters: only what could not be an event is there."""


def main() -> None:
    """Run what is ordered."""
    order = json.loads(sys.stdin.readline())
    folder = Path(order["folder"])
    gone = Event()
    Thread(target=_watch, args=(sys.stdin, gone), daemon=True).start()
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # a library that prints must not spoil the answer
        run = ansible_runner.run(
            private_data_dir=str(folder),
            playbook="batch.yaml",
            inventory=str(folder / "inventory" / "hosts.yaml"),
            envvars=order["environment"],
            timeout=order["timeout_s"],
            event_handler=lambda event: _tell(event, out),
            cancel_callback=gone.is_set,
            suppress_env_files=True,
            quiet=True,
        )
        if run.status in ("canceled", "timeout"):
            sweep(folder)
        end = {"status": run.status, "rc": run.rc, "stats": run.stats, "tail": _tail(run)}
    if not _write({"end": end}, out):
        shutil.rmtree(folder, ignore_errors=True)  # nobody else is left to do it
    os._exit(0)  # without waiting for the thread that still reads


def _watch(source: TextIO, gone: Event) -> None:
    source.read()
    gone.set()


def _tell(event: dict[str, Any], out: TextIO) -> bool:
    kind, data = event.get("event", ""), event.get("event_data") or {}
    if kind in _TOLD:
        result = data.get("res") or {}
        heard = {
            "kind": kind,
            "host": data.get("host", ""),
            "task": data.get("task", ""),
            "changed": bool(result.get("changed")),
            "ignored": bool(data.get("ignore_errors")),
            "result": result if kind in _WITH_RESULT else {},
        }
        _write({"event": heard}, out)
    return True  # else the runner would not store it, and have no statistics in the end


def _tail(run: Any) -> str:
    with run.stdout as said:
        text: str = said.read()
    return text[-_TAIL:]


def _write(document: dict[str, Any], out: TextIO) -> bool:
    """Tell it, and say whether somebody still listens."""
    try:
        print(json.dumps(document), file=out, flush=True)
    except BrokenPipeError:
        return False
    return True


if __name__ == "__main__":
    main()
