"""Which step must wait for which: the order that a verified plan relies on.

A plan is verified with planned times, but real actions take longer or shorter. What must survive is
the order between steps that have to do with each other: on one VM, around the switching of a host,
and where one step takes the room that another has freed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from equipoise.model.action import Allocate, Kill
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId


def prerequisites(
    steps: Iterable[Step], placement: Mapping[VmId, HostId]
) -> dict[StepId, tuple[StepId, ...]]:
    """For each step, the steps that must have succeeded before: as written, and as implied.

    ``placement`` says where VMs are when the plan begins.
    """
    steps = sorted(steps, key=lambda step: (step.start_ms, step.end_ms, step.id))
    related = _Related(steps, placement)
    found: dict[StepId, tuple[StepId, ...]] = {}
    for step in steps:
        earlier = (other.id for other in related.to(step) if other.end_ms <= step.start_ms)
        found[step.id] = tuple(dict.fromkeys((*step.after, *earlier)))
    return found


class _Related:
    """Finds the steps that have to do with a step, without looking at all pairs."""

    def __init__(self, steps: Sequence[Step], placement: Mapping[VmId, HostId]) -> None:
        self._homes: dict[VmId, set[HostId]] = {vm: {host} for vm, host in placement.items()}
        for step in steps:
            seen = step.footprint
            if seen.vm is not None and seen.target is not None:
                self._homes.setdefault(seen.vm, set()).add(seen.target)
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
        """The hosts that matter to a step; if it names none, those its VM ever lies on."""
        seen = step.footprint
        if seen.hosts or seen.vm is None:
            return seen.hosts
        return sorted(self._homes.get(seen.vm, ()))

    def _freed(self, step: Step) -> Iterable[HostId]:
        """The hosts on which a step may leave room behind."""
        source = step.footprint.source
        if source is not None:
            return (source,)
        return self._hosts(step) if isinstance(step.action, Kill | Allocate) else ()

    def _taken(self, step: Step) -> Iterable[HostId]:
        """The hosts of which a step may take room."""
        target = step.footprint.target
        if target is not None:
            return (target,)
        return self._hosts(step) if isinstance(step.action, Allocate) else ()

    def to(self, step: Step) -> Iterable[Step]:
        """Give the steps that one may have to wait for (among them itself, which ends later)."""
        seen = step.footprint
        if seen.vm is not None:
            yield from self._on_vm[seen.vm]
        for host in self._taken(step):
            yield from self._leaving.get(host, ())
        if seen.switched is not None:
            yield from self._touching[seen.switched]
        for host in self._hosts(step):
            yield from self._switching.get(host, ())
