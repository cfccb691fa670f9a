"""The rules as deciders see them: who must be apart or together, and who is barred from where.

The gate judges every rule, whatever it says. Here are those whose meaning can be planned for;
constraints of the library that say the same as a plain rule are read as that rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from re import findall
from typing import Any, Final, NamedTuple

from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.snapshot import Snapshot

FT: Final = RuleId("ft_pair")
"""The rule that nobody has to write: the halves of a fault-tolerant pair never share a host."""


class Group(NamedTuple):
    """VMs that must be apart, or together."""

    rule: RuleId
    vms: tuple[VmId, ...]


class Bar(NamedTuple):
    """VMs that must not be on hosts."""

    rule: RuleId
    vms: frozenset[VmId]
    hosts: frozenset[HostId]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the rules say, about VMs and hosts that are there."""

    apart: tuple[Group, ...] = ()
    together: tuple[Group, ...] = ()
    bars: tuple[Bar, ...] = ()
    like: tuple[str, ...] = ()
    """Labels in which the hosts of a fault-tolerant pair must agree."""
    failures: tuple[tuple[RuleId, int], ...] = ()
    """How many hosts may be lost so that everything can start again, by the rule that says so."""
    others: tuple[RuleId, ...] = ()
    """Rules that only the gate understands."""
    continuous: frozenset[RuleId] = frozenset()
    ft_apart: tuple[RuleId, ...] = ()
    """The rules that say in words what holds anyway: fault-tolerant pairs are apart."""
    ft_alike: tuple[RuleId, ...] = ()
    """The rules that ask for like hosts."""
    failover_hosts: tuple[RuleId, ...] = ()
    """The rules that keep hosts free for what may be lost elsewhere."""


def read_rules(snapshot: Snapshot, *, wishes: bool = False) -> Rules:
    """Read the hard rules and, with ``wishes``, the soft ones about hosts as if they were hard."""
    found = _Found(snapshot)
    rules = snapshot.settings.rules
    for rule in rules:
        if rule.hard or (wishes and _is_about_hosts(rule)):
            found.read(rule)
    # In the order of the VMs: what is decided must not depend on how Python hashes.
    pairs = dict.fromkeys(
        (min(vm.id, vm.ft_pair), max(vm.id, vm.ft_pair))
        for vm in snapshot.vms.values()
        if vm.ft_pair is not None and vm.ft_pair in snapshot.vms
    )
    found.apart += [Group(FT, pair) for pair in pairs]
    return Rules(
        tuple(found.apart),
        tuple(found.together),
        tuple(found.bars),
        tuple(dict.fromkeys(found.like)),
        tuple(found.failures),
        tuple(found.others),
        frozenset(rule.id for rule in rules if rule.continuous),
        tuple(found.ft_apart),
        tuple(found.ft_alike),
        tuple(found.failover_hosts),
    )


def _is_about_hosts(rule: Rule) -> bool:
    if isinstance(rule, Satisfy):
        return rule.constraint in _WITHIN | _OFF
    return isinstance(rule, StayWithin | StayOff)


_APART: Final = frozenset({"KeepApart", "Spread"})
_TOGETHER: Final = frozenset({"KeepTogether", "Gather"})
_WITHIN: Final = frozenset({"MustRunOn", "ShouldRunOn", "Fence"})
_OFF: Final = frozenset({"MustNotRunOn", "ShouldNotRunOn", "Ban"})


class _Found:
    """What was found so far."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._vms, self._hosts = snapshot.vms, frozenset(snapshot.hosts)
        self._failed = sum(host.state is HostState.FAILED for host in snapshot.hosts.values())
        self._own_words = frozenset(findall(r"\w+", snapshot.settings.specification))
        self.apart: list[Group] = []
        self.together: list[Group] = []
        self.bars: list[Bar] = []
        self.like: list[str] = []
        self.failures: list[tuple[RuleId, int]] = []
        self.others: list[RuleId] = []
        self.ft_apart: list[RuleId] = []
        self.ft_alike: list[RuleId] = []
        self.failover_hosts: list[RuleId] = []

    def read(self, rule: Rule) -> None:
        match rule:
            case KeepApart():
                self._group(self.apart, rule.id, rule.vms)
            case KeepTogether():
                self._group(self.together, rule.id, rule.vms)
            case StayWithin():
                self._bar(rule.id, rule.vms, self._hosts.difference(rule.hosts))
            case StayOff():
                self._bar(rule.id, rule.vms, self._hosts.intersection(rule.hosts))
            case Satisfy():
                self._satisfy(rule)

    def _satisfy(self, rule: Satisfy) -> None:
        name, given = rule.constraint, rule.arguments
        vms = _names(given.get("vs", given.get("v", ())))
        hosts = _names(given.get("ns", ()))
        if name in self._own_words:  # it may mean something else there
            self.others.append(rule.id)
        elif name in _APART:
            self._group(self.apart, rule.id, vms)
        elif name in _TOGETHER:
            self._group(self.together, rule.id, vms)
        elif name in _WITHIN:
            self._bar(rule.id, vms, self._hosts.difference(hosts))
        elif name in _OFF:
            self._bar(rule.id, vms, self._hosts.intersection(hosts))
        else:
            self._failover(rule)

    def _failover(self, rule: Satisfy) -> None:
        name, given = rule.constraint, rule.arguments
        if name == "FailoverHosts":
            inmates = (vm.id for vm in self._vms.values() if not vm.agent)
            if not self._failed:  # otherwise it is what they are for
                self._bar(rule.id, inmates, self._hosts.intersection(_names(given["ns"])))
                self.failover_hosts.append(rule.id)
        elif name == "Failover":
            more = int(str(given["nb"])) - self._failed
            self.failures.append((rule.id, max(0, more)))
        else:
            self._of_pairs(rule)

    def _of_pairs(self, rule: Satisfy) -> None:
        if rule.constraint == "FtCompatible":
            self.like.append(str(rule.arguments["key"]))
            self.ft_alike.append(rule.id)
        elif rule.constraint == "FtApart":
            self.ft_apart.append(rule.id)
        else:
            self.others.append(rule.id)

    def _group(self, kind: list[Group], rule: RuleId, vms: Iterable[Any]) -> None:
        there = tuple(vm for vm in dict.fromkeys(vms) if vm in self._vms)
        if len(there) > 1:
            kind.append(Group(rule, there))

    def _bar(self, rule: RuleId, vms: Iterable[Any], hosts: Collection[Any]) -> None:
        there = frozenset(vm for vm in vms if vm in self._vms)
        if there and hosts:
            self.bars.append(Bar(rule, there, frozenset(hosts)))


def _names(argument: Any) -> Sequence[str]:
    return (argument,) if isinstance(argument, str) else tuple(_flat(argument))


def _flat(argument: Iterable[Any]) -> Iterator[str]:
    for one in argument:
        if isinstance(one, str):
            yield one
