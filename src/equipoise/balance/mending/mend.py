"""Mending the rules: empty hosts, part VMs, join them, put them elsewhere, as far as it can be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from equipoise.balance.advice import MANDATORY, Advised, Code, Switch
from equipoise.balance.mending.failover import is_spare, spares
from equipoise.balance.mending.fault import Fault, fault_of
from equipoise.balance.mending.settle import Choice, Settlement, settle
from equipoise.balance.mending.standing import Problem, Standing, rules_of
from equipoise.balance.rules import Rules
from equipoise.balance.wishes import Wishes, step_of
from equipoise.model.estimate import Estimates
from equipoise.model.host import HostState
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.passing import Passing
from equipoise.spec.rules import broken_rules


class Transfer(NamedTuple):
    """A VM that goes from one host to another."""

    vm: VmId
    source: HostId
    target: HostId


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """What is to be done for the rules, and what cannot be."""

    moves: tuple[Advised, ...]
    intents: tuple[Intent, ...]
    switches: tuple[Switch, ...]
    faults: tuple[Fault, ...]
    mends: tuple[RuleId, ...]
    """The continuous rules that are broken now and will not be."""
    fewest: bool
    standing: Standing
    """How things stand when all of it is done."""
    reserved: tuple[tuple[HostId, tuple[float, ...]], ...]
    """What must be kept free on hosts for what may be lost elsewhere."""


def mend(snapshot: Snapshot, rules: Rules, estimates: Estimates) -> Mended:
    """Find the fewest moves that mend what is wrong, as far as the gate lets them pass."""
    return _Mending(snapshot, rules, estimates).run()


class _Mending:
    def __init__(self, snapshot: Snapshot, rules: Rules, estimates: Estimates) -> None:
        self._snapshot, self._estimates = snapshot, estimates
        spare, bars = spares(snapshot, rules)
        self._rules = replace(rules, bars=(*rules.bars, *bars)) if bars else rules
        self._standing = Standing(snapshot, self._rules, spare)
        self._standing.find_problems()
        # Both are asked for later, when things stand otherwise.
        self._broken = {one: rules_of(self._standing, one) for one in self._standing.problems}
        self._members = {one: set(self._standing.members(one)) for one in self._standing.problems}

    def run(self) -> Mended:
        settlement = settle(self._standing)
        mends = self._mends(settlement)
        wanted = _transfers(settlement.choices)
        passing = Passing(self._snapshot, mends)
        kept, refused = self._passed(wanted, passing)
        moves = tuple(self._wishes.move(*one) for one in kept)
        wished = {self._wishes.switch(one): one for one in self._switches(moves)}
        switched = passing.of(tuple(wished), moves)
        standing = self._standing
        return Mended(
            moves=tuple(map(self._advised, kept)),
            intents=(*moves, *switched),
            switches=tuple(wished[one] for one in switched),
            faults=(
                *(fault_of(standing, problem) for problem in settlement.left),
                *refused,
                *(self._not_switched(wished[one]) for one in wished if one not in switched),
                *self._asleep(),
                *self._others(),
            ),
            mends=mends if kept else (),
            fewest=settlement.fewest,
            standing=standing,
            reserved=tuple(
                (host, standing.needs[vm])
                for vm, host in standing.where.items()
                if is_spare(vm) and host is not None
            ),
        )

    def _mends(self, settlement: Settlement) -> tuple[RuleId, ...]:
        left = {rule for one in settlement.left for rule in rules_of(self._standing, one)}
        broken = dict.fromkeys(rule for rules in self._broken.values() for rule in rules)
        return tuple(one for one in broken if one in self._rules.continuous and one not in left)

    def _passed(
        self, wanted: list[Transfer], passing: Passing
    ) -> tuple[list[Transfer], list[Fault]]:
        """What the gate lets pass; what it does not stays wrong."""
        wishes = Wishes(self._snapshot, self._estimates)
        intents = [wishes.move(*one) for one in wanted]
        against = passing.objections(intents) if intents else ()
        if not against:
            return wanted, []
        passed = {one.id for one in passing.of(intents)}
        kept = [one for one in wanted if step_of(one.vm) in passed]
        said = "; ".join(dict.fromkeys(f"{one.constraint}: {one.detail}" for one in against[:3]))
        faults = []
        for one in wanted:
            if step_of(one.vm) not in passed:
                self._standing.place(one.vm, one.source)
                detail = f"{one.vm} should go from {one.source} to {one.target}, but {said}"
                faults.append(Fault(code="refused", subject=one.vm, detail=detail))
        return kept, faults

    def _advised(self, one: Transfer) -> Advised:
        vm, leaves = self._snapshot.vms[one.vm], self._snapshot.hosts[one.source].requested
        rules = [
            rule
            for problem, some in self._broken.items()
            if one.vm in self._members[problem]
            for rule in some
        ]
        if leaves is not None:
            code, reason = Code.EVACUATE, f"{one.source} is to go into {leaves}"
        elif rules:
            code, reason = Code.RULE, f"{rules[0]} is broken on {one.source}"
        elif Problem("full", one.source) in self._broken:
            code, reason = Code.RULE, f"more is reserved on {one.source} than it has"
        else:
            code, reason = Code.MAKE_ROOM, f"it makes way on {one.source} for others"
        return Advised(
            vm=one.vm,
            source=one.source,
            target=one.target,
            code=code,
            priority=MANDATORY,
            reason=reason,
            gain={},
            cost={
                "seconds": self._estimates.move_ms(vm) / 1000,
                "memory_mib": float(vm.memory_mib),
            },
            risk={},
        )

    def _switches(self, leaving: set[VmId]) -> Iterable[Switch]:
        """Hosts that are to be switched and on which nobody is left but agents."""
        snapshot = self._snapshot
        busy = {
            host for running in snapshot.in_flight.values() for host in running.step.footprint.hosts
        }
        for host in snapshot.hosts.values():
            if host.requested is None or host.state is not HostState.ON or host.id in busy:
                continue
            guests = [vm for vm in snapshot.residents[host.id] if not snapshot.vms[vm].agent]
            if leaving.issuperset(guests):
                yield Switch(host.id, host.requested, tuple(guests))

    def _others(self) -> Iterable[Fault]:
        """Broken rules that only the gate understands."""
        for rule, why in broken_rules(self._snapshot, self._rules.others):
            yield Fault(
                code="broken_rule",
                subject=rule,
                detail=f"rule {rule} is broken: {why}",
                rules=(rule,),
                unblock="no move is known that mends a rule of this kind",
            )


def _transfers(choices: Iterable[Choice]) -> list[Transfer]:
    """Where VMs go in the end; those that are new, or only in mind, go nowhere from anywhere."""
    return [Transfer(one.vm, one.before, one.host) for one in choices if one.before is not None]
