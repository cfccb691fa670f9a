"""The network of a trial as BtrPlace has it, or the reason why it has no words for it.

BtrPlace reckons itself how long a migration takes over a network: the memory in use, at a ninth of
the bits in bytes, and the pages that are written meanwhile, rounded to a second. How long actions
take is given here. So it is told of just as much memory as it copies in that time, and that nothing
is written; whether that is enough for the memory the VM has, it is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import Migrate
from equipoise.model.problem.network import Network
from equipoise.plan.network import Ways

BITS_PER_BYTE: Final = 9
"""As BtrPlace reckons."""
_MBPS_MIN: Final = 10
"""With less, a single MiB takes more than it rounds away."""


def against_network(trial: Trial) -> Iterator[str]:
    """Why BtrPlace cannot be asked about a trial with this network."""
    network = trial.network
    if network is None:
        return
    trunks = [link for link in network.links if link.to is not None]
    if len(trunks) >= len(network.switches):
        yield "there are several ways, and BtrPlace takes the first it finds, not the shortest"
    speeds: list[int | None] = [one.capacity_mbps for one in network.links]
    speeds += [one.capacity_mbps for one in network.switches]
    if any(mbps is not None and mbps < _MBPS_MIN for mbps in speeds):
        yield f"BtrPlace copies no whole MiB in time over less than {_MBPS_MIN} Mbit/s"


def tell_memory(trial: Trial, network: Network, vms: Mapping[str, int], origin: Any) -> None:
    """Tell BtrPlace of so much memory that each migration takes as long as its step says."""
    ways, known = Ways(network), origin["attributes"]["vms"]
    for attributes in known.values():
        attributes["hotDirtySize"] = 0.0
    for step in trial.steps:
        if isinstance(step.action, Migrate):
            way = ways.between(step.action.source, step.action.target)
            if way is not None:
                seconds = step.duration_ms // 1000
                memory_mib = round(seconds * way.mbps / BITS_PER_BYTE)
                known[str(vms[step.action.vm])]["memUsed"] = memory_mib
