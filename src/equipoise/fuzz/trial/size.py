"""The size of a trial: what shrinking minimises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Self, TypeVar

from equipoise.adapters.targets.trial import Trial
from equipoise.model.action import Allocate
from equipoise.model.host import Host
from equipoise.model.problem.problem import Network
from equipoise.model.vm import Vm

M = TypeVar("M", bound=Host | Vm)
SECOND_MS: Final = 1000


class TrialSize(NamedTuple):
    """The size of a trial, compared field by field: earlier fields count more.

    All fields are counts, so every sequence of smaller trials ends.
    """

    machines: int
    """The number of hosts and VMs."""
    steps: int
    network_parts: int
    """The number of switches and links, plus one for the network itself."""
    members: int
    """The number of members of all sets, lists and groups among the arguments."""
    numbers: int
    """The sum of the absolute values of all numbers in arguments and all amounts."""
    details: int
    """The number of fields that differ from bare machines and steps, of links below the maximum
    capacity and of switches with a limit."""
    odd_times: int
    """The number of times that are not whole seconds."""
    time_ms: int
    """The sum of all starts and ends."""

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """Measure a trial."""
        machines: list[Host | Vm] = [*trial.initial.hosts.values(), *trial.initial.vms.values()]
        values = tuple(_parts(trial.demand.arguments.values()))
        times = [at_ms for step in trial.steps for at_ms in (step.start_ms, step.end_ms)]
        numbers = [abs(value) for value in values if isinstance(value, int)]
        numbers += [amount for machine in machines for amount in _amounts(machine).values()]
        actions = [step.action for step in trial.steps]
        numbers += [action.amount for action in actions if isinstance(action, Allocate)]
        details = [_details(machine) for machine in machines]
        details += [len(step.after) + (step.reason != "") for step in trial.steps]
        network = trial.network or Network()
        details += [switch.capacity_mbps is not None for switch in network.switches]
        details += [link.capacity_mbps < widest_mbps(network) for link in network.links]
        return cls(
            machines=len(machines),
            steps=len(trial.steps),
            network_parts=len(network.switches) + len(network.links) + (trial.network is not None),
            members=len(values) - len(trial.demand.arguments),
            numbers=sum(numbers),
            details=sum(details),
            odd_times=sum(at_ms % SECOND_MS > 0 for at_ms in times),
            time_ms=sum(times),
        )


def widest_mbps(network: Network) -> int:
    """The maximum capacity of a link."""
    return max((link.capacity_mbps for link in network.links), default=0)


def bare_machine(machine: M) -> M:
    """A machine with the same size and place, and defaults in all other fields."""
    # A bare host is on. The state of a VM depends on whether it has a host, so both stay.
    own = () if isinstance(machine, Host) else ("state", "host")
    kept = ("id", "cores", "mhz_per_core", "vcpus", "memory_mib", *own)
    fields = {name: getattr(machine, name) for name in kept if hasattr(machine, name)}
    return type(machine)(**fields)


def _amounts(machine: Host | Vm) -> Mapping[Any, int]:
    """The capacity of a host or the consumption of a VM of named resources."""
    return machine.capacity if isinstance(machine, Host) else machine.consumption


def _details(machine: Host | Vm) -> int:
    """The number of fields that differ from the bare machine; each entry of a map counts one."""
    bare, count = bare_machine(machine), 0
    for name in machine.__struct_fields__:
        value = getattr(machine, name)
        if value != getattr(bare, name):
            count += 1 + (len(value) if isinstance(value, Mapping) else 0)
    return count


def _parts(values: Any) -> Iterator[Any]:
    """All values, and the members of collections at any depth."""
    for value in values:
        yield value
        if isinstance(value, frozenset | tuple):
            yield from _parts(value)
