"""Arbitration: when two proposals want opposite things, the more urgent one wins.

Repair a broken rule, then upgrade, then wake hosts, then balance, then put hosts to sleep. What is
dropped is said, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from equipoise.model.action import describe, footprint
from equipoise.model.plan import Intent, Proposal, Purpose, Rejection
from equipoise.model.quantity import HostId, PlanId, RuleId, StepId, VmId


class Arbitration(NamedTuple):
    """What is left of all that was wanted, and what is not."""

    intents: tuple[Intent, ...]
    dropped: tuple[Rejection, ...]
    mends: tuple[RuleId, ...] = ()
    """The broken rules that are mended by what is left."""


def arbitrate(proposals: Iterable[Proposal], plan: PlanId) -> Arbitration:
    """Merge proposals into one list of intents that do not contradict each other."""
    claims = _Claims()
    intents: list[Intent] = []
    dropped: list[Rejection] = []
    mends: list[RuleId] = []
    in_order = sorted(proposals, key=lambda one: one.purpose)
    for proposal, name in zip(in_order, _names(in_order), strict=True):
        refused = _refused(proposal, claims)
        kept = [intent for intent in proposal.intents if intent.id not in refused]
        for intent in kept:
            claims.add(intent, proposal.decider)
        intents += (_named(intent, f"{plan}/{name}/") for intent in kept)
        dropped += refused.values()
        mends += () if refused else proposal.mends
    return Arbitration(tuple(intents), tuple(dropped), tuple(dict.fromkeys(mends)))


def _names(proposals: Sequence[Proposal]) -> Iterator[str]:
    """The deciders' names, numbered where one has made several proposals."""
    times: Counter[str] = Counter()
    for proposal in proposals:
        times[proposal.decider] += 1
        number = times[proposal.decider]
        yield proposal.decider if number == 1 else f"{proposal.decider}.{number}"


def _refused(proposal: Proposal, claims: _Claims) -> dict[StepId, Rejection]:
    """The intents of a proposal that cannot stay, and those that fall with them."""
    refused: dict[StepId, Rejection] = {}
    for intent in proposal.intents:
        for detail in claims.against(intent):
            refused.setdefault(intent.id, _rejection(intent, "conflict", detail))
    if refused and proposal.whole:
        cause = next(iter(refused.values())).detail
        for intent in proposal.intents:
            detail = f"is only worth doing as a whole, and {cause}"
            refused.setdefault(intent.id, _rejection(intent, "whole", detail))
    for intent in _useless(proposal, refused):
        detail = "empties a host that is not put to sleep now"
        refused[intent.id] = _rejection(intent, "useless", detail)
    for intent, before in _fallen(proposal.intents, refused):
        detail = f"needs {before}, which was dropped"
        refused[intent.id] = _rejection(intent, "prerequisite", detail)
    return refused


def _useless(proposal: Proposal, refused: dict[StepId, Rejection]) -> list[Intent]:
    """What would only be done so that a host can sleep which cannot."""
    if proposal.purpose is not Purpose.SLEEP:
        return []
    lost = {step for one in proposal.intents if one.id in refused for step in one.after}
    needed = {step for one in proposal.intents if one.id not in refused for step in one.after}
    return [one for one in proposal.intents if one.id in lost - needed and one.id not in refused]


def _fallen(
    intents: Sequence[Intent], refused: dict[StepId, Rejection]
) -> Iterator[tuple[Intent, StepId]]:
    """Intents that need a refused one, directly or not; the caller adds them as they come."""
    found = True
    while found:
        found = False
        for intent in intents:
            before = next((step for step in intent.after if step in refused), None)
            if before is not None and intent.id not in refused:
                found = True
                yield intent, before


def _rejection(intent: Intent, code: str, detail: str) -> Rejection:
    return Rejection(subject=describe(intent.action), code=code, detail=detail)


def _named(intent: Intent, prefix: str) -> Intent:
    """Step ids are unique in a journal; those of an intent only within its proposal."""
    return intent.but(
        id=StepId(prefix + intent.id), after=tuple(StepId(prefix + one) for one in intent.after)
    )


class _Claims:
    """Which decider already does something to which VM or host.

    A VM belongs to one decider. A host may be used by many, or be switched by one.
    """

    def __init__(self) -> None:
        self._vms: dict[VmId, str] = {}
        self._used: dict[HostId, str] = {}
        self._switched: dict[HostId, str] = {}

    def add(self, intent: Intent, decider: str) -> None:
        seen = footprint(intent.action)
        if seen.vm is not None:
            self._vms.setdefault(seen.vm, decider)
        for host in seen.hosts:
            self._used.setdefault(host, decider)
        if seen.switched is not None:
            self._switched.setdefault(seen.switched, decider)

    def against(self, intent: Intent) -> Iterator[str]:
        seen = footprint(intent.action)
        if seen.vm in self._vms:
            yield f"{self._vms[seen.vm]} already does something with {seen.vm}"
        for host in seen.hosts:
            if host in self._switched:
                yield f"{self._switched[host]} switches {host}"
        if seen.switched in self._used:
            yield f"{self._used[seen.switched]} uses {seen.switched}"
