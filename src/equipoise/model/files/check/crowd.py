"""Crowds: the members of fleets, known by name. Never made, for there may be ten million."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

from equipoise.model.files.tree import Gap, Gaps
from equipoise.model.host import Host
from equipoise.model.story.fleet import member_id
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import Vm

_GUESSED_MAX: Final = 1000
"""So many members of a fleet are enough to guess from which one was meant."""
_DIGITS_MAX: Final = 9


class Named(Protocol):
    """Anything with an id."""

    @property
    def id(self) -> str:
        """Its name."""

    def but(self, **changes: Any) -> Self:
        """Give a changed copy."""


N = TypeVar("N", bound=Named)


@dataclass(frozen=True, slots=True)
class Fellows(Generic[N]):
    """The members of one fleet, and where it stands in its list."""

    place: int
    count: int
    like: N


class Crowd(Generic[N]):
    """All members of all fleets of one kind."""

    def __init__(
        self,
        counted: Sequence[tuple[int, N]] = (),
        gap: Gap | None = None,
        growing: Collection[str] = (),
    ) -> None:
        places = range(len(counted)) if gap is None else gap.places
        self.fleets: dict[str, Fellows[N]] = {}
        """By the id of the fleet; of two with the same id the first."""
        for place, (count, like) in zip(places, counted, strict=True):
            self.fleets.setdefault(like.id, Fellows(place, count, like))
        self.lost = frozenset(gap.lost_ids if gap else ())
        """Fleets that are listed but could not be read."""
        self.is_whole = gap is None
        self._growing = frozenset(growing)

    def __contains__(self, name: str) -> bool:
        return self.fellows(name) is not None or self._may_be_lost(name)

    def fellows(self, name: str) -> Fellows[N] | None:
        """The fleet that a name is a member of from the start, if there is one."""
        found = self.claimant(name)
        return found if found and int(name.rpartition("-")[2]) <= found.count else None

    def claimant(self, name: str) -> Fellows[N] | None:
        """The fleet that has a member of that name, or may get one as it grows."""
        fleet, _, digits = name.rpartition("-")
        found = self.fleets.get(fleet)
        if found is None or not _is_number(digits):
            return None
        number = int(digits)
        if number < 1 or (number > found.count and fleet not in self._growing):
            return None
        return found if member_id(fleet, number, found.count) == name else None

    def get(self, name: str) -> N | None:
        """A member by its name."""
        found = self.fellows(name)
        return None if found is None else found.like.but(id=name)

    def names(self) -> Iterator[str]:
        """The members of each fleet, not all of them if they are many."""
        for fleet, fellows in self.fleets.items():
            numbers = range(1, min(fellows.count, _GUESSED_MAX) + 1)
            yield from (member_id(fleet, number, fellows.count) for number in numbers)

    def _may_be_lost(self, name: str) -> bool:
        fleet, _, digits = name.rpartition("-")
        return fleet in self.lost and _is_number(digits)


class Crowds(NamedTuple):
    """The fleets of hosts and those of VMs."""

    hosts: Crowd[Host]
    vms: Crowd[Vm]

    @classmethod
    def of(cls, scenario: Scenario, gaps: Gaps) -> Crowds:
        """What a scenario has in numbers, as far as it could be read."""
        fleet, unrest = scenario.fleet, scenario.unrest
        return cls(
            Crowd(
                [(one.count, one.like) for one in fleet.hosts],
                gaps.get(("fleet", "hosts")),
                [churn.fleet for churn in unrest.hosts],
            ),
            Crowd(
                [(one.count, one.like) for one in fleet.vms],
                gaps.get(("fleet", "vms")),
                [*(one.fleet for one in unrest.vms), *(one.fleet for one in unrest.scaling)],
            ),
        )


NOBODY: Final = Crowds(Crowd(), Crowd())


def _is_number(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX
