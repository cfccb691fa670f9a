"""The judge of the inventory's hard rules.

A VM counts where it runs; while it migrates, that is its source. A continuous rule is judged at
the start and after every change. A discrete one is judged at the end, and a plan is not charged
with one that was broken before and whose VMs it never touched: an old fault must not block other
work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from equipoise.model.draft import Draft
from equipoise.model.plan import Violation
from equipoise.model.quantity import HostId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, StayOff, StayWithin
from equipoise.model.vm import VmState
from equipoise.plan.judge import Moment, Phase


class RulesJudge:
    """Judges the hard rules, looking only at those that a change can have affected."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        # By place, not by name: nothing here relies on names being unique.
        self._rules = tuple(rule for rule in rules if rule.hard)
        self._naming: dict[VmId, list[int]] = {}
        for place, rule in enumerate(self._rules):
            for vm in rule.vms:
                self._naming.setdefault(vm, []).append(place)
        self._broken_before: set[int] = set()
        self._told: dict[int, tuple[str, ...]] = {}

    def __call__(self, moment: Moment) -> Iterator[Violation]:
        """Say which rules are broken at this moment."""
        if moment.phase is Phase.INITIAL:
            for place, rule in enumerate(self._rules):
                if any(broken(rule, moment.state)):
                    self._broken_before.add(place)
        final = moment.phase is Phase.FINAL
        for place in self._affected(moment):
            if self._rules[place].continuous is not final:
                yield from self._news(place, moment)

    def _affected(self, moment: Moment) -> list[int]:
        every = range(len(self._rules))
        if moment.phase is Phase.INITIAL:
            return list(every)
        places = {place for vm in moment.touched.vms for place in self._naming.get(vm, ())}
        if moment.phase is Phase.FINAL:
            places |= set(every) - self._broken_before
        return sorted(places)

    def _news(self, place: int, moment: Moment) -> Iterator[Violation]:
        """A rule that stays broken in the same way is told once, when it breaks."""
        rule = self._rules[place]
        details = tuple(broken(rule, moment.state))
        before = self._told.get(place, ())
        self._told[place] = details
        for detail in details:
            if detail not in before:
                yield Violation(constraint=f"rule {rule.id}", at_ms=moment.at_ms, detail=detail)


def broken(rule: Rule, state: Draft) -> Iterator[str]:
    """Say in words how a rule is broken in a state; nothing if it holds."""
    places = _places(rule.vms, state)
    match rule:
        case KeepApart():
            yield from _together(places)
        case KeepTogether() if len(set(places.values())) > 1:
            apart = ", ".join(f"{vm} on {host}" for vm, host in places.items())
            yield f"they run on different hosts: {apart}"
        case StayWithin():
            allowed, hosts = ", ".join(rule.hosts), frozenset(rule.hosts)
            outside = ((vm, host) for vm, host in places.items() if host not in hosts)
            yield from (f"{vm} runs on {host}, not on one of {allowed}" for vm, host in outside)
        case StayOff():
            hosts = frozenset(rule.hosts)
            inside = ((vm, host) for vm, host in places.items() if host in hosts)
            yield from (f"{vm} runs on {host}, where it must not" for vm, host in inside)


def _places(vms: Iterable[VmId], state: Draft) -> dict[VmId, HostId]:
    found = (state.vms.get(vm) for vm in vms)
    return {
        vm.id: vm.host
        for vm in found
        if vm is not None and vm.state is VmState.RUNNING and vm.host is not None
    }


def _together(places: dict[VmId, HostId]) -> Iterator[str]:
    hosts: dict[HostId, list[VmId]] = {}
    for vm, host in places.items():
        hosts.setdefault(host, []).append(vm)
    for host, vms in hosts.items():
        if len(vms) > 1:
            yield f"{' and '.join(vms)} run together on {host}"
