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
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, StayOff, StayWithin
from equipoise.model.vm import VmState
from equipoise.plan.judge import Moment, Phase


class RulesJudge:
    """Judges the hard rules, looking only at those that a change can have affected."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = {rule.id: rule for rule in rules if rule.hard}
        self._rank = {name: rank for rank, name in enumerate(self._rules)}
        self._naming: dict[VmId, list[RuleId]] = {}
        for rule in self._rules.values():
            for vm in rule.vms:
                self._naming.setdefault(vm, []).append(rule.id)
        self._broken_before: set[RuleId] = set()
        self._told: dict[RuleId, tuple[str, ...]] = {}

    def __call__(self, moment: Moment) -> Iterator[Violation]:
        """Say which rules are broken at this moment."""
        if moment.phase is Phase.INITIAL:
            for rule in self._rules.values():
                if any(broken(rule, moment.state)):
                    self._broken_before.add(rule.id)
        final = moment.phase is Phase.FINAL
        for rule in self._affected(moment):
            if rule.continuous is not final:
                yield from self._news(rule, moment)

    def _affected(self, moment: Moment) -> Iterable[Rule]:
        names = {rule for vm in moment.touched.vms for rule in self._naming.get(vm, ())}
        if moment.phase is Phase.INITIAL:
            names = set(self._rules)
        if moment.phase is Phase.FINAL:
            names |= self._rules.keys() - self._broken_before
        return (self._rules[name] for name in sorted(names, key=self._rank.__getitem__))

    def _news(self, rule: Rule, moment: Moment) -> Iterator[Violation]:
        """A rule that stays broken in the same way is told once, when it breaks."""
        details = tuple(broken(rule, moment.state))
        before = self._told.get(rule.id, ())
        self._told[rule.id] = details
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
            allowed = ", ".join(rule.hosts)
            outside = ((vm, host) for vm, host in places.items() if host not in rule.hosts)
            yield from (f"{vm} runs on {host}, not on one of {allowed}" for vm, host in outside)
        case StayOff():
            inside = ((vm, host) for vm, host in places.items() if host in rule.hosts)
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
