"""The aftermath: the cluster once hosts sleep, judged by the rules that arrays do not know."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from equipoise.balance.advice import Switch
from equipoise.balance.mending.mend import mend
from equipoise.balance.rules import Rules, read_rules
from equipoise.balance.wishes import after_moves
from equipoise.model.estimate import Estimates
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.spec.rules import broken_rules


class Aftermath:
    """Asks the specification about constraints such as a quorum, and the mending about failover
    reserves: whether all that may be lost could start again."""

    def __init__(
        self, snapshot: Snapshot, estimates: Estimates, switches: Sequence[Switch] = ()
    ) -> None:
        self._snapshot, self._estimates = snapshot, estimates
        self._switched = {one.host: HostState(one.wish) for one in switches}
        """What balancing does with hosts that are to be switched."""
        self._rules: Rules = read_rules(snapshot)
        self._ids = (*self._rules.others, *(rule for rule, _ in self._rules.failures))
        self._broken = self._breaks(snapshot).keys()
        self._wrong: int | None = None

    def why_not(self, moves: Mapping[VmId, HostId], asleep: Collection[HostId]) -> str:
        """Which rule would be broken, if VMs moved and hosts slept; nothing if none would."""
        if not self._ids or not asleep:
            return ""
        after = self._after(moves, asleep)
        for rule, why in self._breaks(after).items():
            if rule not in self._broken:
                return f"rule {rule} would be broken: {why}"
        if self._rules.failures:
            if self._wrong is None:
                self._wrong = self._count_wrong(self._snapshot)
            if self._count_wrong(after) > self._wrong:
                return "what may be lost with other hosts could not start again without it"
        return ""

    def _breaks(self, snapshot: Snapshot) -> dict[RuleId, str]:
        return dict(broken_rules(snapshot, self._ids)) if self._ids else {}

    def _count_wrong(self, snapshot: Snapshot) -> int:
        found = mend(snapshot, self._rules, self._estimates)
        return len(found.faults) + len(found.moves)

    def _after(self, moves: Mapping[VmId, HostId], asleep: Collection[HostId]) -> Snapshot:
        """The cluster once all of it is done."""
        states = self._switched | dict.fromkeys(asleep, HostState.STANDBY)
        hosts = {
            one.id: one.but(state=states.get(one.id, one.state))
            for one in self._snapshot.hosts.values()
        }
        return replace(after_moves(self._snapshot, moves.items()), hosts=FrozenMap(hosts))
