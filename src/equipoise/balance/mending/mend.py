"""Mending the rules: empty hosts, part VMs, join them, put them elsewhere, as far as it can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from equipoise.balance.advice import MANDATORY, Advised, Code, Switch
from equipoise.balance.mending.failover import spares
from equipoise.balance.mending.fault import Fault, fault_of, listed
from equipoise.balance.mending.feasible import Choice
from equipoise.balance.mending.settle import Settlement, settle
from equipoise.balance.mending.standing import Problem, Standing, rules_of
from equipoise.balance.rules import Rules
from equipoise.balance.wishes import Wishes, step_of, switch_of
from equipoise.model.estimate import Estimates
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState
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


class _Passed(NamedTuple):
    """What the gate lets pass, as it is wished for, and what it refuses."""

    moves: list[Transfer]
    switches: list[Switch]
    intents: tuple[Intent, ...]
    refused: list[Fault]


class _Mending:
    def __init__(self, snapshot: Snapshot, rules: Rules, estimates: Estimates) -> None:
        self._snapshot, self._estimates = snapshot, estimates
        self._wishes = Wishes(snapshot, estimates)
        spare, bars = spares(snapshot, rules)
        self._spares = [vm.id for vm in spare]
        self._rules = replace(rules, bars=(*rules.bars, *bars)) if bars else rules
        self._standing = Standing(snapshot, self._rules, spare)
        self._standing.find_problems()
        # Both are asked for later, when things stand otherwise.
        self._broken = {one: rules_of(self._standing, one) for one in self._standing.problems}
        self._breaks: dict[VmId, RuleId] = {}
        for problem, vms in self._standing.problems.items():
            for rule in self._broken[problem][:1]:
                for vm in vms:
                    self._breaks.setdefault(vm, rule)

    def run(self) -> Mended:
        settlement = settle(self._standing)
        mends = self._mends(settlement)
        passed = self._passed(_transfers(settlement.choices), mends)
        standing = self._standing
        return Mended(
            moves=tuple(map(self._advised, passed.moves)),
            intents=passed.intents,
            switches=tuple(passed.switches),
            faults=(
                *(fault_of(standing, problem) for problem in settlement.left),
                *passed.refused,
                *self._asleep(),
            ),
            mends=mends if passed.moves else (),
            fewest=settlement.fewest,
            standing=standing,
            reserved=tuple(
                (host, standing.needs[vm])
                for vm in self._spares
                if (host := standing.where[vm]) is not None
            ),
        )

    def _mends(self, settlement: Settlement) -> tuple[RuleId, ...]:
        left = {rule for one in settlement.left for rule in rules_of(self._standing, one)}
        broken = dict.fromkeys(rule for rules in self._broken.values() for rule in rules)
        return tuple(one for one in broken if one in self._rules.continuous and one not in left)

    def _passed(self, wanted: list[Transfer], mends: tuple[RuleId, ...]) -> _Passed:
        """What the gate lets pass; what it does not stays wrong."""
        moves = [self._wishes.move(*one) for one in wanted]
        switches = list(self._switches(wanted))
        wished = (*moves, *map(self._wishes.switch, switches))
        passing = Passing(self._snapshot, mends) if wished else None
        against = passing.objections(wished) if passing is not None else ()
        if passing is None or not against:
            return _Passed(wanted, switches, wished, [])
        done = {one.id: one for one in _acceptable(moves, passing, mends)}
        kept = [one for one in wanted if step_of(one.vm) in done]
        switches = list(self._switches(kept))
        later = passing.of([self._wishes.switch(one) for one in switches], tuple(done.values()))
        done |= {one.id: one for one in later}
        said = "; ".join(dict.fromkeys(f"{one.constraint}: {one.detail}" for one in against[:3]))
        refused = []
        for one in wanted:
            if step_of(one.vm) not in done:
                self._standing.place(one.vm, one.source)
                detail = f"{one.vm} should go from {one.source} to {one.target}, but {said}"
                refused.append(Fault(code="refused", subject=one.vm, detail=detail))
        for switch in switches:
            if switch_of(switch.host) not in done:
                detail = f"{switch.host} should go into {switch.wish}, but {said}"
                refused.append(Fault(code="refused", subject=switch.host, detail=detail))
        switches = [one for one in switches if switch_of(one.host) in done]
        return _Passed(kept, switches, tuple(done.values()), refused)

    def _advised(self, one: Transfer) -> Advised:
        vm, leaves = self._snapshot.vms[one.vm], self._snapshot.hosts[one.source].requested
        rule = self._breaks.get(one.vm)
        if leaves is not None:
            code, reason = Code.EVACUATE, f"{one.source} is to go into {leaves}"
        elif rule is not None:
            code, reason = Code.RULE, f"{rule} is broken on {one.source}"
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

    def _switches(self, moves: Iterable[Transfer]) -> Iterable[Switch]:
        """Hosts that are to be switched and on which nobody is left but agents."""
        snapshot, leaving = self._snapshot, {one.vm for one in moves}
        busy = {
            host for running in snapshot.in_flight.values() for host in running.step.footprint.hosts
        }
        for host in self._to_be_switched():
            guests = [vm for vm in snapshot.residents[host.id] if not snapshot.vms[vm].agent]
            if host.id not in busy and leaving.issuperset(guests):
                assert host.requested is not None
                yield Switch(host.id, host.requested, tuple(guests))

    def _to_be_switched(self) -> Iterable[Host]:
        for host in self._snapshot.hosts.values():
            if host.requested is not None and host.state is HostState.ON:
                yield host

    def _asleep(self) -> Iterable[Fault]:
        """Hosts that cannot be switched because somebody sleeps there, whom nobody can move."""
        vms = self._snapshot.vms
        for host in self._to_be_switched():
            some = [vms[vm] for vm in self._snapshot.residents[host.id]]
            asleep = [vm.id for vm in some if vm.state is VmState.SLEEPING and not vm.agent]
            if asleep:
                detail = f"{host.id} is to go into {host.requested}, but {listed(asleep)} sleep"
                yield Fault(
                    code="asleep",
                    subject=host.id,
                    detail=f"{detail}{'s' if len(asleep) == 1 else ''} there",
                    unblock="resume them, or end them",
                )


def other_faults(after: Snapshot, rules: Rules) -> Iterable[Fault]:
    """Rules that are still broken and that only the gate understands, or that no move can mend."""
    ids = (*rules.others, *(rule for rule, _ in rules.failures))
    for rule, why in broken_rules(after, ids) if ids else ():
        yield Fault(
            code="broken_rule",
            subject=rule,
            detail=f"rule {rule} is broken ({why}), and no move is known that mends it",
            rules=(rule,),
            unblock="mend it or leave it out: as long as it is broken, what touches it is refused",
        )


def _acceptable(
    intents: Sequence[Intent], passing: Passing, mends: Sequence[RuleId]
) -> Sequence[Intent]:
    """Those that pass together. Nothing passes unless all that is to be mended is, so none of them
    can be asked about alone: then those that are blamed are left out first."""
    left = list(intents)
    while mends and left:
        against = passing.objections(left)
        if not against:
            return left
        blamed = {one.step for one in against}
        if blamed.isdisjoint(one.id for one in left):
            break
        left = [one for one in left if one.id not in blamed]
    return passing.of(intents)


def _transfers(choices: Iterable[Choice]) -> list[Transfer]:
    """Where VMs go in the end; those that are new, or only in mind, go nowhere from anywhere."""
    return [Transfer(one.vm, one.before, one.host) for one in choices if one.before is not None]
