"""The capacity ledger: what hosts have and what is committed on them; fit, commit, release.

A *claim* is what one VM holds on each host it occupies. ``RESOURCES`` and ``vm_claim`` define it,
``host_limits`` defines what a host can commit, and ``holding`` on which hosts the claim counts.
``CommittedCapacity`` is the plain ledger on top of them, for gate, repair, placement and upgrade;
``capacity.arrays`` is the same ledger for kernels. ``CapacityLedger`` follows a draft by events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Final, NamedTuple

from equipoise.model.action import Allocate
from equipoise.model.event import Event
from equipoise.model.host import Host
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft, TouchedEntities
from equipoise.model.state.snapshot import RunningAction, Snapshot
from equipoise.model.vm import Vm, VmState

Claim = Mapping[str, int]
"""Positive amounts by resource: what a VM holds, or what a host can commit."""


class LedgerResource(NamedTuple):
    """A resource that every host has and every VM may claim."""

    label: str
    """The key of the resource in claims, as errors show it.

    It contains a space, so that it differs from the name of every named resource.
    """
    of_vm: Callable[[Vm], int]
    of_host: Callable[[Host], int]


CPU: Final = LedgerResource(
    "MHz of CPU", attrgetter("cpu.reservation_mhz"), attrgetter("usable_cpu_mhz")
)
MEMORY: Final = LedgerResource(
    "MiB of memory", attrgetter("memory.reservation_mib"), attrgetter("usable_memory_mib")
)
CONFIGURED_MEMORY: Final = LedgerResource(
    "MiB of configured memory", attrgetter("memory_mib"), attrgetter("configured_memory_max_mib")
)
VCPUS: Final = LedgerResource(
    "configured vCPUs",
    attrgetter("vcpus"),
    lambda host: NO_LIMIT if host.vcpus_max is None else host.vcpus_max,
)
NO_LIMIT: Final = 10**15
"""The limit of a resource that is not limited; no sum of claims reaches it."""
SIZES: Final = frozenset({CONFIGURED_MEMORY.label, VCPUS.label})
"""The resources that VMs claim by their size, not by a reservation."""
# A further hard limit of hosts is one more row here: both ledgers and all their users follow.
RESOURCES: Final = (CPU, MEMORY, CONFIGURED_MEMORY, VCPUS)


def vm_claim(vm: Vm) -> dict[str, int]:
    """Return what a VM holds on each host it occupies: its size, reservations, named resources."""
    # Amounts of zero are left out, so that a claim never touches a resource that it does not use.
    claim = {resource.label: amount for resource in RESOURCES if (amount := resource.of_vm(vm)) > 0}
    if vm.consumption:
        claim |= {str(name): amount for name, amount in vm.consumption.items() if amount > 0}
    return claim


def host_limits(host: Host) -> dict[str, int]:
    """Return what can be committed on a host: its capacity without its reserve, overcommitted."""
    return {resource.label: resource.of_host(host) for resource in RESOURCES} | {
        str(name): amount for name, amount in host.capacity.items()
    }


def claimed_resources(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the resources that limit VMs: those of every host, then the named ones in use."""
    consumptions = (vm.consumption for vm in snapshot.vms.values() if vm.consumption)
    named = {str(name) for consumed in consumptions for name in consumed if consumed[name] > 0}
    actions = (running.step.action for running in snapshot.in_flight.values())
    # An amount that a VM is about to get counts already.
    named.update(str(action.resource) for action in actions if isinstance(action, Allocate))
    return (*(resource.label for resource in _limited(snapshot)), *sorted(named))


def _limited(snapshot: Snapshot) -> Iterator[LedgerResource]:
    """Yield the resources that limit some host; kernels spend time on every resource."""
    for resource in RESOURCES:
        if resource is not VCPUS or any(
            host.cpu_overcommit is not None for host in snapshot.hosts.values()
        ):
            yield resource


class Holding(NamedTuple):
    """The claim of a VM and the hosts on which it counts."""

    claim: Claim
    hosts: tuple[HostId, ...]


NO_HOLDING: Final = Holding({}, ())


