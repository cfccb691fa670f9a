"""A log for each host: each step of its playbooks with its result, and each end of a playbook."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import gmtime, strftime
from typing import Final

from equipoise.adapters.ansible.batch import message_of, one_line, spellings
from equipoise.adapters.ansible.job import (
    HostConnection,
    JobResult,
    PlaybookJob,
    RunnerEvent,
    RunnerEventKind,
)

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")
_FAILED: Final = (
    RunnerEventKind.FAILED,
    RunnerEventKind.UNREACHABLE,
    RunnerEventKind.ITEM_FAILED,
)


class HostLogs:
    """Appends to ``HOST.log`` in a folder. Secrets of the access file are masked."""

    def __init__(self, folder: Path, connections: Mapping[str, HostConnection]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._hidden = {
            host: spellings(connection.secrets.values()) for host, connection in connections.items()
        }

    def step(self, job: PlaybookJob, event: RunnerEvent) -> None:
        """Log an event of a step."""
        if event.kind is RunnerEventKind.STARTED:
            how = "starts"
        elif event.kind in _FAILED:
            how = f"{event.kind.value.rpartition('_')[2]}: {message_of(event.result)}"
        else:
            how = "changed" if event.is_changed else event.kind.value.rpartition("_")[2]
        self._write(job, f'"{event.task}" {how}')

    def results(self, results: Iterable[JobResult]) -> None:
        """Log the end of each playbook."""
        for result in results:
            reason = f": {result.reason}" if result.reason else ""
            self._write(result.job, f"{result.outcome}{reason}")

    def _write(self, job: PlaybookJob, text: str) -> None:
        line = one_line(text, self._hidden.get(job.host, ()))
        # The present time and not that of the journal: it is compared with other logs.
        now = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())
        name = f"{_UNSAFE.sub('_', job.host)}.log"
        with (self._folder / name).open("a", encoding="utf-8") as log:
            log.write(f"{now} {job.action} ({job.playbook.name}) {line}\n")
