"""Trials as questions to BtrPlace, or the reason why BtrPlace cannot express them.

Clusters and actions are encoded as in BtrPlace's files (``format``). A VM that does not exist yet
is unknown to BtrPlace unless the plan forges it; then BtrPlace receives its template. Each
constraint of ``btrplace.spec`` has the name that it has in BtrPlace. Resources are the named ones
of a cluster, ratios are percentages here, and moments milliseconds.

BtrPlace computes the duration of a migration over a network itself: the used memory, at a ninth of
the bits in bytes, and the pages that are written meanwhile, rounded to a second. Here the durations
are given. So the question states just the memory that BtrPlace copies in that time, and no writes;
whether the time suffices for the real memory of the VM is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from equipoise.adapters.btrplace.format import Numbering, plan_record, read_plan
from equipoise.adapters.btrplace.format.constraints import (
    CONSTRAINT_FORMS,
    RESOURCE,
    ConstraintMode,
    InexpressibleArgument,
)
from equipoise.adapters.targets.scheduler import UnsupportedTrial
from equipoise.adapters.targets.trial import Trial
from equipoise.model.action import (
    Boot,
    Forge,
    Kill,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.host import HostState
from equipoise.model.plan import Step, Violation
from equipoise.model.problem import PlanningProblem
from equipoise.model.problem.problem import Network
from equipoise.model.vm import VmState
from equipoise.plan.network import NETWORK_OVERLOADED, NetworkPaths

CONSTRAINTS: Final = tuple(CONSTRAINT_FORMS)
"""The constraints that BtrPlace supports."""


def encode_constraint(trial: Trial, numbers: Numbering) -> dict[str, Any] | None:
    """Encode the constraint of a trial; ``None`` if BtrPlace always enforces it."""
    demand = trial.demand
    form = CONSTRAINT_FORMS.get(demand.library_name or "")
    if form is None:
        raise UnsupportedTrial(
            f"BtrPlace has no constraint {demand.name}", "unsupported-constraint"
        )
    record: dict[str, Any] = {"id": form.tag}
    for key, (name, kind) in form.keys.items():
        if kind is RESOURCE:
            _require_resource(trial, str(demand.arguments[name]))
        try:
            record[key] = kind.write(numbers, demand.arguments[name])
        except InexpressibleArgument as error:
            raise UnsupportedTrial(str(error), "unsupported-argument") from error
    if form.mode is ConstraintMode.ENFORCED:
        if not demand.continuous:
            raise UnsupportedTrial(
                "BtrPlace checks capacities at every moment; only the continuous mode is supported",
                "unsupported-mode",
            )
        return None
    if form.mode is not ConstraintMode.TEMPORAL:
        return {**record, "continuous": demand.continuous}
    if demand.continuous:
        raise UnsupportedTrial(
            f"{demand.name} is about times and has only one mode in BtrPlace", "unsupported-mode"
        )
    return record


def _require_resource(trial: Trial, name: str) -> None:
    """Raise ``UnsupportedTrial`` if the cluster does not have a named resource."""
    capacities = (host.capacity for host in trial.initial.hosts.values())
    consumptions = (vm.consumption for vm in trial.initial.vms.values())
    if not any(name in amounts for amounts in (*capacities, *consumptions)):
        raise UnsupportedTrial(
            f"no host offers and no VM takes the resource {name!r}", "unsupported-argument"
        )


BITS_PER_BYTE: Final = 9
"""The factor that BtrPlace uses in its durations of migrations."""
_MBPS_MIN: Final = 10
"""Below it, the transfer of one MiB takes longer than the rounding of BtrPlace hides."""


def network_objections(trial: Trial) -> Iterator[UnsupportedTrial]:
    """The reasons why BtrPlace cannot model the network of a trial."""
    network = trial.network
    if network is None:
        return
    trunks = [link for link in network.links if link.to is not None]
    if len(trunks) >= len(network.switches):
        # As many trunks as switches make a cycle, so some hosts have several paths.
        yield UnsupportedTrial(
            "the network has several paths, of which BtrPlace takes the first instead of the "
            "shortest one",
            "unsupported-network",
        )
    speeds: list[int | None] = [link.capacity_mbps for link in network.links]
    speeds += [switch.capacity_mbps for switch in network.switches]
    if any(mbps is not None and mbps < _MBPS_MIN for mbps in speeds):
        yield UnsupportedTrial(
            f"BtrPlace has no exact durations below {_MBPS_MIN} Mbit/s", "unsupported-network"
        )


def set_migrated_memory(
    trial: Trial, network: Network, vms: Mapping[str, int], origin: Any
) -> None:
    """Set the used memory of VMs such that each migration takes exactly as long as its step."""
    paths, attributes_of = NetworkPaths(network), origin["attributes"]["vms"]
    for attributes in attributes_of.values():
        attributes["hotDirtySize"] = 0.0
    for step in trial.steps:
        if isinstance(step.action, Migrate):
            path = paths.between(step.action.source, step.action.target)
            if path is not None:
                seconds = step.duration_ms // 1000
                memory_mib = round(seconds * path.mbps / BITS_PER_BYTE)
                attributes_of[str(vms[step.action.vm])]["memUsed"] = memory_mib


BtrPlaceQuestion = dict[str, Any]

_ACTIONS: Final = PowerOn | PowerOff | Forge | Boot | Shutdown | Migrate | Suspend | Resume | Kill
_HOST_STATES: Final = frozenset((HostState.ON, HostState.STANDBY))
_KNOWN_TO_BTRPLACE: Final = frozenset(("host_on", "host_empty", "host_life", NETWORK_OVERLOADED))
"""The objections to plans that BtrPlace itself knows: hosts that are not on and links without
bandwidth."""
_CAPACITY: Final = "capacity"
_ALL_PERCENT: Final = 100
"""The percentage of its capacity that a host gives without overbooking."""


def encode_question(trial: Trial, *, repair: bool) -> BtrPlaceQuestion:
    """Encode a trial; raise ``UnsupportedTrial`` if BtrPlace cannot express it."""
    for reason in _why_unsupported(trial):
        raise reason
    problem = PlanningProblem(cluster=trial.initial.inventory(), network=trial.network)
    forged = _forged_vms(trial)
    numbers = Numbering.of(problem)
    record = plan_record(trial.plan, problem)
    if trial.network is not None:
        set_migrated_memory(trial, trial.network, numbers.vms, record["origin"])
    return {
        **record,
        "unmade": {str(numbers.vms[vm]): template for vm, template in forged.items()},
        "constraint": encode_constraint(trial, numbers),
        "repair": repair,
    }


def read_own_plan(trial: Trial, record: dict[str, Any]) -> tuple[Step, ...]:
    """The steps of a plan that BtrPlace made for the cluster of a trial."""
    problem = PlanningProblem(cluster=trial.initial.inventory())
    return read_plan(msgspec.json.encode(record), "BtrPlace's plan", problem).steps


def _why_unsupported(trial: Trial) -> Iterator[UnsupportedTrial]:
    snapshot = trial.initial
    if snapshot.in_flight:
        yield _unsupported_cluster("BtrPlace starts without actions in flight")
    for host in snapshot.hosts.values():
        if host.state not in _HOST_STATES:
            yield _unsupported_cluster(f"{host.id} is {host.state}; a node is on or off")
    for vm in snapshot.vms.values():
        if vm.state is VmState.TERMINATED:
            yield _unsupported_cluster(f"{vm.id} is terminated and does not exist in BtrPlace")
    for name, count in Counter(map(_subject, trial.steps)).items():
        if count > 1:
            yield _unsupported_plan(f"{name} has {count} actions; BtrPlace plans at most one")
    for step in trial.steps:
        yield from _why_step_unsupported(step)
    yield from network_objections(trial)
    for objection in trial.objections:
        yield from _why_objection_unsupported(trial, objection)


def _subject(step: Step) -> str:
    touched = step.footprint
    return str(touched.vm or touched.switched)


def _unsupported_cluster(reason: str) -> UnsupportedTrial:
    return UnsupportedTrial(reason, "unsupported-cluster")


def _unsupported_plan(reason: str) -> UnsupportedTrial:
    return UnsupportedTrial(reason, "unsupported-plan")


def _why_step_unsupported(step: Step) -> Iterator[UnsupportedTrial]:
    action = step.action
    if not isinstance(action, _ACTIONS):
        yield _unsupported_plan(f"BtrPlace has no timed action {action.__struct_config__.tag}")
    if step.start_ms % 1000 or step.end_ms % 1000:
        yield _unsupported_plan(f"{step.id} must start and end at whole seconds")
    if isinstance(action, Kill) and step.start_ms:
        yield _unsupported_plan(f"{step.id} kills a VM later than at 0 s; BtrPlace kills at 0 s")


def _why_objection_unsupported(trial: Trial, objection: Violation) -> Iterator[UnsupportedTrial]:
    """A plan that cannot be executed is a question only if BtrPlace can know why."""
    if objection.constraint == _CAPACITY:
        vms = trial.initial.vms.values()
        if any(vm.cpu.reservation_mhz or vm.memory.reservation_mib for vm in vms):
            yield _unsupported_cluster(f"BtrPlace has no reservations: {objection.detail}")
        if (
            trial.demand.library_name == "Overbook"
            and trial.demand.arguments["percent"] != _ALL_PERCENT
        ):
            yield UnsupportedTrial(
                "the ratio of Overbook replaces the capacity in BtrPlace and is added to it here",
                "unsupported-argument",
            )
    elif objection.constraint not in _KNOWN_TO_BTRPLACE:
        yield _unsupported_plan(
            f"BtrPlace does not know this obstacle to the plan: {objection.detail}"
        )


def _forged_vms(trial: Trial) -> dict[str, str]:
    """The VMs that the plan forges, with their templates.

    The constraint must not name any other VM that does not exist yet.
    """
    forged = {step.action.vm for step in trial.steps if isinstance(step.action, Forge)}
    vms = trial.initial.vms.values()
    unmade = {vm.id: vm.template or "" for vm in vms if vm.state is VmState.INIT}
    named = _names(list(trial.demand.arguments.values()))
    for vm in unmade:
        if vm in named and vm not in forged:
            raise _unsupported_cluster(f"{vm} is not forged and does not exist in BtrPlace")
    return {vm: template for vm, template in unmade.items() if vm in forged}


def _names(value: Any) -> set[str]:
    """All names in the arguments of a constraint, at any depth of groups."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, list | tuple | frozenset):
        return {name for member in value for name in _names(member)}
    return set()
