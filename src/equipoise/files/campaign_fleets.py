"""Expands the fleets of a campaign file into hosts, resources, VMs and dependencies.

It works on the tree of the file, before any check. So the checks see every member, and a problem
of a member has the line of its fleet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final

import msgspec

from equipoise.errors import InvalidInput
from equipoise.files.document import ParsedTree
from equipoise.files.type_check import check_types
from equipoise.model.diagnostics import Diagnostics, KeyPath
from equipoise.model.scenario.scenario import fleet_member_id
from equipoise.model.upgrade.fleet import (
    CampaignFleets,
    DependencySpread,
    EqualHosts,
    EqualResources,
    FleetDependency,
)

_MEMBER_LISTS: Final = frozenset({"resources", "vms", "hosts"})
"""Lists in which the name of a fleet stands for its members."""


def with_members(tree: ParsedTree, source: str) -> ParsedTree:
    """Return the tree of a campaign with all members of its fleets in place of the fleets.

    Raise ``InvalidInput`` if a fleet cannot be read: all names of its members would be unknown.
    """
    root = tree.root
    if not isinstance(root, dict) or "fleet" not in root:
        return tree
    rest = {key: value for key, value in root.items() if key != "fleet"}
    found = Diagnostics()
    check_types(root["fleet"], CampaignFleets, found.below("fleet"))
    if found:
        raise InvalidInput(source, found.problems(tree.line_of))
    expansion = _Expansion(msgspec.convert(root["fleet"], CampaignFleets))
    expanded = expansion.apply(rest)
    moved = expansion.moved

    def line_of(path: KeyPath) -> int | None:
        for depth in range(len(path), 0, -1):
            if path[:depth] in moved:
                return tree.line_of((*moved[path[:depth]], *path[depth:])) or tree.line_of(
                    moved[path[:depth]]
                )
        return tree.line_of(path)

    return ParsedTree(expanded, line_of, tree.diagnostics)


class _Expansion:
    """The members of all fleets, and where they come from."""

    def __init__(self, fleets: CampaignFleets) -> None:
        self._fleets = fleets
        self.members: dict[str, list[str]] = {}
        """The members of each fleet; of the resources of hosts by ``fleet-resource``."""
        self.moved: dict[KeyPath, KeyPath] = {}
        """The path in the file of each part that moves, by its new path."""
        for hosts in fleets.hosts:
            names = list(_names(hosts.like.id, hosts.count))
            self.members[hosts.like.id] = names
            for resource in hosts.resources:
                joined = [f"{name}-{resource.id}" for name in names]
                self.members[f"{hosts.like.id}-{resource.id}"] = joined
        for equal in fleets.resources:
            self.members[equal.like.id] = list(_names(equal.like.id, equal.count))
        for vms in fleets.vms:
            self.members[vms.like.id] = list(_names(vms.like.id, vms.count))

    def apply(self, root: dict[str, Any]) -> dict[str, Any]:
        """Return the document with all members, and with members in place of names of fleets."""
        root = self._with_names_replaced(root, ())
        cluster = root.get("cluster", {})
        if not isinstance(cluster, dict):
            return root
        added = {
            "hosts": list(self._hosts()),
            "resources": list(self._resources()),
            "vms": list(self._vms()),
            "dependencies": list(self._dependencies()),
        }
        cluster = dict(cluster)
        for key, entries in added.items():
            own = cluster.get(key) or []
            if entries and isinstance(own, list):
                for position, (_, source) in enumerate(entries, len(own)):
                    self.moved["cluster", key, position] = source
                cluster[key] = [*own, *(value for value, _ in entries)]
        return {**root, "cluster": cluster}

    def _with_names_replaced(self, node: Any, path: KeyPath) -> Any:
        if isinstance(node, dict):
            return {
                key: self._replaced(value, (*path, key))
                if key in _MEMBER_LISTS
                else self._with_names_replaced(value, (*path, key))
                for key, value in node.items()
            }
        if isinstance(node, list):
            return [
                self._with_names_replaced(value, (*path, position))
                for position, value in enumerate(node)
            ]
        return node

    def _replaced(self, value: Any, path: KeyPath) -> Any:
        if not isinstance(value, list) or not any(
            isinstance(name, str) and name in self.members for name in value
        ):
            return self._with_names_replaced(value, path)
        replaced: list[Any] = []
        for position, name in enumerate(value):
            for member in self.members.get(name, [name]) if isinstance(name, str) else [name]:
                self.moved[*path, len(replaced)] = (*path, position)
                replaced.append(member)
        return replaced

    def _hosts(self) -> Iterator[tuple[Any, KeyPath]]:
        for position, fleet in enumerate(self._fleets.hosts):
            for name in self.members[fleet.like.id]:
                yield _plain(fleet.like, id=name), ("fleet", "hosts", position, "like")

    def _resources(self) -> Iterator[tuple[Any, KeyPath]]:
        for position, fleet in enumerate(self._fleets.hosts):
            yield from self._resources_of_hosts(position, fleet)
        for position, equal in enumerate(self._fleets.resources):
            for name in self.members[equal.like.id]:
                yield _plain(equal.like, id=name), ("fleet", "resources", position, "like")

    def _resources_of_hosts(
        self, position: int, fleet: EqualHosts
    ) -> Iterator[tuple[Any, KeyPath]]:
        for host in self.members[fleet.like.id]:
            for index, resource in enumerate(fleet.resources):
                source = ("fleet", "hosts", position, "resources", index)
                yield _plain(resource, id=f"{host}-{resource.id}", host=host), source

    def _vms(self) -> Iterator[tuple[Any, KeyPath]]:
        for position, fleet in enumerate(self._fleets.vms):
            hosts = [host for name in fleet.hosts for host in self.members.get(name, [name])]
            for number, name in enumerate(self.members[fleet.like.id]):
                host = hosts[number % len(hosts)]
                yield _plain(fleet.like, id=name, host=host), ("fleet", "vms", position, "like")

    def _dependencies(self) -> Iterator[tuple[Any, KeyPath]]:
        for position, equal in enumerate(self._fleets.resources):
            source: KeyPath = ("fleet", "resources", position)
            yield from ((pair, (*source, "peers")) for pair in self._peers(equal))
        for position, dependency in enumerate(self._fleets.dependencies):
            like = dependency.like
            for dependent, sponsor in self._ends(dependency):
                value = _plain(like, dependent=dependent, sponsor=sponsor)
                yield value, ("fleet", "dependencies", position, "like")

    def _peers(self, equal: EqualResources) -> Iterator[dict[str, Any]]:
        if equal.peers is None:
            return
        members = self.members[equal.like.id]
        for number, first in enumerate(members):
            for second in members[number + 1 :]:
                yield {
                    "dependent": first,
                    "sponsor": second,
                    "kind": equal.peers.value,
                    "presence": "current_future",
                }

    def _ends(self, dependency: FleetDependency) -> Iterable[tuple[str, str]]:
        like = dependency.like
        dependents = self.members.get(like.dependent, [like.dependent])
        sponsors = self.members.get(like.sponsor, [like.sponsor])
        match dependency.spread:
            case DependencySpread.EVENLY:
                return (
                    (name, sponsors[number % len(sponsors)])
                    for number, name in enumerate(dependents)
                )
            case DependencySpread.PAIRS:
                return zip(dependents, sponsors, strict=False)
        return product(dependents, sponsors)


def _names(fleet: str, count: int) -> Iterator[str]:
    return (fleet_member_id(fleet, number, count) for number in range(1, count + 1))


def _plain(value: msgspec.Struct, **changes: str) -> Mapping[str, Any]:
    """Return a value as the mapping that a file would have."""
    plain: dict[str, Any] = msgspec.to_builtins(value)
    return plain | changes
