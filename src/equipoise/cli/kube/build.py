"""``equipoise kube build-scheduler``: a kube-scheduler whose clock can be virtual."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from equipoise.adapters.kubernetes.clock.build import build_scheduler
from equipoise.cli.output import EXIT_OK, console, print_document, progress_console
from equipoise.documents.kubernetes import KubernetesBuildDocument


def run(version: str, output: Path | None, *, as_json: bool) -> int:
    """Build the program, or find it in the cache."""
    began_s = perf_counter()
    path = build_scheduler(version, output, progress=_print_line)
    if as_json:
        wall_s = round(perf_counter() - began_s, 3)
        print_document(KubernetesBuildDocument(version=version, path=str(path), wall_s=wall_s))
    else:
        console().print(str(path), soft_wrap=True, markup=False)
    return EXIT_OK


def _print_line(line: str) -> None:
    progress_console().print(line, soft_wrap=True, markup=False)