def holding(vm: Vm, running: Iterable[RunningAction]) -> Holding:
    """Return what a VM holds and where, while the given actions on it run.

    A VM holds capacity where it runs and, from the start of an action, on the target: a migrating
    VM is charged on both hosts.
    """
    hosts: tuple[HostId, ...] = ()
    # A sleeping agent keeps its claim: its host must be able to wake it (DRS 3.3.3).
    if vm.host is not None and (vm.state is VmState.RUNNING or vm.agent):
        hosts = (vm.host,)
    growth: dict[str, int] = {}
    for step in (action.step for action in running):
        target = step.footprint.target
        # A resume on the own host must not be charged twice.
        if target is not None and target not in hosts:
            hosts = (*hosts, target)
        if isinstance(step.action, Allocate):  # while the amount changes, the larger one counts
            amount = max(step.action.amount, vm.consumption.get(step.action.resource, 0))
            growth[step.action.resource] = amount
    # A VM without a host holds nothing, whatever it would claim.
    return Holding(vm_claim(vm) | growth, hosts) if hosts else NO_HOLDING


def actions_by_vm(snapshot: Snapshot) -> dict[VmId, list[RunningAction]]:
    """Return the running actions on each VM that has any."""
    running: dict[VmId, list[RunningAction]] = {}
    for action in snapshot.in_flight.values():
        if action.step.footprint.vm is not None:
            running.setdefault(action.step.footprint.vm, []).append(action)
    return running


def holdings(snapshot: Snapshot, vms: Iterable[Vm]) -> Iterator[tuple[VmId, Holding]]:
    """Yield the holding of each of the VMs that hold capacity somewhere."""
    running = actions_by_vm(snapshot)
    for vm in vms:
        held = holding(vm, running.get(vm.id, ()))
        if held.hosts:
            yield vm.id, held


class Shortage(NamedTuple):
    """A resource of which a host has too little free."""

    resource: str
    need: int
    free: int
    """Negative if the host is overcommitted."""
    limit: int


