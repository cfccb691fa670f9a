"""The roster: every list of an inventory with the places of its elements, and all names by id."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from equipoise.model.files.check.crowd import NOBODY, Crowd, Crowds, N
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gap, Gaps
from equipoise.model.files.words import Path, quoted
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.pool import Pool
from equipoise.model.resource import Dependency, Resource, ResourceGroup
from equipoise.model.rule import Rule
from equipoise.model.tenant import Tenant
from equipoise.model.vm import Vm

T = TypeVar("T")


class Elements(Generic[T]):
    """The elements of one list, each with its place in the file."""

    def __init__(self, items: Sequence[T], gap: Gap | None) -> None:
        self.items = items
        self.is_whole = gap is None
        self.places: Sequence[int] = range(len(items)) if gap is None else gap.places

    def __iter__(self) -> Iterator[tuple[int, T]]:
        return zip(self.places, self.items, strict=True)


class NamedElements(Elements[N]):
    """Elements that others may name."""

    def __init__(
        self,
        noun: str,
        path: Path,
        items: Sequence[N],
        gap: Gap | None,
        crowd: Crowd[N] | None = None,
    ) -> None:
        super().__init__(items, gap)
        self.noun = noun
        self.path = path
        self.crowd: Crowd[N] = Crowd() if crowd is None else crowd
        """Those that are not listed one by one."""
        self.by_id: dict[str, N | None] = {item.id: item for item in items}
        """``None`` stands for one that is listed but could not be read."""
        self._has_doubled = len(self.by_id) < len(items)
        for lost in gap.lost_ids if gap else ():
            self.by_id.setdefault(lost, None)

    def __contains__(self, name: str) -> bool:
        return name in self.by_id or name in self.crowd

    def get(self, name: str) -> N | None:
        """The element of that name, if there is one and it could be read."""
        return self.by_id[name] if name in self.by_id else self.crowd.get(name)

    @cached_property
    def known(self) -> Collection[str]:
        """All names, to guess from which one was meant."""
        return [*self.by_id, *self.crowd.names()] if self.crowd.fleets else self.by_id.keys()

    def check(self, name: str, path: Path, found: Findings) -> bool:
        """Say whether a name stands for something, and find it wrong if not."""
        if name in self:
            return True
        found.add_unknown(path, self.noun, name, self.known)
        return False

    def check_ids(self, found: Findings) -> None:
        """Find every element that has the id of an earlier one."""
        if not self._has_doubled:
            return
        first: dict[str, int] = {}
        for place, item in self:
            if item.id in first:
                what = f"the id {quoted(item.id)} is taken by"
                found.add(
                    (*self.path, place, "id"),
                    what,
                    "every id once",
                    first=(*self.path, first[item.id], "id"),
                )
            first.setdefault(item.id, place)


class Roster:
    """All lists of an inventory, and the crowds that a scenario adds to it."""

    def __init__(self, inventory: Inventory, gaps: Gaps, crowds: Crowds = NOBODY) -> None:
        def named(
            noun: str, key: str, items: Sequence[N], crowd: Crowd[N] | None = None
        ) -> NamedElements[N]:
            return NamedElements(noun, (key,), items, gaps.get((key,)), crowd)

        self.hosts: NamedElements[Host] = named("host", "hosts", inventory.hosts, crowds.hosts)
        self.vms: NamedElements[Vm] = named("VM", "vms", inventory.vms, crowds.vms)
        self.pools: NamedElements[Pool] = named("pool", "pools", inventory.pools)
        self.rules: NamedElements[Rule] = named("rule", "rules", inventory.rules)
        self.tenants: NamedElements[Tenant] = named("tenant", "tenants", inventory.tenants)
        self.resources: NamedElements[Resource] = named(
            "resource", "resources", inventory.resources
        )
        self.groups: NamedElements[ResourceGroup] = named("group", "groups", inventory.groups)
        self.dependencies: Elements[Dependency] = Elements(
            inventory.dependencies, gaps.get(("dependencies",))
        )
        self.balance = inventory.balance
        self.power = inventory.power

    @property
    def named(self) -> tuple[NamedElements[Any], ...]:
        """Those lists whose elements have ids."""
        return (
            self.hosts, self.vms, self.pools, self.rules, self.tenants, self.resources, self.groups,
        )  # fmt: skip


def check_members(
    members: Iterable[str], known: NamedElements[N], path: Path, found: Findings
) -> None:
    """Find members that do not exist, and those that are named twice."""
    first: dict[str, int] = {}
    for place, member in enumerate(members):
        if member in first:
            what = f"{quoted(member)} is named twice, first by"
            found.add((*path, place), what, "once is enough", first=(*path, first[member]))
        elif known.check(member, (*path, place), found):
            first[member] = place
