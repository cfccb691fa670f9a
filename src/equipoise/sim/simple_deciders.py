"""Two simple deciders for simulated runs.

``restart`` starts VMs that are ready. ``shuffle`` moves random VMs and switches random hosts, to
test the other parts. Both pass their actions through the gate before they propose.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heapreplace
from typing import Final, TypeVar

from equipoise.capacity.ledger import CONFIGURED_MEMORY, CommittedCapacity, vm_claim
from equipoise.model.action import Action, Boot, Migrate, PowerOff, PowerOn
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState
from equipoise.model.plan import Intent, Proposal, Purpose
from equipoise.model.quantity import HostId, StepId
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.plan.order import GateFilter
from equipoise.sim.random_streams import RandomStream

T = TypeVar("T", bound=str)

ACTIONS_MAX: Final = 20
"""The maximum number of actions that a decider of this module proposes in one pass."""


class RestartDecider:
    """Starts every ready VM, on the host with the most free memory; by priority, then in order."""

    def __init__(self, scenario: Scenario) -> None:
        self._estimates = scenario.estimates

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Propose to start ready VMs."""
        ready = [vm for vm in snapshot.vms.values() if vm.state is VmState.READY and not vm.agent]
        ready.sort(key=lambda vm: vm.restart_priority.rank)  # stable: the order of the file stays
        emptiest = _EmptiestHosts(snapshot)
        boots: list[Action] = [
            Boot(vm=vm.id, target=target)
            for vm in ready
            if (target := emptiest.take(vm)) is not None
        ]
        intents: tuple[Intent, ...] = ()
        # The gate may never accept the first VMs. The decider then tries the next ones.
        for first in range(0, len(boots), ACTIONS_MAX):
            batch = boots[first : first + ACTIONS_MAX]
            intents = _accepted_intents(snapshot, batch, self._estimates, "the VM is ready")
            if intents:
                break
        reason = f"{len(intents)} of {len(ready)} ready VMs can start"
        return Proposal(decider="restart", purpose=Purpose.RESTART, intents=intents, reason=reason)


class ShuffleDecider:
    """Proposes random migrations and power actions, to test the gate and the executor."""

    def __init__(self, scenario: Scenario) -> None:
        self._estimates = scenario.estimates
        self._rng = RandomStream(scenario.seed, "shuffle")

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Propose random migrations, and to wake or switch off a random host."""
        actions = list(self._random_actions(snapshot))
        intents = _accepted_intents(snapshot, actions, self._estimates, "random action")
        return Proposal(
            decider="shuffle", purpose=Purpose.BALANCE, intents=intents, reason="random actions"
        )

    def _random_actions(self, snapshot: Snapshot) -> Iterator[Action]:
        hosts = snapshot.hosts.values()
        in_standby = [host.id for host in hosts if host.state is HostState.STANDBY]
        hosts_on = [host.id for host in hosts if host.state is HostState.ON]
        if in_standby:
            yield PowerOn(host=self._pick(in_standby))
        empty = [host for host in hosts_on if not snapshot.residents[host]]
        if len(empty) > 1:
            yield PowerOff(host=self._pick(empty))
        running = {vm.id: vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING}
        for _ in range(self._rng.randrange(ACTIONS_MAX) if running and hosts_on else 0):
            vm = running.pop(self._pick(list(running)), None) if running else None
            target = self._pick(hosts_on)
            if vm is not None and vm.host is not None and vm.host != target and not vm.agent:
                yield Migrate(vm=vm.id, source=vm.host, target=target)

    def _pick(self, names: list[T]) -> T:
        return names[self._rng.randrange(len(names))]


class _EmptiestHosts:
    """The hosts by free memory, less the VMs that this pass has assigned to them."""

    def __init__(self, snapshot: Snapshot) -> None:
        hosts = [host for host in snapshot.hosts.values() if host.state is HostState.ON]
        self._capacity = CommittedCapacity.of(snapshot)
        # Among equal hosts the first one is taken, so its position is part of the key.
        self._queue = [self._entry(position, host.id) for position, host in enumerate(hosts)]
        heapify(self._queue)

    def _entry(self, position: int, host: HostId) -> tuple[int, int, HostId]:
        return -self._capacity.free(host, CONFIGURED_MEMORY.label), position, host

    def take(self, vm: Vm) -> HostId | None:
        """Assign a VM to the host with the most free memory and return that host."""
        if not self._queue:
            return None
        _, position, host = self._queue[0]
        self._capacity.commit(vm_claim(vm), host)
        heapreplace(self._queue, self._entry(position, host))
        return host


def _accepted_intents(
    snapshot: Snapshot, actions: list[Action], estimates: Estimates, reason: str
) -> tuple[Intent, ...]:
    """Return the actions that the gate accepts together: all of them, or a subset."""
    intents = [
        Intent(
            id=StepId(str(number)),
            action=action,
            duration_ms=estimates.duration_ms(action, snapshot),
            reason=reason,
        )
        for number, action in enumerate(actions, start=1)
    ]
    return GateFilter(snapshot).of(intents)
