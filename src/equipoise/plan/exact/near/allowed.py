"""Where the plainest rules allow a VM to be, as far as that can be told without the solver."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from equipoise.model.quantity import HostId, VmId
from equipoise.plan.exact.task import RuleClaim, Task


class Allowed:
    """What the plainest rules say about where a VM may be; the others are the solver's business."""

    def __init__(self, task: Task) -> None:
        self._snapshot = task.snapshot
        self._rules: dict[VmId, list[RuleClaim]] = {}
        for claim in task.hard:
            if isinstance(claim, RuleClaim) and claim.demand.library_name in _PLAIN:
                for vm in claim.named_vms:
                    self._rules.setdefault(vm, []).append(claim)

    def hosts(self, vm: VmId) -> Collection[HostId] | None:
        """The hosts that are left by the rules about a VM; nothing if there are none."""
        left: frozenset[HostId] | None = None
        for claim in self._rules.get(vm, ()):
            some = frozenset(self._by(claim, vm))
            left = some if left is None else left & some
        return left

    def _by(self, claim: RuleClaim, vm: VmId) -> Iterable[HostId]:
        arguments = claim.demand.arguments
        if "parts" in arguments:
            return self._among(arguments["parts"], arguments["vs"] - {vm})
        named: frozenset[HostId] = arguments["ns"]
        inside = claim.demand.name in ("Fence", "MustRunOn")
        return named if inside else self._snapshot.hosts.keys() - named

    def _among(
        self, parts: Collection[frozenset[HostId]], others: Collection[VmId]
    ) -> Iterator[HostId]:
        """The groups in which the others are already, or any."""
        there = {self._snapshot.placement.get(one) for one in others} - {None}
        some = [part for part in parts if there & part] or parts
        for part in some:
            yield from part


_PLAIN = frozenset({"Fence", "Ban", "MustRunOn", "MustNotRunOn", "Among"})
