"""How large a trial is: what shrinking makes smaller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Self, TypeVar

from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import Allocate
from equipoise.model.host import Host
from equipoise.model.problem.network import Network
from equipoise.model.vm import Vm

M = TypeVar("M", bound=Host | Vm)
SECOND_MS: Final = 1000


class Size(NamedTuple):
    """The size of a trial; what stands first counts more than all that follows.

    All are counts, so that no trial can be made smaller for ever.
    """

    machines: int
    """Hosts and VMs."""
    steps: int
    wires: int
    """The switches and links of a network, and one more if there is one."""
    members: int
    """How many members the sets, lists and groups among the arguments have."""
    numbers: int
    """The sum of all whole numbers among the arguments and of all amounts, without their signs."""
    details: int
    """What machines and steps have that bare ones do not, and parts of a network that are narrow:
    links that carry less than the widest, and switches with a limit."""
    odd_times: int
    """Times that are no whole seconds."""
    time_ms: int
    """The sum of all starts and ends."""

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """Measure a trial."""
        machines: list[Host | Vm] = [*trial.initial.hosts.values(), *trial.initial.vms.values()]
        values = tuple(_parts(trial.demand.arguments.values()))
        times = [at_ms for step in trial.steps for at_ms in (step.start_ms, step.end_ms)]
        numbers = [abs(one) for one in values if isinstance(one, int)]
        numbers += [amount for one in machines for amount in _amounts(one).values()]
        numbers += [one.action.amount for one in trial.steps if isinstance(one.action, Allocate)]
        details = [_details(one) for one in machines]
        details += [len(step.after) + (step.reason != "") for step in trial.steps]
        network = trial.network or Network()
        details += [one.capacity_mbps is not None for one in network.switches]
        details += [one.capacity_mbps < widest_mbps(network) for one in network.links]
        return cls(
            machines=len(machines),
            steps=len(trial.steps),
            wires=len(network.switches) + len(network.links) + (trial.network is not None),
            members=len(values) - len(trial.demand.arguments),
            numbers=sum(numbers),
            details=sum(details),
            odd_times=sum(at_ms % SECOND_MS > 0 for at_ms in times),
            time_ms=sum(times),
        )


def widest_mbps(network: Network) -> int:
    """What the widest of its links carries."""
    return max((one.capacity_mbps for one in network.links), default=0)


def bare(machine: M) -> M:
    """The same machine with nothing but what it must have: as large, and in its place."""
    # A host can be on whatever it is now; what a VM can be depends on where it lies.
    own = () if isinstance(machine, Host) else ("state", "host")
    kept = ("id", "cores", "mhz_per_core", "vcpus", "memory_mib", *own)
    fields = {name: getattr(machine, name) for name in kept if hasattr(machine, name)}
    return type(machine)(**fields)


def _amounts(machine: Host | Vm) -> Mapping[Any, int]:
    """What a machine offers or takes of resources beyond CPU and memory."""
    return machine.capacity if isinstance(machine, Host) else machine.consumption


def _details(machine: Host | Vm) -> int:
    """In how many fields it is not bare, where each entry of a map is one more."""
    usual, found = bare(machine), 0
    for name in machine.__struct_fields__:
        value = getattr(machine, name)
        if value != getattr(usual, name):
            found += 1 + (len(value) if isinstance(value, Mapping) else 0)
    return found


def _parts(values: Any) -> Iterator[Any]:
    """Values, and the members of those that have some."""
    for one in values:
        yield one
        if isinstance(one, frozenset | tuple):
            yield from _parts(one)
