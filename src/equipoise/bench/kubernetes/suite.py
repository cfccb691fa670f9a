"""The suite of the Kubernetes part."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.bench.kubernetes.api import api_rows
from equipoise.bench.kubernetes.runs import run_rows
from equipoise.bench.measure import BenchmarkRow


def rows() -> Iterator[BenchmarkRow]:
    """Yield the API alone, then runs under kube-scheduler."""
    yield from api_rows()
    yield from run_rows()
