"""Large collections that are updated member by member.

``sum([cons(v, "memory") . v : vms, runs(v)])`` reads every VM. When one VM changes, only the
contribution of that VM changes. An incremental collection keeps the contribution of each member
and what it has read, computes again only what was touched, and can evaluate an overlay: a state
that differs from the present one in a few VMs and hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.draft import TouchedEntities
from equipoise.spec.evaluate.domains import in_order
from equipoise.spec.evaluate.view import EvaluationContext, ReadSet

INCREMENTAL_SIZE_MIN: Final = 16
"""Smaller collections are computed again each time, which is cheaper."""

Contribution = tuple[Any, ...]


class Comprehension(NamedTuple):
    """A collection by rule: what each member of its first domain contributes."""

    term: int
    """The identity of the term."""
    is_set: bool
    contribution_of: Callable[[EvaluationContext, list[Any]], Contribution]
    """Takes the bindings around the term, followed by the member."""


class IncrementalCollection:
    """A collection by rule over a set, with the contribution of each member of the set."""

    def __init__(self, comprehension: Comprehension, bindings: list[Any]) -> None:
        self._comprehension = comprehension
        self._bindings = bindings
        self._domain: frozenset[Any] = frozenset()
        self._contributions: dict[Any, Contribution] = {}
        self._by_vm: dict[VmId, set[Any]] = {}
        self._by_host: dict[HostId, set[Any]] = {}
        self._seen: dict[Any, ReadSet] = {}
        self._dirty: set[Any] = set()
        self._counts: Counter[Any] = Counter()
        self._size = 0
        self._total: int | None = None
        self._whole: Any = None

    def touch(self, touched: TouchedEntities) -> None:
        """Mark what was touched; contributions that depend on it are computed on the next use."""
        self._dirty |= self.depending(touched)

    def depending(self, touched: TouchedEntities) -> set[Any]:
        """Return the members whose contributions depend on what was touched."""
        members: set[Any] = set()
        for vm in touched.vms:
            members |= self._by_vm.get(vm, set())
        for host in touched.hosts:
            members |= self._by_host.get(host, set())
        return members

    def refresh(self, domain: frozenset[Any], context: EvaluationContext, reads: ReadSet) -> None:
        """Bring all contributions up to date with the current state of a context."""
        # Identity first: comparing two large sets is as expensive as walking over them.
        if domain is not self._domain and domain != self._domain:
            for member in self._domain - domain:
                self._put(member, ())
                del self._contributions[member]
            self._dirty |= domain - self._domain
            # A list has the order of its domain, so the contributions are kept in that order.
            self._contributions = {
                member: self._contributions.get(member, ()) for member in in_order(domain)
            }
            self._domain, self._whole = domain, None
        for member in in_order(self._dirty & domain):
            contribution, seen = self._contribution(member, context)
            self._note(member, seen)
            self._put(member, contribution)
            # Also of an unchanged contribution: a later change of what it read counts.
            reads.add(seen)
        self._dirty = set()

    def overlay(self, context: EvaluationContext, touched: TouchedEntities) -> CollectionOverlay:
        """Return what differs in the current state of a context, if only this was touched."""
        # Members that are still dirty differ from the stored contributions too, for another reason:
        # the real state has changed since the last refresh.
        changed, reads = {}, ReadSet()
        for member in in_order((self._dirty | self.depending(touched)) & self._domain):
            contribution, seen = self._contribution(member, context)
            # Only reads that are new matter: the index already has the others.
            known = self._seen[member]
            reads.vms |= seen.vms - known.vms
            reads.hosts |= seen.hosts - known.hosts
            if contribution != self._contributions[member]:
                changed[member] = contribution
        return CollectionOverlay(self, changed, reads)

    def covers(self, domain: frozenset[Any]) -> bool:
        """Whether it was computed for this domain."""
        return domain is self._domain or domain == self._domain

    def _contribution(
        self, member: Any, context: EvaluationContext
    ) -> tuple[Contribution, ReadSet]:
        """Return the contribution of a member, and what it depends on."""
        outer, collections = context.now.reads, context.collections
        context.now.reads = own = ReadSet()
        context.collections = None  # a nested collection would hide what it reads
        try:
            return self._comprehension.contribution_of(context, [*self._bindings, member]), own
        finally:
            context.now.reads, context.collections = outer, collections

    def whole(self) -> Any:
        """Return the collection."""
        if self._whole is None:
            every = chain.from_iterable(self._contributions.values())
            self._whole = frozenset(self._counts) if self._comprehension.is_set else tuple(every)
        return self._whole

    def card(self) -> int:
        """Return the number of members."""
        return len(self._counts) if self._comprehension.is_set else self._size

    def total(self) -> int:
        """Return the sum of the members, which are numbers."""
        if self._total is None:
            self._total = sum(map(sum, self._contributions.values()))
        return self._total

    def _put(self, member: Any, contribution: Contribution) -> None:
        before = self._contributions.get(member, ())
        if contribution == before:
            return
        self._contributions[member] = contribution
        self._whole = None
        self._size += len(contribution) - len(before)
        if self._total is not None:
            self._total += sum(contribution) - sum(before)
        if self._comprehension.is_set:
            _count(self._counts, before, contribution)

    def _note(self, member: Any, reads: ReadSet) -> None:
        # Entries are never removed: an old one costs one needless evaluation, a missing one would
        # leave a stale value.
        self._seen.setdefault(member, ReadSet()).add(reads)
        for vm in reads.vms:
            self._by_vm.setdefault(vm, set()).add(member)
        for host in reads.hosts:
            self._by_host.setdefault(host, set()).add(member)


class CollectionOverlay:
    """A collection as it would be with some contributions changed."""

    def __init__(
        self,
        collection: IncrementalCollection,
        contributions: dict[Any, Contribution],
        reads: ReadSet,
    ) -> None:
        self._base = collection
        self._contributions = contributions
        self.reads = reads
        """What the overlay has read that the collection never read."""

    def __bool__(self) -> bool:
        return bool(self._contributions)

    def whole(self) -> Any:
        """Return the collection."""
        if not self._contributions:
            return self._base.whole()
        contributions = {**self._base._contributions, **self._contributions}
        every = chain.from_iterable(contributions.values())
        return frozenset(every) if self._base._comprehension.is_set else tuple(every)

    def card(self) -> int:
        """Return the number of members."""
        if not self._base._comprehension.is_set:
            return self._base.card() + sum(len(new) - len(old) for old, new in self._pairs())
        delta: Counter[Any] = Counter()
        for old, new in self._pairs():
            _count(delta, old, new, keep=True)
        # A set counts equal contributions once, so only values that appear or vanish matter.
        counts = self._base._counts
        return len(counts) + sum(
            bool(counts[value] + change) - bool(counts[value]) for value, change in delta.items()
        )

    def total(self) -> int:
        """Return the sum of the members."""
        return self._base.total() + sum(sum(new) - sum(old) for old, new in self._pairs())

    def _pairs(self) -> Iterator[tuple[Contribution, Contribution]]:
        return (
            (self._base._contributions[member], new) for member, new in self._contributions.items()
        )


class CollectionCache:
    """The incremental collections of one cell, by the term and the bindings around it."""

    def __init__(self) -> None:
        self._collections: dict[Any, IncrementalCollection] = {}
        self._overlay: TouchedEntities | None = None
        self.reads = ReadSet()
        """What the contributions read that were computed since the cell was last judged."""

    def __bool__(self) -> bool:
        return bool(self._collections)

    def touch(self, touched: TouchedEntities) -> None:
        """Mark what has changed since the cell was judged."""
        for collection in self._collections.values():
            collection.touch(touched)

    def overlaid(self, touched: TouchedEntities) -> CollectionCache:
        """Return the same cache for a state that differs in what is touched."""
        other = CollectionCache()
        other._collections, other._overlay = self._collections, touched
        return other

    def lookup(
        self,
        comprehension: Comprehension,
        domain: Any,
        bindings: list[Any],
        context: EvaluationContext,
    ) -> IncrementalCollection | CollectionOverlay | None:
        """Return the collection of a term in a context; ``None`` if it cannot be cached."""
        if not isinstance(domain, frozenset) or len(domain) < INCREMENTAL_SIZE_MIN:
            return None
        key = (comprehension.term, *bindings)
        collection = self._collections.get(key)
        if self._overlay is not None:
            # The overlay adds or removes VMs: contributions of the present domain are of no use.
            if collection is None or not collection.covers(domain):
                return None
            changes = collection.overlay(context, self._overlay)
            context.now.reads.add(changes.reads)
            return changes
        if collection is None:
            collection = self._collections[key] = IncrementalCollection(comprehension, bindings)
        collection.refresh(domain, context, self.reads)
        return collection

    def contributions_touched(self, touched: TouchedEntities) -> frozenset[tuple[int, Any]]:
        """Return the contributions that depend on what is touched, by collection and member."""
        return frozenset(
            (index, member)
            for index, collection in enumerate(self._collections.values())
            for member in collection.depending(touched)
        )

    def would_change(self, context: EvaluationContext, touched: TouchedEntities) -> bool:
        """Whether a contribution would be different in the current state of a context."""
        return any(
            collection.overlay(context, touched) for collection in self._collections.values()
        )


def _count(
    counts: Counter[Any], old: Iterable[Any], new: Iterable[Any], *, keep: bool = False
) -> None:
    # An overlay keeps entries of zero and below: its counter holds differences, not counts.
    for value in new:
        counts[value] += 1
    for value in old:
        counts[value] -= 1
        if not keep and not counts[value]:
            del counts[value]
