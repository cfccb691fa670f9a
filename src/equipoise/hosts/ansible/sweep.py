"""Ends what a run has left behind. Never touches a process that does not carry the run's mark.

When Ansible is killed, its workers live on in sessions of their own and go on changing hosts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "EQUIPOISE_ANSIBLE_RUN"
"""By this variable every process of a run is known, wherever it has gone; it names its folder."""


def sweep(folder: Path) -> int:
    """End every process of the run in this folder, and say how many there were."""
    ended = 0
    while found := list(_marked(folder)):  # again, for one may have had a child meanwhile
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                ended += 1
    return ended


def _marked(folder: Path) -> Iterator[int]:
    mark = f"{MARK}={folder}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or it is somebody else's
            if mark in (place / "environ").read_bytes().split(b"\0") and _is_alive(place):
                yield int(place.name)


def _is_alive(place: Path) -> bool:
    # What has been killed stays for a moment, until its parent has noticed.
    state = (place / "stat").read_bytes().rsplit(b")", 1)[1].split()[0]
    return state not in (b"Z", b"X")
