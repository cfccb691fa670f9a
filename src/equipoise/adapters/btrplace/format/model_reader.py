"""The model of an instance: mapping (VMs on nodes), views (resources, names) and network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from equipoise.adapters.btrplace.format.records import (
    RENAMED_RESOURCES,
    ElementNumbers,
    LinkRecord,
    MappingRecord,
    NamingService,
    NetworkView,
    ShareableResource,
    View,
    VmAttributes,
    from_btrplace_resource,
)
from equipoise.files.check.planning import check_topology
from equipoise.files.check.references import NamedElements
from equipoise.model.diagnostics import Diagnostics, KeyPath, quoted
from equipoise.model.host import Host
from equipoise.model.problem.problem import Network, NetworkLink, NetworkSwitch
from equipoise.model.quantity import ID_PATTERN, HostId, ResourceName, VmId
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState

_MAPPING_PATH: KeyPath = ("model", "mapping")


@dataclass(slots=True)
class InstancePlacement:
    """The nodes and VMs of an instance, by their numbers."""

    hosts: dict[int, HostId]
    online: frozenset[int]
    vms: dict[int, VmId] = field(default_factory=dict)
    running: dict[int, HostId] = field(default_factory=dict)
    sleeping: dict[int, HostId] = field(default_factory=dict)
    ready: frozenset[int] = frozenset()

    def add_vms(self, vms: Iterable[int]) -> None:
        """Add VMs by number. A VM outside the mapping does not exist yet: it can be forged."""
        for number in set(vms) - self.vms.keys():
            self.vms[number] = VmId(f"vm{number}")

    def state_and_host(self, vm: int) -> tuple[VmState, HostId | None]:
        """Return the state of a VM and its host. A VM outside the mapping is in state init."""
        if vm in self.running:
            return VmState.RUNNING, self.running[vm]
        if vm in self.sleeping:
            return VmState.SLEEPING, self.sleeping[vm]
        return (VmState.READY if vm in self.ready else VmState.INIT), None


def read_mapping(mapping: MappingRecord, diagnostics: Diagnostics) -> InstancePlacement:
    """Return the placement of a mapping; report nodes and VMs that it has twice."""
    nodes = sorted({*mapping.online, *mapping.offline})
    placement = InstancePlacement(
        {node: _node_id(node) for node in nodes}, frozenset(mapping.online)
    )
    if not nodes:
        path = (*_MAPPING_PATH, "onlineNodes")
        diagnostics.add(path, "there is no node", "list at least one", code="empty-value")
    # Counting tells whether there is a duplicate. Only then are the places searched, which is slow.
    if len(nodes) < len(mapping.online) + len(mapping.offline):
        _report_duplicates(
            _listed_nodes(mapping), "node", "list every node once, online or offline", diagnostics
        )
    for node, node_vms in mapping.online.items():
        host = placement.hosts[node]
        placement.running.update(dict.fromkeys(node_vms.running, host))
        placement.sleeping.update(dict.fromkeys(node_vms.sleeping, host))
    placement.ready = frozenset(mapping.ready)
    for group in (placement.running, placement.sleeping, mapping.ready):
        placement.add_vms(group)
    listed = sum(len(vms.running) + len(vms.sleeping) for vms in mapping.online.values())
    if len(placement.vms) < listed + len(mapping.ready):
        _report_duplicates(_listed_vms(mapping), "VM", "list every VM once", diagnostics)
    return placement


def _listed_nodes(mapping: MappingRecord) -> Iterator[tuple[KeyPath, int]]:
    for node in mapping.online:
        yield (*_MAPPING_PATH, "onlineNodes", str(node)), node
    yield from _with_paths((*_MAPPING_PATH, "offlineNodes"), mapping.offline)


def _listed_vms(mapping: MappingRecord) -> Iterator[tuple[KeyPath, int]]:
    yield from _with_paths((*_MAPPING_PATH, "readyVMs"), mapping.ready)
    for node, node_vms in mapping.online.items():
        path: KeyPath = (*_MAPPING_PATH, "onlineNodes", str(node))
        yield from _with_paths((*path, "runningVMs"), node_vms.running)
        yield from _with_paths((*path, "sleepingVMs"), node_vms.sleeping)


def _with_paths(path: KeyPath, numbers: ElementNumbers) -> Iterator[tuple[KeyPath, int]]:
    for position, number in enumerate(numbers):
        yield (*path, position), number


def _report_duplicates(
    listed: Iterator[tuple[KeyPath, int]], noun: str, cure: str, diagnostics: Diagnostics
) -> None:
    first: dict[int, KeyPath] = {}
    for path, number in listed:
        if number in first:
            what = f"the {noun} {number} is also in"
            diagnostics.add(path, what, cure, first[number], code="duplicate-name")
        first.setdefault(number, path)


QuantitiesByResource = Mapping[ResourceName, int]

_VIEWS_PATH: KeyPath = ("model", "views")
_CAPACITY_RULE_PREFIX: Final = "room-"
_RESOURCE_NAME: Final = re.compile(ID_PATTERN)
_RESOURCE_NAME_LENGTH_MAX: Final = 128 - len(_CAPACITY_RULE_PREFIX)
NO_LABELS: Final[Mapping[str, str]] = FrozenMap()


class InstanceViews:
    """The views of an instance, looked up by the numbers of VMs and nodes."""

    def __init__(
        self, views: Iterable[View], placement: InstancePlacement, diagnostics: Diagnostics
    ) -> None:
        self.resources: dict[str, ShareableResource] = {}
        """By their names in BtrPlace."""
        self.network: tuple[int, NetworkView] | None = None
        """Its position among the views, and the view."""
        self._labels: dict[str, dict[int, Mapping[str, str]]] = {"vm": {}, "node": {}}
        self._shared: dict[tuple[int, ...], QuantitiesByResource] = {}
        self._placement, self._diagnostics = placement, diagnostics
        named: dict[str, int] = {}
        for position, view in enumerate(views):
            if isinstance(view, ShareableResource):
                key, name = "rcId", f"resource {quoted(view.name)}"
                self._read_resource(view, (*_VIEWS_PATH, position))
            elif isinstance(view, NamingService):
                key, name = "type", f"naming of {quoted(view.kind)}"
                self._read_names(view, (*_VIEWS_PATH, position))
            else:
                key, name = "id", "network"
                self.network = self.network or (position, view)
            if name in named:
                path, first = (*_VIEWS_PATH, position, key), (*_VIEWS_PATH, named[name])
                what = f"the {name} is also in"
                diagnostics.add(path, what, "keep one", first=first, code="duplicate-name")
            named.setdefault(name, position)
        self._names = tuple(map(from_btrplace_resource, self.resources))

    @property
    def capacity_rules(self) -> Iterable[tuple[str, ResourceName]]:
        """The id of the capacity rule of each resource, and the name of the resource here."""
        return [(_CAPACITY_RULE_PREFIX + name, name) for name in self._names]

    def label_of(self, kind: str, number: int) -> Mapping[str, str]:
        """Return the labels of a ``vm`` or a ``node``: its name, if it has one."""
        return self._labels[kind].get(number, NO_LABELS)

    def consumption_of(self, vm: int) -> QuantitiesByResource:
        """Return the amounts of all resources that a VM consumes."""
        # A list first: a tuple of a generator takes twice as long, and there are 100,000 VMs.
        views = self.resources.values()
        return self._amounts(tuple([view.vms.get(vm, view.default_consumption) for view in views]))

    def capacity_of(
        self, node: int, overbooked: Mapping[tuple[str, int], float]
    ) -> QuantitiesByResource:
        """Return the capacity of a node in all resources, with its ratio of overbooking."""
        amounts = []
        for name, view in self.resources.items():
            amount = view.nodes.get(node, view.default_capacity)
            ratio = overbooked.get((name, node))
            # Consumption is a whole number, so a capacity that is rounded down admits the same VMs.
            amounts.append(amount if ratio is None else int(amount * ratio))
        return self._amounts(tuple(amounts))

    def _amounts(self, key: tuple[int, ...]) -> QuantitiesByResource:
        """Return amounts by resource. Equal amounts share one mapping, to save memory."""
        amounts = self._shared.get(key)
        if amounts is None:
            amounts = FrozenMap(zip(self._names, key, strict=True))
            self._shared[key] = amounts
        return amounts

    def _read_resource(self, view: ShareableResource, path: KeyPath) -> None:
        if not _RESOURCE_NAME.search(view.name) or len(view.name) > _RESOURCE_NAME_LENGTH_MAX:
            shown = quoted(view.name[:_RESOURCE_NAME_LENGTH_MAX])
            what = f"{shown} is not an allowed name of a resource"
            cure = f"letters, digits and _ . : @ / + -, at most {_RESOURCE_NAME_LENGTH_MAX}"
            self._diagnostics.add((*path, "rcId"), what, cure, code="invalid-name")
        if view.name in RENAMED_RESOURCES.values():
            what = f"{quoted(view.name)} is the name of another resource here"
            self._diagnostics.add(
                (*path, "rcId"), what, "rename the resource", code="duplicate-name"
            )
        self.resources.setdefault(view.name, view)
        for node in view.nodes.keys() - self._placement.hosts.keys():
            report_unknown_node(node, (*path, "nodes", str(node)), self._diagnostics)
        self._placement.add_vms(view.vms)

    def _read_names(self, view: NamingService, path: KeyPath) -> None:
        if view.kind not in self._labels:
            what = f"a naming service cannot name {quoted(view.kind)}"
            self._diagnostics.add((*path, "type"), what, "vm or node", code="invalid-value")
            return
        labels = self._labels[view.kind]
        for name, number in view.numbers.items():
            if number in labels:
                what = f"{view.kind} {number} is also called {quoted(labels[number]['name'])}"
                self._diagnostics.add(
                    (*path, "map", name), what, "give it one name", code="duplicate-name"
                )
            labels[number] = {"name": name}
        if view.kind == "vm":
            self._placement.add_vms(labels)
            return
        for name, number in view.numbers.items():
            if number not in self._placement.hosts:
                report_unknown_node(number, (*path, "map", name), self._diagnostics)


def report_unknown_node(node: int, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report a node that the mapping does not list."""
    cure = "list it in onlineNodes or in offlineNodes"
    diagnostics.add(path, f"there is no node {node}", cure, code="unknown-name")


