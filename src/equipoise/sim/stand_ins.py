"""Stand-ins: two simple deciders, for runs that need somebody to act.

``restart`` starts what is ready. ``shuffle`` moves VMs and switches hosts without any sense, to see
whether everybody else stands it. Both ask the gate before they propose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from equipoise.model.action import Action, Boot, Migrate, PowerOff, PowerOn
from equipoise.model.estimate import Estimates
from equipoise.model.host import HostState
from equipoise.model.plan import Intent, Proposal, Purpose
from equipoise.model.quantity import HostId, StepId
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import Vm, VmState
from equipoise.plan.passing import Passing
from equipoise.sim.chance import Dice

T = TypeVar("T", bound=str)

AT_ONCE: Final = 20
"""How many actions one of them wants at most in one pass."""


class Restart:
    """Wants every VM that is ready to run, on the host with the most room."""

    def __init__(self, scenario: Scenario) -> None:
        self._estimates = scenario.estimates

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Start what is ready."""
        ready = [vm for vm in snapshot.vms.values() if vm.state is VmState.READY and not vm.agent]
        room = _Room(snapshot)
        wanted: list[Action] = [
            Boot(vm=vm.id, target=target)
            for vm in ready
            if (target := room.roomiest(vm)) is not None
        ]
        intents: tuple[Intent, ...] = ()
        for first in range(0, len(wanted), AT_ONCE):  # some may never start: try the next ones then
            some = wanted[first : first + AT_ONCE]
            intents = _passing(snapshot, some, self._estimates, "it is ready and meant to run")
            if intents:
                break
        reason = f"{len(intents)} of {len(ready)} ready VMs can be started"
        return Proposal(decider="restart", purpose=Purpose.REPAIR, intents=intents, reason=reason)


class Shuffle:
    """Wants anything."""

    def __init__(self, scenario: Scenario) -> None:
        self._estimates = scenario.estimates
        self._dice = Dice(scenario.seed, "shuffle")

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Move some VMs, wake or put away a host."""
        intents = _passing(
            snapshot, list(self._whims(snapshot)), self._estimates, "for no reason at all"
        )
        return Proposal(
            decider="shuffle", purpose=Purpose.BALANCE, intents=intents, reason="restlessness"
        )

    def _whims(self, snapshot: Snapshot) -> Iterator[Action]:
        hosts = snapshot.hosts.values()
        asleep = [host.id for host in hosts if host.state is HostState.STANDBY]
        awake = [host.id for host in hosts if host.state is HostState.ON]
        if asleep:
            yield PowerOn(host=self._one_of(asleep))
        empty = [host for host in awake if not snapshot.residents[host]]
        if len(empty) > 1:
            yield PowerOff(host=self._one_of(empty))
        running = {vm.id: vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING}
        for _ in range(self._dice.choose(AT_ONCE) if running and awake else 0):
            vm = running.pop(self._one_of(list(running)), None) if running else None
            target = self._one_of(awake)
            if vm is not None and vm.host is not None and vm.host != target and not vm.agent:
                yield Migrate(vm=vm.id, source=vm.host, target=target)

    def _one_of(self, names: list[T]) -> T:
        return names[self._dice.choose(len(names))]


class _Room:
    """How much memory hosts have left, with what was promised since."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._free = {
            host: one.usable_memory_mib
            - sum(snapshot.vms[vm].memory_mib for vm in snapshot.residents[host])
            for host, one in snapshot.hosts.items()
            if one.state is HostState.ON
        }

    def roomiest(self, vm: Vm) -> HostId | None:
        """The host with the most room, which the VM takes."""
        if not self._free:
            return None
        found = max(self._free, key=lambda host: self._free[host])
        self._free[found] -= vm.memory_mib
        return found


def _passing(
    snapshot: Snapshot, actions: list[Action], estimates: Estimates, reason: str
) -> tuple[Intent, ...]:
    """The actions that the gate lets pass together: all or, if need be, as many as it takes."""
    intents = [
        Intent(
            id=StepId(str(number)),
            action=action,
            duration_ms=estimates.duration_ms(action, snapshot),
            reason=reason,
        )
        for number, action in enumerate(actions, start=1)
    ]
    return Passing(snapshot).of(intents)
