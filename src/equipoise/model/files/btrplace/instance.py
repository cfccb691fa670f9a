"""An instance of BtrPlace as a problem of ours.

What counts on a host is only what the instance says of its resources. So hosts have more cores
than anybody asks for, and their memory and that of the VMs is never reserved. BtrPlace knows no
limit to what happens at once, and looks no further ahead than an hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from equipoise.model.estimate import Estimates
from equipoise.model.files.btrplace import form
from equipoise.model.files.btrplace.decode import BYTE_ORDER_MARK, decoded, raise_if_any
from equipoise.model.files.btrplace.network import check_copying, network_of
from equipoise.model.files.btrplace.places import Places, places_of
from equipoise.model.files.btrplace.rules import Wishes
from equipoise.model.files.btrplace.speech import Speech
from equipoise.model.files.btrplace.views import Views, find_unknown_node
from equipoise.model.files.collector import undisturbed
from equipoise.model.files.findings import Enough, Findings
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Limits
from equipoise.model.problem import Duration, Measure, Problem
from equipoise.model.problem.network import Network
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import Satisfy
from equipoise.model.vm import Vm

CORES: Final = 10**5
GRID_MS: Final = 1000
"""Its times are whole seconds."""
_ESTIMATES: Final = Estimates(migration_mib_per_s=10**9)
"""Of a migration it knows nothing but how fast the network is."""
HORIZON_S: Final = 3600
NO_LIMITS: Final = Limits(actions_per_host=10**7, actions_total=10**7)
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
"""The attribute of a VM that says how long an action on it takes."""
HOST_DURATIONS: Final[Mapping[ActionKind, str]] = {
    ActionKind.POWER_ON: "boot",
    ActionKind.POWER_OFF: "shutdown",
}
"""The attribute of a node that says how long it takes to switch it."""
_NO_ATTRIBUTES: Final = form.VmAttributes()


class _Signs(msgspec.Struct):
    """What is looked for in a file to tell whether it is an instance."""

    model: msgspec.Raw
    constraints: msgspec.Raw


def is_instance(content: bytes) -> bool:
    """Whether a file is, or was to be, an instance of BtrPlace."""
    content = content.removeprefix(BYTE_ORDER_MARK)
    try:
        msgspec.json.decode(content, type=_Signs)
    except msgspec.ValidationError:
        return False
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # No JSON at all, or one with a slip; what was meant is still plain to see.
        return content.lstrip()[:1] == b"{" and b'"onlineNodes"' in content
    return True


def read_instance(content: bytes, source: str) -> Problem:
    """Read an instance; ``source`` is what messages call the file."""
    with undisturbed():
        instance = decoded(content, source, form.Instance)
        found = Findings()
        problem = None
        with suppress(Enough):
            problem = _problem(instance, found)
        raise_if_any(found, content, source)
    assert problem is not None, "nothing was found, and still it was enough"
    return problem


def _problem(instance: form.Instance, found: Findings) -> Problem:
    model = instance.model
    places = places_of(model.mapping, found)
    _meet_attributed(model.attributes, places, found)
    # Who is to be in a state may not be made yet. Others who are unknown are a slip: nothing would
    # come of what is demanded of nobody.
    places.meet(one.vm for one in instance.constraints if isinstance(one, form.VmWish))
    views = Views(model.views, places, found)
    wishes = Wishes(Speech(places, views, found))
    wishes.take_all(instance.constraints)
    if views.network is not None:
        check_copying(model.attributes.vms, places.running, found.below("model", "attributes"))
    rooms = [
        Satisfy(id=RuleId(rule), constraint="ShareableResource", arguments={"id": name})
        for rule, name in views.rooms
    ]
    hosts = _hosts(places, views, wishes)
    cluster = Inventory(
        hosts=hosts,
        vms=_vms(places, views, model.attributes.vms),
        rules=(*rooms, *wishes.rules),
        limits=NO_LIMITS,
    )
    few = isinstance(instance.objective, form.MinMigrations)
    durations = _durations(model.attributes, places)
    if views.network is not None:  # nothing comes on top of what copying takes
        durations[ActionKind.MIGRATE] = durations[ActionKind.MIGRATE].but(ms=1)
    return Problem(
        cluster=cluster,
        vms={VmId(name): aim for name, aim in wishes.vms.items()},
        hosts={HostId(name): aim for name, aim in wishes.hosts.items()},
        durations=durations,
        network=_network(views, hosts, found),
        estimates=_ESTIMATES,
        grid_ms=GRID_MS,
        horizon_s=HORIZON_S,
        objective=(Measure.MIGRATIONS if few else Measure.MTTR,),
    )


def _meet_attributed(attributes: form.Attributes, places: Places, found: Findings) -> None:
    places.meet(attributes.vms)
    for node in attributes.nodes.keys() - places.hosts.keys():
        find_unknown_node(node, ("model", "attributes", "nodes", str(node)), found)


def _hosts(places: Places, views: Views, wishes: Wishes) -> tuple[Host, ...]:
    return tuple(
        Host(
            id=name,
            cores=CORES,
            mhz_per_core=1,
            memory_mib=1,
            state=HostState.ON if node in places.online else HostState.STANDBY,
            labels=views.label_of("node", node),
            capacity=views.capacity_of(node, wishes.overbooked),
        )
        for node, name in places.hosts.items()
    )


def _vms(
    places: Places, views: Views, attributes: Mapping[int, form.VmAttributes]
) -> tuple[Vm, ...]:
    made = []
    for number, name in sorted(places.vms.items()):
        state, host = places.place_of(number)
        known = attributes.get(number, _NO_ATTRIBUTES)
        made.append(
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
    return tuple(made)


def _durations(attributes: form.Attributes, places: Places) -> dict[ActionKind, Duration]:
    """How long actions take: a second, if nothing else is said of the VM or the node."""
    made = {
        kind: Duration(ms=1000, of=_lasting(attributes.vms, key, places.vms))
        for kind, key in VM_DURATIONS.items()
    }
    for kind, key in HOST_DURATIONS.items():
        of = _lasting(attributes.nodes, key, places.hosts)
        made[kind] = Duration(ms=1000, of=of)
    return made


def _lasting(known: Mapping[int, Any], key: str, names: Mapping[int, str]) -> dict[str, int]:
    return {
        names[number]: 1000 * seconds
        for number, one in known.items()
        if (seconds := getattr(one, key)) and number in names
    }


def _network(views: Views, hosts: tuple[Host, ...], found: Findings) -> Network | None:
    if views.network is None:
        return None
    place, view = views.network
    return network_of(view, hosts, found.below("model", "views", place))
