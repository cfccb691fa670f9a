"""An instance of BtrPlace as a planning problem.

Only the resources that the instance names limit a host. So hosts have more cores than any VM
needs, and no memory is reserved. BtrPlace has no limit of concurrent actions and plans at most an
hour ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from equipoise.adapters.btrplace.format import records
from equipoise.adapters.btrplace.format.constraint_reader import ConstraintReader, NameResolver
from equipoise.adapters.btrplace.format.model_reader import (
    InstancePlacement,
    InstanceViews,
    check_copy_attributes,
    read_mapping,
    read_network,
    report_unknown_node,
)
from equipoise.adapters.btrplace.format.records import (
    BYTE_ORDER_MARK,
    decode_record,
    raise_if_invalid,
)
from equipoise.model.diagnostics import Diagnostics, TooManyDiagnostics
from equipoise.model.estimate import Estimates
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import ConcurrencyLimits
from equipoise.model.problem import ActionDuration, ObjectiveMeasure, PlanningProblem
from equipoise.model.problem.problem import ActionKind, Network
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import Satisfy
from equipoise.model.value import pause_gc
from equipoise.model.vm import Vm

HOST_CORES: Final = 10**5
GRID_MS: Final = 1000
"""Times of BtrPlace are whole seconds."""
_ESTIMATES: Final = Estimates(migration_mib_per_s=10**9)
"""BtrPlace limits a migration by the network alone."""
HORIZON_S: Final = 3600
NO_LIMITS: Final = ConcurrencyLimits(actions_per_host=10**7, actions_total=10**7)
VM_DURATIONS: Final[Mapping[ActionKind, str]] = {
    ActionKind.FORGE: "forge",
    ActionKind.BOOT: "boot",
    ActionKind.SHUTDOWN: "shutdown",
    ActionKind.MIGRATE: "migrate",
    ActionKind.SUSPEND: "suspend",
    ActionKind.RESUME: "resume",
    ActionKind.ALLOCATE: "allocate",
    ActionKind.KILL: "kill",
}
"""The attribute of a VM with the duration of each action."""
HOST_DURATIONS: Final[Mapping[ActionKind, str]] = {
    ActionKind.POWER_ON: "boot",
    ActionKind.POWER_OFF: "shutdown",
}
"""The attribute of a node with the duration of each action."""
_NO_ATTRIBUTES: Final = records.VmAttributes()


class _InstanceKeys(msgspec.Struct):
    """The keys that only an instance has."""

    model: msgspec.Raw
    constraints: msgspec.Raw


def is_instance(content: bytes) -> bool:
    """Whether a file is an instance of BtrPlace, valid or not."""
    content = content.removeprefix(BYTE_ORDER_MARK)
    try:
        msgspec.json.decode(content, type=_InstanceKeys)
    except msgspec.ValidationError:
        return False
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # The JSON is damaged. A key of instances still tells what the file is meant to be.
        return content.lstrip()[:1] == b"{" and b'"onlineNodes"' in content
    return True


def read_instance(content: bytes, source: str) -> PlanningProblem:
    """Return the planning problem of an instance; ``source`` is its name in messages."""
    with pause_gc():
        instance = decode_record(content, source, records.InstanceRecord)
        diagnostics = Diagnostics()
        problem = None
        with suppress(TooManyDiagnostics):
            problem = _read_problem(instance, diagnostics)
        raise_if_invalid(diagnostics, content, source)
    assert problem is not None, "reading stops early only with a problem"
    return problem


def _read_problem(instance: records.InstanceRecord, diagnostics: Diagnostics) -> PlanningProblem:
    model = instance.model
    placement = read_mapping(model.mapping, diagnostics)
    _add_attributed_vms(model.attributes, placement, diagnostics)
    # A VM with a desired state may not exist yet. Any other constraint on an unknown VM is a
    # mistake, because it would have no effect.
    placement.add_vms(
        constraint.vm
        for constraint in instance.constraints
        if isinstance(constraint, records.VmStateConstraint)
    )
    views = InstanceViews(model.views, placement, diagnostics)
    constraints_read = ConstraintReader(NameResolver(placement, views, diagnostics))
    constraints_read.read_all(instance.constraints)
    if views.network is not None:
        check_copy_attributes(
            model.attributes.vms, placement.running, diagnostics.below("model", "attributes")
        )
    capacity_rules = [
        Satisfy(id=RuleId(rule), constraint="ShareableResource", arguments={"id": name})
        for rule, name in views.capacity_rules
    ]
    hosts = _hosts(placement, views, constraints_read)
    cluster = Inventory(
        hosts=hosts,
        vms=_vms(placement, views, model.attributes.vms),
        rules=(*capacity_rules, *constraints_read.rules),
        limits=NO_LIMITS,
    )
    minimise_migrations = isinstance(instance.objective, records.MinMigrations)
    durations = _durations(model.attributes, placement)
    if views.network is not None:  # the copying takes all the time of a migration
        durations[ActionKind.MIGRATE] = durations[ActionKind.MIGRATE].but(ms=1)
    return PlanningProblem(
        cluster=cluster,
        vms={VmId(name): goal for name, goal in constraints_read.vms.items()},
        hosts={HostId(name): goal for name, goal in constraints_read.hosts.items()},
        durations=durations,
        network=_network(views, hosts, diagnostics),
        estimates=_ESTIMATES,
        grid_ms=GRID_MS,
        horizon_s=HORIZON_S,
        objective=(ObjectiveMeasure.MIGRATIONS if minimise_migrations else ObjectiveMeasure.MTTR,),
    )


def _add_attributed_vms(
    attributes: records.Attributes, placement: InstancePlacement, diagnostics: Diagnostics
) -> None:
    placement.add_vms(attributes.vms)
    for node in attributes.nodes.keys() - placement.hosts.keys():
        report_unknown_node(node, ("model", "attributes", "nodes", str(node)), diagnostics)


def _hosts(
    placement: InstancePlacement, views: InstanceViews, constraints_read: ConstraintReader
) -> tuple[Host, ...]:
    return tuple(
        Host(
            id=name,
            cores=HOST_CORES,
            mhz_per_core=1,
            memory_mib=1,
            state=HostState.ON if node in placement.online else HostState.STANDBY,
            labels=views.label_of("node", node),
            capacity=views.capacity_of(node, constraints_read.overbooked),
        )
        for node, name in placement.hosts.items()
    )


def _vms(
    placement: InstancePlacement,
    views: InstanceViews,
    attributes: Mapping[int, records.VmAttributes],
) -> tuple[Vm, ...]:
    vms = []
    for number, name in sorted(placement.vms.items()):
        state, host = placement.state_and_host(number)
        known = attributes.get(number, _NO_ATTRIBUTES)
        vms.append(
            Vm(
                id=name,
                vcpus=1,
                memory_mib=known.mem_used or 1,
                state=state,
                host=host,
                consumption=views.consumption_of(number),
                template=known.template or None,
                replaceable=known.clone and bool(known.template),
                labels=views.label_of("vm", number),
            )
        )
    return tuple(vms)


def _durations(
    attributes: records.Attributes, placement: InstancePlacement
) -> dict[ActionKind, ActionDuration]:
    """Return the durations of actions: a second, unless an attribute gives another one."""
    durations = {
        kind: ActionDuration(ms=1000, of=_durations_by_id(attributes.vms, key, placement.vms))
        for kind, key in VM_DURATIONS.items()
    }
    for kind, key in HOST_DURATIONS.items():
        of = _durations_by_id(attributes.nodes, key, placement.hosts)
        durations[kind] = ActionDuration(ms=1000, of=of)
    return durations


def _durations_by_id(
    known: Mapping[int, Any], key: str, names: Mapping[int, str]
) -> dict[str, int]:
    return {
        names[number]: 1000 * seconds
        for number, attributes in known.items()
        if (seconds := getattr(attributes, key)) and number in names
    }


def _network(
    views: InstanceViews, hosts: tuple[Host, ...], diagnostics: Diagnostics
) -> Network | None:
    if views.network is None:
        return None
    position, view = views.network
    return read_network(view, hosts, diagnostics.below("model", "views", position))