class CommittedCapacity:
    """The limits of hosts and what is committed on each: the plain ledger."""

    def __init__(self, limits: Mapping[HostId, Claim]) -> None:
        self.limits = dict(limits)
        self._committed: dict[HostId, dict[str, int]] = defaultdict(dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> CommittedCapacity:
        """Return the ledger of a snapshot, with its running actions."""
        capacity = cls({host.id: host_limits(host) for host in snapshot.hosts.values()})
        capacity.commit_snapshot(snapshot)
        return capacity

    def copy(self) -> CommittedCapacity:
        """Return an independent copy."""
        twin = CommittedCapacity(self.limits)
        twin._committed.update((host, dict(held)) for host, held in self._committed.items())
        return twin

    def excerpt(self, hosts: Iterable[HostId]) -> CommittedCapacity:
        """Return an independent copy of a few hosts."""
        twin = CommittedCapacity({})
        for host in hosts:
            twin.limits[host] = self.limits[host]
            twin._committed[host] = self._committed[host].copy()
        return twin

    def add(self, other: CommittedCapacity) -> None:
        """Add the hosts of another ledger with what is committed on them."""
        self.limits |= other.limits
        self._committed.update((host, dict(other._committed[host])) for host in other.limits)

    def fits(self, claim: Claim, host: HostId) -> bool:
        """Return whether a claim fits on a host beside all that is committed there.

        Only what the claim adds counts: an overcommitted host accepts a VM that claims nothing of
        the resource that is short.
        """
        limits, committed = self.limits[host], self._committed[host]
        for resource, need in claim.items():
            if committed.get(resource, 0) + need > limits.get(resource, 0):
                return False
        return True

    def shortages(self, claim: Claim, host: HostId) -> list[Shortage]:
        """Return the resources that a host lacks for a claim; none if the claim fits."""
        return [
            Shortage(resource, need, free, self.limits[host].get(resource, 0))
            for resource, need in claim.items()
            if need > (free := self.free(host, resource))
        ]

    def commit(self, claim: Claim, host: HostId) -> None:
        """Take capacity on a host, also if there is too little."""
        committed = self._committed[host]
        for resource, amount in claim.items():
            committed[resource] = committed.get(resource, 0) + amount

    def release(self, claim: Claim, host: HostId) -> None:
        """Give back what a claim holds on a host."""
        committed = self._committed[host]
        for resource, amount in claim.items():
            committed[resource] -= amount

    def commit_snapshot(self, snapshot: Snapshot) -> None:
        """Take capacity for all VMs of a snapshot, with their running actions."""
        running = actions_by_vm(snapshot)
        # Almost all VMs run and have no action. Their amounts are added up host by host: a claim
        # and a holding for each of them takes five times as long.
        settled: dict[HostId, list[Vm]] = defaultdict(list)
        for vm in snapshot.vms.values():
            if vm.state is VmState.RUNNING and not vm.consumption and vm.id not in running:
                assert vm.host is not None, "a running VM has a host"
                settled[vm.host].append(vm)
            else:
                self.commit_holding(holding(vm, running.get(vm.id, ())))
        for host, vms in settled.items():
            totals = ((resource.label, sum(map(resource.of_vm, vms))) for resource in RESOURCES)
            self.commit({label: total for label, total in totals if total > 0}, host)

    def commit_holding(self, held: Holding) -> None:
        """Take capacity on every host of a holding."""
        for host in held.hosts:
            self.commit(held.claim, host)

    def release_holding(self, held: Holding) -> None:
        """Give back capacity on every host of a holding."""
        for host in held.hosts:
            self.release(held.claim, host)

    def committed(self, host: HostId, resource: str) -> int:
        """Return how much of a resource is committed on a host."""
        return self._committed[host].get(resource, 0)

    def free(self, host: HostId, resource: str) -> int:
        """Return how much of a resource is left on a host; negative if it is overcommitted."""
        return self.limits[host].get(resource, 0) - self._committed[host].get(resource, 0)

    def is_overcommitted(self, host: HostId) -> bool:
        """Return whether more is committed on a host than it has."""
        limits = self.limits[host]
        return any(
            amount > limits.get(resource, 0) for resource, amount in self._committed[host].items()
        )

    def excesses(self, host: HostId) -> dict[str, int]:
        """Return by how much more of each resource is committed on a host than it has."""
        limits = self.limits[host]
        return {
            resource: excess
            for resource, amount in self._committed[host].items()
            if (excess := amount - limits.get(resource, 0)) > 0
        }


class CapacityLedger:
    """A draft with the committed capacity of each host, updated event by event.

    An event changes the draft (``transition`` defines how), then the ledger replaces the holdings
    of the touched VMs and the limits of the touched hosts.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.draft = Draft(snapshot)
        self.capacity = CommittedCapacity(
            {host.id: host_limits(host) for host in snapshot.hosts.values()}
        )
        self._held = dict(holdings(snapshot, snapshot.vms.values()))
        for held in self._held.values():
            self.capacity.commit_holding(held)

    @classmethod
    def like(cls, base: CapacityLedger, snapshot: Snapshot) -> CapacityLedger:
        """Return a ledger of ``snapshot`` with the sums of ``base``, a ledger of the same state."""
        ledger = cls.__new__(cls)
        ledger.draft = Draft(snapshot)
        ledger.capacity = base.capacity.copy()
        ledger._held = dict(base._held)
        return ledger

    def apply(self, event: Event) -> TouchedEntities:
        """Apply an event to the draft, and return the entities it touched."""
        transition.apply_to_draft(self.draft, event)
        touched = self.draft.pop_touched()
        for host_id in touched.hosts:
            host = self.draft.hosts.get(host_id)
            if host is not None:
                # The limits of a removed host stay: VMs below release what they held there.
                self.capacity.limits[host_id] = host_limits(host)
        for vm in touched.vms:
            self._update_vm(vm)
        return touched

    def occupied(self, vm: VmId) -> tuple[HostId, ...]:
        """Return the hosts on which a VM holds capacity now."""
        return self._held.get(vm, NO_HOLDING).hosts

    def _update_vm(self, name: VmId) -> None:
        """Replace the holding of a VM by its holding in the current draft."""
        self.capacity.release_holding(self._held.pop(name, NO_HOLDING))
        vm = self.draft.vms.get(name)
        held = NO_HOLDING if vm is None else holding(vm, self.draft.actions_on_vm(name))
        if held.hosts:
            self._held[name] = held
            self.capacity.commit_holding(held)
