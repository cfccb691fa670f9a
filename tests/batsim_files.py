"""Small platforms and workloads of Batsim for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from equipoise.adapters.batsim.protocol.codec import Codec
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.setup import BatsimSetup


def write_platform(folder: Path, hosts: int, properties: str = "", cores: int = 1) -> Path:
    """Write a platform without network, whose messages take no time."""
    lines = [
        f'<host id="h{n}" coordinates="0 0 0" core="{cores}" speed="10f, 5f, 1f, 0.5f, 0.25f">'
        f"{properties}</host>"
        for n in range(hosts)
    ]
    path = folder / "platform.xml"
    path.write_text(
        '<platform version="4.1"><zone id="z" routing="Vivaldi">'
        '<host id="master_host" coordinates="0 0 0" speed="1f"/>'
        f"{''.join(lines)}</zone></platform>"
    )
    return path


def write_workload(folder: Path, hosts: int, jobs: Sequence[dict[str, Any]], **more: Any) -> Path:
    """Write jobs; each needs id, subtime, res, profile."""
    path = folder / "jobs.json"
    path.write_text(json.dumps({"nb_res": hosts, "jobs": list(jobs), "profiles": more}))
    return path


def run_in_process(
    setup: BatsimSetup, codec: Codec, answer: Callable[[bytes], bytes], limit: int = 10_000
) -> list[Any]:
    """Run a simulation whose scheduler is a function of frames; return its jobs by end."""
    options = codec.greet(answer, setup.options)
    simulation = setup.read().build(options)
    ended: list[Any] = []
    record = simulation.record

    def keep(job: Any) -> None:
        ended.append(job)
        record(job)

    simulation.record = keep  # type: ignore[method-assign]
    message = simulation.begin()
    while message is not None:
        limit -= 1
        assert limit > 0, "the exchange does not end"
        message = simulation.receive(codec.decode(answer(codec.encode(message))))  # type: ignore[arg-type]
    assert simulation.finished
    simulation.finish()
    return ended


def plain_setup(folder: Path, export: str | None = None, **options: Any) -> BatsimSetup:
    """Return the setup of the files that the functions above write."""
    return BatsimSetup(
        platform=folder / "platform.xml",
        workloads=[folder / "jobs.json"],
        export=export,
        options=ProtocolOptions(**options),
    )