MBPS_MAX: Final = 10**9
"""The highest bandwidth. BtrPlace writes no limit as a larger or a negative number."""

_LINK_END_KINDS: Final = ("node", "switch")


def read_network(view: NetworkView, hosts: Sequence[Host], diagnostics: Diagnostics) -> Network:
    """Return the network of a view, and report its problems."""
    if view.routing.kind != "default":
        what = f"the routing {quoted(view.routing.kind)} is not known"
        if view.routing.kind == "static":
            what = "static routes are not supported: routes follow from the links"
        diagnostics.add(("routing", "type"), what, "write default", code="unsupported-feature")
    network = Network(
        switches=tuple(
            NetworkSwitch(
                id=_switch_id(switch.id),
                capacity_mbps=_mbps(switch.capacity, "switch", ("switches", i), diagnostics),
            )
            for i, switch in enumerate(view.switches)
        ),
        links=tuple(
            _read_link(link, ("links", i), diagnostics) for i, link in enumerate(view.links)
        ),
    )
    # A link to an unknown kind of element may lead to any host, so the rest cannot be checked.
    if all(link.end.kind in _LINK_END_KINDS for link in view.links):
        _check_topology(network, hosts, diagnostics)
    return network


def _check_topology(network: Network, hosts: Sequence[Host], diagnostics: Diagnostics) -> None:
    """Check the network of the model, and report its problems with the keys of BtrPlace."""
    local = Diagnostics()
    check_topology(network, NamedElements("host", (), hosts, None), local, {})
    for problem in local.all():
        *above, key = problem.path
        path = (*above, "physicalElement", "id") if key in ("host", "to") else problem.path
        diagnostics.add(path, problem.what, problem.cure, problem.first, code=problem.code)


