"""Large collections, kept up to date member by member.

``sum([cons(v, "memory") . v : vms, runs(v)])`` looks at every VM; but when one VM has changed, only
its share has. A tally keeps the share of each member with what it was decided by, computes again
the shares that something has touched, and can say what the whole would be in a state that is only
imagined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from equipoise.model.change.draft import Touched
from equipoise.model.quantity import HostId, VmId
from equipoise.spec.choose import in_order
from equipoise.spec.view import Frame, Reads

WORTHWHILE: Final = 16
"""Smaller collections are cheaper to compute anew."""

Share = tuple[Any, ...]


class Rule(NamedTuple):
    """A collection by rule: what each member of its first domain contributes."""

    term: int
    """The identity of the term."""
    is_set: bool
    share_of: Callable[[Frame, list[Any]], Share]
    """Takes the values around the term, and the member after them."""


class Tally:
    """A collection by rule over a set, and the share that each member of the set has in it."""

    def __init__(self, rule: Rule, places: list[Any]) -> None:
        self._rule = rule
        self._places = places
        self._domain: frozenset[Any] = frozenset()
        self._shares: dict[Any, Share] = {}
        self._by_vm: dict[VmId, set[Any]] = {}
        self._by_host: dict[HostId, set[Any]] = {}
        self._seen: dict[Any, Reads] = {}
        self._dirty: set[Any] = set()
        self._counts: Counter[Any] = Counter()
        self._size = 0
        self._total: int | None = None
        self._whole: Any = None

    def touch(self, touched: Touched) -> None:
        """Note what has changed; the shares that depend on it are computed when asked for."""
        self._dirty |= self.depending(touched)

    def depending(self, touched: Touched) -> set[Any]:
        """The members whose shares were decided by something that is touched."""
        found: set[Any] = set()
        for vm in touched.vms:
            found |= self._by_vm.get(vm, set())
        for host in touched.hosts:
            found |= self._by_host.get(host, set())
        return found

    def refresh(self, domain: frozenset[Any], frame: Frame, reads: Reads) -> None:
        """Bring all shares up to date with the present state of a frame."""
        if domain is not self._domain and domain != self._domain:
            for member in self._domain - domain:
                self._put(member, ())
                del self._shares[member]
            self._dirty |= domain - self._domain
            self._shares = {one: self._shares.get(one, ()) for one in in_order(domain)}
            self._domain, self._whole = domain, None
        for member in in_order(self._dirty & domain):
            share, seen = self._share(member, frame)
            self._note(member, seen)
            self._put(member, share)
            reads.add(seen)
        self._dirty = set()

    def imagine(self, frame: Frame, touched: Touched) -> Changes:
        """What would be different in the present of a frame, if only this was touched."""
        changed, reads = {}, Reads()
        for member in in_order((self._dirty | self.depending(touched)) & self._domain):
            share, seen = self._share(member, frame)
            known = self._seen[member]
            reads.vms |= seen.vms - known.vms
            reads.hosts |= seen.hosts - known.hosts
            if share != self._shares[member]:
                changed[member] = share
        return Changes(self, changed, reads)

    def is_over(self, domain: frozenset[Any]) -> bool:
        """Whether it was made for this domain."""
        return domain is self._domain or domain == self._domain

    def _share(self, member: Any, frame: Frame) -> tuple[Share, Reads]:
        """The share of a member, and what it was decided by."""
        outer, memory = frame.now.reads, frame.memory
        frame.now.reads = own = Reads()
        frame.memory = None  # a tally within a share would keep to itself what it has looked at
        try:
            return self._rule.share_of(frame, [*self._places, member]), own
        finally:
            frame.now.reads, frame.memory = outer, memory

    def whole(self) -> Any:
        """The collection."""
        if self._whole is None:
            every = chain.from_iterable(self._shares.values())
            self._whole = frozenset(self._counts) if self._rule.is_set else tuple(every)
        return self._whole

    def card(self) -> int:
        """How many there are."""
        return len(self._counts) if self._rule.is_set else self._size

    def total(self) -> int:
        """All of them together, if they are numbers."""
        if self._total is None:
            self._total = sum(map(sum, self._shares.values()))
        return self._total

    def _put(self, member: Any, share: Share) -> None:
        before = self._shares.get(member, ())
        if share == before:
            return
        self._shares[member] = share
        self._whole = None
        self._size += len(share) - len(before)
        if self._total is not None:
            self._total += sum(share) - sum(before)
        if self._rule.is_set:
            _count(self._counts, before, share)

    def _note(self, member: Any, reads: Reads) -> None:
        self._seen.setdefault(member, Reads()).add(reads)
        for vm in reads.vms:
            self._by_vm.setdefault(vm, set()).add(member)
        for host in reads.hosts:
            self._by_host.setdefault(host, set()).add(member)


class Changes:
    """A tally as it would be with some shares changed."""

    def __init__(self, tally: Tally, shares: dict[Any, Share], reads: Reads) -> None:
        self._tally = tally
        self._shares = shares
        self.reads = reads
        """What was looked at to find out, and never before."""

    def __bool__(self) -> bool:
        return bool(self._shares)

    def whole(self) -> Any:
        """The collection."""
        if not self._shares:
            return self._tally.whole()
        shares = {**self._tally._shares, **self._shares}
        every = chain.from_iterable(shares.values())
        return frozenset(every) if self._tally._rule.is_set else tuple(every)

    def card(self) -> int:
        """How many there are."""
        if not self._tally._rule.is_set:
            return self._tally.card() + sum(len(new) - len(old) for old, new in self._pairs())
        delta: Counter[Any] = Counter()
        for old, new in self._pairs():
            _count(delta, old, new, keep=True)
        counts = self._tally._counts
        return len(counts) + sum(
            bool(counts[one] + more) - bool(counts[one]) for one, more in delta.items()
        )

    def total(self) -> int:
        """All of them together."""
        return self._tally.total() + sum(sum(new) - sum(old) for old, new in self._pairs())

    def _pairs(self) -> Iterator[tuple[Share, Share]]:
        return ((self._tally._shares[one], new) for one, new in self._shares.items())


class Memory:
    """The tallies of one cell, by the term and the values around it."""

    def __init__(self) -> None:
        self._tallies: dict[Any, Tally] = {}
        self._imagined: Touched | None = None
        self.reads = Reads()
        """What the shares that were computed lately have looked at."""

    def __bool__(self) -> bool:
        return bool(self._tallies)

    def touch(self, touched: Touched) -> None:
        """Note what has changed since the cell was judged."""
        for tally in self._tallies.values():
            tally.touch(touched)

    def imagining(self, touched: Touched) -> Memory:
        """The same memory for a look at a state in which something more is touched."""
        other = Memory()
        other._tallies, other._imagined = self._tallies, touched
        return other

    def recall(
        self, rule: Rule, domain: Any, places: list[Any], frame: Frame
    ) -> Tally | Changes | None:
        """The tally of a term in the present of a frame; none if it must be computed plainly."""
        if not isinstance(domain, frozenset) or len(domain) < WORTHWHILE:
            return None
        key = (rule.term, *places)
        found = self._tallies.get(key)
        if self._imagined is not None:
            if found is None or not found.is_over(domain):
                return None
            changes = found.imagine(frame, self._imagined)
            frame.now.reads.add(changes.reads)
            return changes
        if found is None:
            found = self._tallies[key] = Tally(rule, places)
        found.refresh(domain, frame, self.reads)
        return found

    def shares_touched(self, touched: Touched) -> frozenset[tuple[int, Any]]:
        """The shares that depend on what is touched, each by its tally and its member."""
        return frozenset(
            (place, member)
            for place, tally in enumerate(self._tallies.values())
            for member in tally.depending(touched)
        )

    def would_change(self, frame: Frame, touched: Touched) -> bool:
        """Whether any share would be another one in the present of a frame."""
        return any(tally.imagine(frame, touched) for tally in self._tallies.values())


def _count(
    counts: Counter[Any], old: Iterable[Any], new: Iterable[Any], *, keep: bool = False
) -> None:
    for one in new:
        counts[one] += 1
    for one in old:
        counts[one] -= 1
        if not keep and not counts[one]:
            del counts[one]
