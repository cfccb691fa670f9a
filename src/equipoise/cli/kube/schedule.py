"""``equipoise kube schedule``: the placement of Equipoise as a scheduler of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.adapters.kubernetes.client.own_scheduler import OwnScheduler, OwnSchedulerOptions
from equipoise.cli.kube.import_cluster import read_address
from equipoise.cli.output import EXIT_OK, printable, progress_console


def run(given: Mapping[str, Any]) -> int:
    """Schedule until the command is interrupted, or the API ends."""
    options = OwnSchedulerOptions(
        policy=given["policy"], name=given["name"], deschedule_s=given["deschedule"]
    )
    scheduler = OwnScheduler(read_address(given), options, _print_line)
    try:
        scheduler.run()
    finally:
        scheduler.close()
    return EXIT_OK


def _print_line(line: str) -> None:
    progress_console().print(printable(line), soft_wrap=True)