def _read_link(link: LinkRecord, path: KeyPath, diagnostics: Diagnostics) -> NetworkLink:
    end, key = link.end, (*path, "physicalElement", "type")
    if end.kind not in _LINK_END_KINDS:
        what = f"a link does not lead to {quoted(end.kind)}"
        diagnostics.add(key, what, "node or switch", code="invalid-value")
    return NetworkLink(
        id=ResourceName(f"link{link.id}"),
        switch=_switch_id(link.switch),
        host=None if end.kind == "switch" else _node_id(end.id),
        to=_switch_id(end.id) if end.kind == "switch" else None,
        capacity_mbps=_mbps(link.capacity, "link", path, diagnostics) or MBPS_MAX,
    )


def _node_id(number: int) -> HostId:
    return HostId(f"node{number}")


def _switch_id(number: int) -> ResourceName:
    return ResourceName(f"switch{number}")


def _mbps(capacity: int, noun: str, path: KeyPath, diagnostics: Diagnostics) -> int | None:
    if capacity == 0:
        what, cure = f"a {noun} of 0 Mbit/s has no bandwidth", "1 or more, or -1 for no limit"
        diagnostics.add((*path, "capacity"), what, cure, code="out-of-range")
    return capacity if 0 < capacity < MBPS_MAX else None


def check_copy_attributes(
    known: Mapping[int, VmAttributes], running: Iterable[int], diagnostics: Diagnostics
) -> None:
    """Report attributes with which a migration would take another time here than in BtrPlace."""
    for vm, attributes in known.items():
        for key, is_given in (
            ("hotDirtySize", attributes.hot_dirty_size is not None),
            ("hotDirtyDuration", attributes.hot_dirty_duration is not None),
            ("coldDirtyRate", attributes.cold_dirty_rate is not None),
            ("postCopy", attributes.post_copy),
        ):
            if is_given:
                what = "the way to copy the memory of a VM cannot be chosen here"
                cure = "leave it out: memory is copied once"
                path = ("vms", str(vm), key)
                diagnostics.add(path, what, cure, code="unsupported-feature")
    for vm in running:
        if vm not in known or known[vm].mem_used is None:
            what = "is missing, but the network needs it for the duration of a migration"
            cure = "the MiB that the VM uses"
            diagnostics.add(("vms", str(vm), "memUsed"), what, cure, code="missing-key")
