"""References: which ids a file defines, in lists and by fleets, so that every name in it can be
resolved.

Also finds cycles of references. The members of a fleet are known by the pattern of their names and
never created, because there may be ten million of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

from equipoise.files.document import Gap, Gaps
from equipoise.model.diagnostics import Diagnostics, KeyPath, quoted
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory, Pool, Tenant
from equipoise.model.rule import Rule
from equipoise.model.scenario.scenario import Scenario, fleet_member_id
from equipoise.model.upgrade.infrastructure import Dependency, Resource, ResourceGroup
from equipoise.model.vm import Vm

K = TypeVar("K", bound=str)

_CYCLE_SHOWN_MAX: Final = 20


def find_cycles(edges: Mapping[K, Sequence[K]]) -> Iterator[list[K]]:
    """Yield cycles that share no node, until the rest of the graph has none.

    Each starts at its node that comes first in ``edges`` and follows the edges from there. So the
    result depends on the order of the file alone.
    """
    rank = {node: position for position, node in enumerate(edges)}
    remaining = {
        node: [other for other in others if other in rank] for node, others in edges.items()
    }
    while _prune_leaves(remaining):
        cycle = _walk_cycle(remaining)
        start = cycle.index(min(cycle, key=rank.__getitem__))
        for node in cycle:
            del remaining[node]
        yield cycle[start:] + cycle[:start]


def format_cycle(cycle: Sequence[str]) -> str:
    """Return a cycle as text that ends with its first node: ``a -> b -> a``."""
    middle = ["..."] if len(cycle) > _CYCLE_SHOWN_MAX else []
    return " -> ".join([*cycle[:_CYCLE_SHOWN_MAX], *middle, cycle[0]])


def _prune_leaves(remaining: dict[K, list[K]]) -> bool:
    """Remove nodes without edges until every node has one; return whether any node remains."""
    used_by: dict[K, list[K]] = {}
    for node, others in remaining.items():
        others[:] = [other for other in others if other in remaining]
        for other in others:
            used_by.setdefault(other, []).append(node)
    leaves = [node for node, others in remaining.items() if not others]
    count = {node: len(others) for node, others in remaining.items()}
    for node in leaves:  # the loop appends to the list it walks
        del remaining[node]
        for user in used_by.get(node, ()):
            count[user] -= 1
            if count[user] == 0:
                leaves.append(user)
    for others in remaining.values():
        others[:] = [other for other in others if other in remaining]
    return bool(remaining)


def _walk_cycle(remaining: Mapping[K, Sequence[K]]) -> list[K]:
    """Follow first edges until a node repeats. Every node must have an edge."""
    seen: dict[K, int] = {}
    node = next(iter(remaining))
    while node not in seen:
        seen[node] = len(seen)
        node = remaining[node][0]
    return list(seen)[seen[node] :]


_SUGGESTED_MAX: Final = 1000
"""So many members of a fleet are candidates for a suggestion."""
# More digits than any fleet has members; int() of a long text would be slow.
_DIGITS_MAX: Final = 9


class Named(Protocol):
    """Anything with an id."""

    @property
    def id(self) -> str:
        """The id."""

    def but(self, **changes: Any) -> Self:
        """Return a changed copy."""


N = TypeVar("N", bound=Named)


@dataclass(frozen=True, slots=True)
class FleetMembers(Generic[N]):
    """The members of one fleet, and the position of the fleet in its list."""

    position: int
    count: int
    like: N


class FleetIndex(Generic[N]):
    """All fleets of hosts, or all fleets of VMs, with the names of their members."""

    def __init__(
        self,
        counted: Sequence[tuple[int, N]] = (),
        gap: Gap | None = None,
        growing: Collection[str] = (),
    ) -> None:
        """``counted`` has size and template of each fleet; ``growing`` names those that grow."""
        positions = range(len(counted)) if gap is None else gap.positions
        self.fleets: dict[str, FleetMembers[N]] = {}
        """By the id of the fleet. Of two fleets with the same id, the first."""
        for position, (count, like) in zip(positions, counted, strict=True):
            self.fleets.setdefault(like.id, FleetMembers(position, count, like))
        self.unread = frozenset(gap.unread_ids if gap else ())
        """Fleets that are listed but could not be read."""
        self.is_whole = gap is None
        self._growing_fleets = frozenset(growing)

    def __contains__(self, name: str) -> bool:
        return self.fleet_of(name) is not None or self._may_be_unread(name)

    def fleet_of(self, name: str) -> FleetMembers[N] | None:
        """Return the fleet that has a member of that name from the start, if there is one."""
        members = self.claiming_fleet(name)
        return members if members and int(name.rpartition("-")[2]) <= members.count else None

    def claiming_fleet(self, name: str) -> FleetMembers[N] | None:
        """Return the fleet that has a member of that name, or may get one when it grows."""
        fleet, _, digits = name.rpartition("-")
        members = self.fleets.get(fleet)
        if members is None or not _is_member_number(digits):
            return None
        number = int(digits)
        # A fleet that grows may reach any number, so that a listed VM must not take one of them.
        if number < 1 or (number > members.count and fleet not in self._growing_fleets):
            return None
        return members if fleet_member_id(fleet, number, members.count) == name else None

    def get(self, name: str) -> N | None:
        """Return a member by its name."""
        members = self.fleet_of(name)
        return None if members is None else members.like.but(id=name)

    def names(self) -> Iterator[str]:
        """Yield the names of the members; of each fleet at most ``_SUGGESTED_MAX``."""
        for fleet, members in self.fleets.items():
            numbers = range(1, min(members.count, _SUGGESTED_MAX) + 1)
            yield from (fleet_member_id(fleet, number, members.count) for number in numbers)

    def _may_be_unread(self, name: str) -> bool:
        fleet, _, digits = name.rpartition("-")
        return fleet in self.unread and _is_member_number(digits)


class FleetIndexes(NamedTuple):
    """The fleets of hosts and those of VMs."""

    hosts: FleetIndex[Host]
    vms: FleetIndex[Vm]

    @classmethod
    def of(cls, scenario: Scenario, gaps: Gaps) -> FleetIndexes:
        """Return the indexes of the fleets of a scenario."""
        fleet, faults = scenario.fleet, scenario.faults
        return cls(
            FleetIndex(
                [(hosts.count, hosts.like) for hosts in fleet.hosts],
                gaps.get(("fleet", "hosts")),
                [churn.fleet for churn in faults.hosts],
            ),
            FleetIndex(
                [(vms.count, vms.like) for vms in fleet.vms],
                gaps.get(("fleet", "vms")),
                [
                    *(churn.fleet for churn in faults.vms),
                    *(scaling.fleet for scaling in faults.scaling),
                ],
            ),
        )


NO_FLEETS: Final = FleetIndexes(FleetIndex(), FleetIndex())


def _is_member_number(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX


T = TypeVar("T")


class ListElements(Generic[T]):
    """The elements of one list, each with its position in the list of the file."""

    def __init__(self, items: Sequence[T], gap: Gap | None) -> None:
        self.items = items
        self.is_whole = gap is None
        self.positions: Sequence[int] = range(len(items)) if gap is None else gap.positions

    def __iter__(self) -> Iterator[tuple[int, T]]:
        return zip(self.positions, self.items, strict=True)


class NamedElements(ListElements[N]):
    """Elements with ids, to which other elements may refer."""

    def __init__(
        self,
        noun: str,
        path: KeyPath,
        items: Sequence[N],
        gap: Gap | None,
        fleet_index: FleetIndex[N] | None = None,
    ) -> None:
        super().__init__(items, gap)
        self.noun = noun
        self.path = path
        self.fleet_index: FleetIndex[N] = FleetIndex() if fleet_index is None else fleet_index
        """The elements that are not listed one by one."""
        self.by_id: dict[str, N | None] = {item.id: item for item in items}
        """An element that is listed but could not be read is ``None``."""
        self._has_duplicates = len(self.by_id) < len(items)
        for unread in gap.unread_ids if gap else ():
            # A reference to an element that could not be read is no second problem.
            self.by_id.setdefault(unread, None)

    def __contains__(self, name: str) -> bool:
        return name in self.by_id or name in self.fleet_index

    def get(self, name: str) -> N | None:
        """Return the element of that name, if it exists and could be read."""
        return self.by_id[name] if name in self.by_id else self.fleet_index.get(name)

    @cached_property
    def known(self) -> Collection[str]:
        """All names, as candidates for a suggestion."""
        return (
            [*self.by_id, *self.fleet_index.names()]
            if self.fleet_index.fleets
            else self.by_id.keys()
        )

    def check(self, name: str, path: KeyPath, diagnostics: Diagnostics) -> bool:
        """Return whether an element has that name; report the name if not."""
        if name in self:
            return True
        diagnostics.add_unknown(path, self.noun, name, self.known)
        return False

    def check_ids(self, diagnostics: Diagnostics) -> None:
        """Report every element that has the id of an earlier one."""
        # The usual case costs one comparison of lengths.
        if not self._has_duplicates:
            return
        first: dict[str, int] = {}
        for position, item in self:
            if item.id in first:
                earlier: KeyPath = (*self.path, first[item.id], "id")
                report_taken_id(item.id, (*self.path, position, "id"), earlier, diagnostics)
            first.setdefault(item.id, position)


class InventoryIndex:
    """All lists of an inventory, and the fleets that a scenario adds to it."""

    def __init__(
        self, inventory: Inventory, gaps: Gaps, fleet_indexes: FleetIndexes = NO_FLEETS
    ) -> None:
        def named(
            noun: str, key: str, items: Sequence[N], fleet_index: FleetIndex[N] | None = None
        ) -> NamedElements[N]:
            return NamedElements(noun, (key,), items, gaps.get((key,)), fleet_index)

        self.hosts: NamedElements[Host] = named(
            "host", "hosts", inventory.hosts, fleet_indexes.hosts
        )
        self.vms: NamedElements[Vm] = named("VM", "vms", inventory.vms, fleet_indexes.vms)
        self.pools: NamedElements[Pool] = named("pool", "pools", inventory.pools)
        self.rules: NamedElements[Rule] = named("rule", "rules", inventory.rules)
        self.tenants: NamedElements[Tenant] = named("tenant", "tenants", inventory.tenants)
        self.resources: NamedElements[Resource] = named(
            "resource", "resources", inventory.resources
        )
        self.groups: NamedElements[ResourceGroup] = named("group", "groups", inventory.groups)
        self.dependencies: ListElements[Dependency] = ListElements(
            inventory.dependencies, gaps.get(("dependencies",))
        )
        self.balance = inventory.balance
        self.power = inventory.power

    @property
    def named(self) -> tuple[NamedElements[Any], ...]:
        """The lists whose elements have ids."""
        return (
            self.hosts, self.vms, self.pools, self.rules, self.tenants, self.resources, self.groups,
        )  # fmt: skip


def check_at_most(
    value: int | None,
    limit: int | None,
    excess: str,
    path: KeyPath,
    diagnostics: Diagnostics,
    other_cure: str = "",
) -> None:
    """Report a number above its limit; ``None`` for either is no problem."""
    if value is not None and limit is not None and value > limit:
        cure = f"at most {limit}{other_cure}"
        diagnostics.add(path, f"{value} {excess}", cure, code="out-of-range")


def report_taken_id(id_: str, path: KeyPath, earlier: KeyPath, diagnostics: Diagnostics) -> None:
    """Report an id that an earlier element has already."""
    what = f"the id {quoted(id_)} is already used by"
    diagnostics.add(path, what, "use every id once", earlier, code="duplicate-name")


def report_repeated(name: str, path: KeyPath, earlier: KeyPath, diagnostics: Diagnostics) -> None:
    """Report a name that a list has already."""
    what = f"{quoted(name)} is listed twice, first by"
    diagnostics.add(path, what, "list it once", earlier, code="duplicate-name")


def check_members(
    members: Iterable[str], known: NamedElements[N], path: KeyPath, diagnostics: Diagnostics
) -> None:
    """Report members that do not exist, and those that are listed twice."""
    first: dict[str, int] = {}
    for position, member in enumerate(members):
        here: KeyPath = (*path, position)
        if member in first:
            report_repeated(member, here, (*path, first[member]), diagnostics)
        elif known.check(member, here, diagnostics):
            first[member] = position
