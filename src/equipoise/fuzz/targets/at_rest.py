"""What targets have in common that are given a cluster at rest, and say who should move where."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from equipoise.fuzz.generate.options import Options
from equipoise.fuzz.schedulers.scheduler import TAKES_NO_PLAN, Crash, Unsupported, without_network
from equipoise.fuzz.targets.asked import Asked
from equipoise.fuzz.targets.moves import is_overfull
from equipoise.fuzz.targets.worker import Crashed
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.quantity import ResourceName

MEMORY: Final = ResourceName("memory_gib")
MIB_PER_GIB: Final = 1024
ANYHOW: Final = "Running"
"""Whoever is asked for this is asked for all that machines may have against a plan."""
ELSEWHERE: Final = f"what has nothing to do with the constraint is asked for with {ANYHOW}"
OVERFULL: Final = "a host has not enough for those who run there, before anything is done"
AT_REST: Final = Options(
    hosts=(1, 5),
    vms=(1, 7),
    agents=0,
    paired=0,
    replaceable=0,
    actions=(0, 0),
    allocated=0,
    switched=0,
)
"""Clusters of which every target has words for the machines, and no plan."""


class Mover(Asked):
    """Says what it would do with a cluster, action by action."""

    def _told(
        self, question: Mapping[str, Any], *, seconds_max: float, is_apart: bool
    ) -> Sequence[Mapping[str, Any]]:
        """What it would do. That it breaks is not told where the constraint is asked apart."""
        (said,) = self._ask(lambda worker: worker.act([question], seconds_max=seconds_max))
        if isinstance(said, Crashed):
            raise Unsupported(ELSEWHERE) if is_apart else Crash(said.what)
        return said


def check(
    trial: Trial, *, offered: Collection[ResourceName], taken: Collection[ResourceName]
) -> None:
    """``Unsupported`` if there is a plan, a network, or a cluster that nobody vouches for.

    All hosts offer something of some resources, and all VMs take something of some.
    """
    without_network(trial)
    if trial.steps:
        raise Unsupported(TAKES_NO_PLAN)
    if trial.is_broken_at_first and trial.demand.name != "Maintenance":
        raise Unsupported("the constraint is broken, and at the most it tries to mend that")
    for host in trial.initial.hosts.values():
        if any(host.capacity.get(name, 0) < 1 for name in offered):
            raise Unsupported(f"there is no host without {', '.join(offered)}")
    for vm in trial.initial.vms.values():
        if any(vm.consumption.get(name, 0) < 1 for name in taken):
            raise Unsupported(f"there is no VM without {', '.join(taken)}")
    if is_overfull(trial.initial):
        raise Unsupported(OVERFULL)
