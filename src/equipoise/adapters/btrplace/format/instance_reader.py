"""An instance of BtrPlace as a planning problem.

Only the resources that the instance names limit a host. So hosts have more cores than any VM
needs, and no memory is reserved. BtrPlace has no limit of concurrent actions and plans at most an
hour ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from equipoise.adapters.btrplace.format.constraints import (
    VM_GOALS,
    AnyConstraint,
    ConstraintReader,
    NameResolver,
)
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
    Attributes,
    BtrPlaceRecord,
    ModelRecord,
    VmAttributes,
    decode_record,
    raise_if_invalid,
    tag_of,
    tagged_record,
    union_of,
)
from equipoise.model.action_durations import Estimates
from equipoise.model.diagnostics import Diagnostics, TooManyDiagnostics
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import ConcurrencyLimits
from equipoise.model.problem import ActionDuration, ObjectiveMeasure, PlanningProblem
from equipoise.model.problem.problem import ActionKind
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
    ActionKind(key): key
    for key in ("forge", "boot", "shutdown", "migrate", "suspend", "resume", "allocate", "kill")
}
"""The attribute of a VM with the duration of each action."""
HOST_DURATIONS: Final[Mapping[ActionKind, str]] = {
    ActionKind.POWER_ON: "boot",
    ActionKind.POWER_OFF: "shutdown",
}
"""The attribute of a node with the duration of each action."""
_NO_ATTRIBUTES: Final = VmAttributes()
_OBJECTIVES: Final = {
    "minimizeMTTR": ObjectiveMeasure.MTTR,
    # The next two differ from the first only in BtrPlace's search strategy.
    "minimizeMTTRMigrationScheduling": ObjectiveMeasure.MTTR,
    "minimizeMTTRMig": ObjectiveMeasure.MTTR,
    "minimizeMigrations": ObjectiveMeasure.MIGRATIONS,
}

if TYPE_CHECKING:
    AnyObjective = BtrPlaceRecord
else:
    AnyObjective = union_of(tagged_record(tag, BtrPlaceRecord, {}) for tag in _OBJECTIVES)


class InstanceRecord(BtrPlaceRecord):
    """An instance: a cluster, constraints and an objective."""

    model: ModelRecord
    constraints: tuple[AnyConstraint, ...]
    objective: AnyObjective


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
        instance = decode_record(content, source, InstanceRecord)
        diagnostics = Diagnostics()
        problem = None
        with suppress(TooManyDiagnostics):
            problem = _read_problem(instance, diagnostics)
        raise_if_invalid(diagnostics, content, source)
    assert problem is not None, "reading stops early only with a problem"
    return problem


def _read_problem(instance: InstanceRecord, diagnostics: Diagnostics) -> PlanningProblem:
    model = instance.model
    placement = read_mapping(model.mapping, diagnostics)
    placement.add_vms(model.attributes.vms)
    for node in model.attributes.nodes.keys() - placement.hosts.keys():
        report_unknown_node(node, ("model", "attributes", "nodes", str(node)), diagnostics)
    # A VM with a desired state may not exist yet. Any other constraint on an unknown VM is a
    # mistake, because it would have no effect.
    placement.add_vms(
        getattr(constraint, "vm")  # noqa: B009  (a key of its form)
        for constraint in instance.constraints
        if tag_of(constraint) in VM_GOALS
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
    vms = _vms(placement, views, model.attributes.vms)
    hosts = _hosts(placement, views, constraints_read, vms)
    cluster = Inventory(
        hosts=hosts,
        vms=vms,
        rules=(*capacity_rules, *constraints_read.rules),
        limits=NO_LIMITS,
    )
    objective = _OBJECTIVES[tag_of(instance.objective)]
    durations, network = _durations(model.attributes, placement), None
    if views.network is not None:
        position, view = views.network
        network = read_network(view, hosts, diagnostics.below("model", "views", position))
        # The copying takes all the time of a migration.
        durations[ActionKind.MIGRATE] = durations[ActionKind.MIGRATE].but(ms=1)
    return PlanningProblem(
        cluster=cluster,
        vms={VmId(name): goal for name, goal in constraints_read.vms.items()},
        hosts={HostId(name): goal for name, goal in constraints_read.hosts.items()},
        durations=durations,
        network=network,
        estimates=_ESTIMATES,
        grid_ms=GRID_MS,
        horizon_s=HORIZON_S,
        objective=(objective,),
    )


def _hosts(
    placement: InstancePlacement,
    views: InstanceViews,
    constraints_read: ConstraintReader,
    vms: Iterable[Vm],
) -> tuple[Host, ...]:
    # Nodes have no memory of their own in an instance: a host takes all VMs.
    memory_mib = max(1, sum(vm.memory_mib for vm in vms))
    return tuple(
        Host(
            id=name,
            cores=HOST_CORES,
            mhz_per_core=1,
            memory_mib=memory_mib,
            state=HostState.ON if node in placement.online else HostState.STANDBY,
            labels=views.label_of("node", node),
            capacity=views.capacity_of(node, constraints_read.overbooked),
        )
        for node, name in placement.hosts.items()
    )


def _vms(
    placement: InstancePlacement,
    views: InstanceViews,
    attributes: Mapping[int, VmAttributes],
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
    attributes: Attributes, placement: InstancePlacement
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
