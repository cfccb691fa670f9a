"""The order of steps that a verified plan relies on.

A plan is verified with planned times, but real actions take longer or shorter. So the executor
keeps the order of related steps instead: steps on one VM, steps around the switching of a host, and
a step that takes the capacity that another step frees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from equipoise.model.action import Allocate, Kill
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId


def prerequisites(
    steps: Iterable[Step], placement: Mapping[VmId, HostId]
) -> dict[StepId, tuple[StepId, ...]]:
    """Return, for each step, the steps that must succeed before it: the written and implied ones.

    ``placement`` maps each VM to its host when the plan begins.
    """
    steps = sorted(steps, key=lambda step: (step.start_ms, step.end_ms, step.id))
    related = _RelatedSteps(steps, placement)
    waits: dict[StepId, tuple[StepId, ...]] = {}
    for step in steps:
        # Only a step that the plan ends before this one starts is a prerequisite. Related steps
        # that overlap in the plan were judged together, so they may overlap in reality.
        earlier = (other.id for other in related.to(step) if other.end_ms <= step.start_ms)
        waits[step.id] = tuple(dict.fromkeys((*step.after, *earlier)))
    return waits


class _RelatedSteps:
    """An index of the steps by VM and host: it finds related steps without comparing all pairs."""

    def __init__(self, steps: Sequence[Step], placement: Mapping[VmId, HostId]) -> None:
        self._hosts_of_vm: dict[VmId, set[HostId]] = {vm: {host} for vm, host in placement.items()}
        for step in steps:
            seen = step.footprint
            if seen.vm is not None and seen.target is not None:
                self._hosts_of_vm.setdefault(seen.vm, set()).add(seen.target)
        self._on_vm: dict[VmId, list[Step]] = {}
        self._leaving: dict[HostId, list[Step]] = {}
        self._touching: dict[HostId, list[Step]] = {}
        self._switching: dict[HostId, list[Step]] = {}
        for step in steps:
            seen = step.footprint
            if seen.vm is not None:
                self._on_vm.setdefault(seen.vm, []).append(step)
            for host in self._freed(step):
                self._leaving.setdefault(host, []).append(step)
            if seen.switched is not None:
                self._switching.setdefault(seen.switched, []).append(step)
            for host in self._hosts(step):
                self._touching.setdefault(host, []).append(step)

    def _hosts(self, step: Step) -> Iterable[HostId]:
        """Return the hosts that matter to a step; without a named host, all hosts of its VM."""
        seen = step.footprint
        if seen.hosts or seen.vm is None:
            return seen.hosts
        return sorted(self._hosts_of_vm.get(seen.vm, ()))

    def _freed(self, step: Step) -> Iterable[HostId]:
        """Return the hosts on which a step may free capacity."""
        source = step.footprint.source
        if source is not None:
            return (source,)
        return self._hosts(step) if isinstance(step.action, Kill | Allocate) else ()

    def _taken(self, step: Step) -> Iterable[HostId]:
        """Return the hosts on which a step may take capacity."""
        target = step.footprint.target
        if target is not None:
            return (target,)
        return self._hosts(step) if isinstance(step.action, Allocate) else ()

    def to(self, step: Step) -> Iterable[Step]:
        """Yield the steps that a step may have to wait for.

        The step itself is among them; it ends after its own start, so it is never a prerequisite.
        """
        seen = step.footprint
        if seen.vm is not None:
            yield from self._on_vm[seen.vm]
        # Capacity: wait for steps that leave the host.
        for host in self._taken(step):
            yield from self._leaving.get(host, ())
        # Switching: wait for every step that touches the host.
        if seen.switched is not None:
            yield from self._touching[seen.switched]
        for host in self._hosts(step):
            yield from self._switching.get(host, ())
