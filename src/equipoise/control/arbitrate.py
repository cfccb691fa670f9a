"""Arbitration: of proposals in conflict, the more urgent one is kept.

The order is: restart lost VMs, repair a broken rule, upgrade, power hosts on, balance, power hosts
off. Every dropped intent is reported with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from equipoise.control.ports import Decider, PassConsumer, PassProvider
from equipoise.model.action import describe, footprint
from equipoise.model.plan import Intent, Proposal, Purpose, Rejection
from equipoise.model.quantity import HostId, PlanId, RuleId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot

if TYPE_CHECKING:
    from equipoise.balance.run_pass import PassResult


class Arbitration(NamedTuple):
    """The intents that remain, and those that were dropped."""

    intents: tuple[Intent, ...]
    dropped: tuple[Rejection, ...]
    repairs: tuple[RuleId, ...] = ()
    """The broken rules that the remaining intents repair."""


def ask_deciders(deciders: Iterable[Decider], snapshot: Snapshot) -> list[Proposal]:
    """Return the proposal of each decider, in their order.

    The balance pass of one decider is handed to those after it, so that it runs once per turn. It
    is no part of the proposal, because proposals are journalled.
    """
    proposals: list[Proposal] = []
    balance_pass: PassResult | None = None
    provider: tuple[int, PassProvider] | None = None
    power: Proposal | None = None
    for decider in deciders:
        if isinstance(decider, PassConsumer):
            power = decider.propose_from_pass(snapshot, balance_pass)
            proposals.append(power)
        elif isinstance(decider, PassProvider):
            provider = len(proposals), decider
            proposal, balance_pass = decider.propose_with_pass(snapshot)
            proposals.append(proposal)
        else:
            proposals.append(decider.propose(snapshot))
    # At the end, because power may come before balance.
    if provider is not None and power is not None and keeps_hosts_on(balance_pass, power):
        place, balance = provider
        proposals[place], _ = balance.propose_with_pass(snapshot, even=True)
    return proposals


_WAITING: Final = frozenset({"observing", "cooldown", "in-use", "move-limit"})
"""The codes with which power keeps a host on for a short time only."""


def keeps_hosts_on(balance_pass: PassResult | None, power: Proposal) -> bool:
    """Return whether power switches nothing, although balance left the load uneven for it.

    Balance moves no VM for an even load while a host looks spare. Rules, pinned VMs or the cost
    can keep that host on; without this, no decider would act.
    """
    if balance_pass is None or not balance_pass.withheld or power.intents or power.advised:
        return False
    return _WAITING.isdisjoint(rejection.code for rejection in power.rejected)


def arbitrate(proposals: Iterable[Proposal], plan: PlanId) -> Arbitration:
    """Merge proposals into one list of intents without conflicts."""
    claims = _Claims()
    intents: list[Intent] = []
    dropped: list[Rejection] = []
    repairs: list[RuleId] = []
    # The sort is stable: of two proposals with the same purpose, the earlier decider is first.
    in_order = sorted(proposals, key=lambda proposal: proposal.purpose)
    for proposal, name in zip(in_order, _proposal_names(in_order), strict=True):
        refused = _refused(proposal, claims)
        kept = [intent for intent in proposal.intents if intent.id not in refused]
        for intent in kept:
            claims.add(intent, proposal.decider)
        intents += (_with_unique_ids(intent, f"{plan}/{name}/") for intent in kept)
        dropped += refused.values()
        # A proposal repairs its rules as a whole, so a single dropped intent voids the promise.
        repairs += () if refused else proposal.repairs
    return Arbitration(tuple(intents), tuple(dropped), tuple(dict.fromkeys(repairs)))


def _proposal_names(proposals: Sequence[Proposal]) -> Iterator[str]:
    """Yield the name of each decider, with a number from its second proposal on."""
    counts: Counter[str] = Counter()
    for proposal in proposals:
        counts[proposal.decider] += 1
        number = counts[proposal.decider]
        yield proposal.decider if number == 1 else f"{proposal.decider}.{number}"


def _refused(proposal: Proposal, claims: _Claims) -> dict[StepId, Rejection]:
    """Return the intents of a proposal that are dropped, each with its rejection."""
    refused: dict[StepId, Rejection] = {}
    for intent in proposal.intents:
        for detail in claims.conflicts(intent):
            refused.setdefault(intent.id, _rejection(intent, "intent-conflict", detail))
    # The order of the three checks: each may drop intents that the next one has to follow.
    if refused and proposal.all_or_nothing:
        cause = next(iter(refused.values())).detail
        for intent in proposal.intents:
            detail = f"the proposal is all-or-nothing, and {cause}"
            refused.setdefault(intent.id, _rejection(intent, "proposal-incomplete", detail))
    for intent in _pointless_evacuations(proposal, refused):
        detail = "it would empty a host that is not powered off now"
        refused[intent.id] = _rejection(intent, "evacuation-pointless", detail)
    for intent, prerequisite in _dependents_of_refused(proposal.intents, refused):
        detail = f"it needs {prerequisite}, which was dropped"
        refused[intent.id] = _rejection(intent, "prerequisite-dropped", detail)
    return refused


def _pointless_evacuations(proposal: Proposal, refused: dict[StepId, Rejection]) -> list[Intent]:
    """Return the intents that only prepare the power-off of a host which stays on."""
    if proposal.purpose is not Purpose.SLEEP:
        return []
    intents = proposal.intents
    # A move that another power-off still needs is not pointless.
    lost = {step for intent in intents if intent.id in refused for step in intent.after}
    needed = {step for intent in intents if intent.id not in refused for step in intent.after}
    pointless = lost - needed - refused.keys()
    return [intent for intent in intents if intent.id in pointless]


def _dependents_of_refused(
    intents: Sequence[Intent], refused: dict[StepId, Rejection]
) -> Iterator[tuple[Intent, StepId]]:
    """Yield the intents that need a refused one, directly or not, each with that one.

    The caller adds each yielded intent to ``refused``; so the dependents of it follow.
    """
    changed = True
    while changed:
        changed = False
        for intent in intents:
            prerequisite = next((step for step in intent.after if step in refused), None)
            if prerequisite is not None and intent.id not in refused:
                changed = True
                yield intent, prerequisite


def _rejection(intent: Intent, code: str, detail: str) -> Rejection:
    return Rejection(subject=describe(intent.action), code=code, detail=detail)


def _with_unique_ids(intent: Intent, prefix: str) -> Intent:
    """Return an intent with prefixed ids.

    Step ids are unique in a journal; intent ids are unique only within their proposal.
    """
    return intent.but(
        id=StepId(prefix + intent.id), after=tuple(StepId(prefix + step) for step in intent.after)
    )


class _Claims:
    """The VMs and hosts that the accepted intents use, each with its decider.

    At most one decider acts on a VM. Many deciders may use a host, or one may change its state.
    """

    def __init__(self) -> None:
        self._vms: dict[VmId, str] = {}
        self._used: dict[HostId, str] = {}
        self._switched: dict[HostId, str] = {}

    def add(self, intent: Intent, decider: str) -> None:
        """Claim the VM and the hosts of an accepted intent."""
        touched = footprint(intent.action)
        if touched.vm is not None:
            self._vms.setdefault(touched.vm, decider)
        for host in touched.hosts:
            self._used.setdefault(host, decider)
        if touched.switched is not None:
            self._switched.setdefault(touched.switched, decider)

    def conflicts(self, intent: Intent) -> Iterator[str]:
        """Yield the reasons why an intent is in conflict with the accepted ones."""
        touched = footprint(intent.action)
        if touched.vm in self._vms:
            yield f"{self._vms[touched.vm]} already acts on {touched.vm}"
        for host in touched.hosts:
            if host in self._switched:
                yield f"{self._switched[host]} changes the state of {host}"
        if touched.switched in self._used:
            yield f"{self._used[touched.switched]} uses {touched.switched}"
