"""What an instance says in its views: how much there is of what, who is called how, the network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from equipoise.model.files.btrplace.form import (
    NamingService,
    NetworkView,
    ShareableResource,
    View,
)
from equipoise.model.files.btrplace.names import OURS, our_resource
from equipoise.model.files.btrplace.places import Places
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path, quoted
from equipoise.model.quantity import ID_PATTERN, ResourceName
from equipoise.model.value import FrozenMap

Amounts = Mapping[ResourceName, int]

_TOP: Path = ("model", "views")
_ROOM_PREFIX: Final = "room-"
_NAME: Final = re.compile(ID_PATTERN)
_NAME_MAX: Final = 128 - len(_ROOM_PREFIX)
NOTHING: Final[Mapping[str, str]] = FrozenMap()


class Views:
    """The views of an instance, looked up by the numbers of VMs and nodes."""

    def __init__(self, views: Iterable[View], places: Places, found: Findings) -> None:
        self.resources: dict[str, ShareableResource] = {}
        """By the names they have there."""
        self.network: tuple[int, NetworkView] | None = None
        """Where it stands, and what it says."""
        self._labels: dict[str, dict[int, Mapping[str, str]]] = {"vm": {}, "node": {}}
        self._shared: dict[tuple[int, ...], Amounts] = {}
        self._places, self._found = places, found
        named: dict[str, int] = {}
        for place, view in enumerate(views):
            if isinstance(view, ShareableResource):
                key, name = "rcId", f"resource {quoted(view.name)}"
                self._take_resource(view, (*_TOP, place))
            elif isinstance(view, NamingService):
                key, name = "type", f"naming of {quoted(view.kind)}"
                self._take_names(view, (*_TOP, place))
            else:
                key, name = "id", "network"
                self.network = self.network or (place, view)
            if name in named:
                what = f"the {name} is also in"
                found.add((*_TOP, place, key), what, "keep one", first=(*_TOP, named[name]))
            named.setdefault(name, place)
        self._names = tuple(map(our_resource, self.resources))

    @property
    def rooms(self) -> Iterable[tuple[str, ResourceName]]:
        """The id of the rule about each resource, and what the resource is called here."""
        return [(_ROOM_PREFIX + name, name) for name in self._names]

    def label_of(self, kind: str, number: int) -> Mapping[str, str]:
        """The labels of a ``vm`` or a ``node``: its name, if it has one."""
        return self._labels[kind].get(number, NOTHING)

    def consumption_of(self, vm: int) -> Amounts:
        """What a VM takes of each resource."""
        views = self.resources.values()
        return self._amounts(tuple([one.vms.get(vm, one.default_consumption) for one in views]))

    def capacity_of(self, node: int, overbooked: Mapping[tuple[str, int], float]) -> Amounts:
        """What a node may give of each resource: with a ratio, so many times what it has."""
        amounts = []
        for name, view in self.resources.items():
            amount = view.nodes.get(node, view.default_capacity)
            ratio = overbooked.get((name, node))
            amounts.append(amount if ratio is None else int(amount * ratio))
        return self._amounts(tuple(amounts))

    def _amounts(self, key: tuple[int, ...]) -> Amounts:
        """Amounts by name; those who have the same share one mapping."""
        made = self._shared.get(key)
        if made is None:
            made = FrozenMap(zip(self._names, key, strict=True))
            self._shared[key] = made
        return made

    def _take_resource(self, view: ShareableResource, path: Path) -> None:
        if not _NAME.search(view.name) or len(view.name) > _NAME_MAX:
            what = f"{quoted(view.name[:_NAME_MAX])} is not a name that a resource can have here"
            cure = f"letters, digits and _ . : @ / + -, at most {_NAME_MAX}"
            self._found.add((*path, "rcId"), what, cure)
        if view.name in OURS.values():
            what = f"{quoted(view.name)} is what another resource is called here"
            self._found.add((*path, "rcId"), what, "give it another name")
        self.resources.setdefault(view.name, view)
        for node in view.nodes.keys() - self._places.hosts.keys():
            find_unknown_node(node, (*path, "nodes", str(node)), self._found)
        self._places.meet(view.vms)

    def _take_names(self, view: NamingService, path: Path) -> None:
        if view.kind not in self._labels:
            what = f"{quoted(view.kind)} have no names"
            self._found.add((*path, "type"), what, "vm or node")
            return
        labels = self._labels[view.kind]
        for name, number in view.numbers.items():
            if number in labels:
                what = f"{view.kind} {number} is also called {quoted(labels[number]['name'])}"
                self._found.add((*path, "map", name), what, "one name for each")
            labels[number] = {"name": name}
        if view.kind == "vm":
            self._places.meet(labels)
            return
        for name, number in view.numbers.items():
            if number not in self._places.hosts:
                find_unknown_node(number, (*path, "map", name), self._found)


def find_unknown_node(node: int, path: Path, found: Findings) -> None:
    """Find that something is said of a node that the mapping does not name."""
    found.add(path, f"there is no node {node}", "list it in onlineNodes or in offlineNodes")
