"""The placement rules in the form that balance, placement and power search with.

The gate judges every rule with the specification. This module reads those rules that a search can
plan for: VMs apart, VMs together, VMs banned from hosts, failover reserves. Library constraints
with the same meaning are read as the same kind. ``pinned_vms`` adds which VMs must not move now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from re import findall
from typing import Any, Final, NamedTuple

from equipoise.model.host import HostState
from equipoise.model.policy.balance import HostOverride, VmOverride
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState


class PinReason(NamedTuple):
    """Why a VM is pinned to its host."""

    code: str
    sentence: str


def pinned_vms(snapshot: Snapshot) -> dict[VmId, PinReason]:
    """Return the VMs that must not move now, not even for a rule, each with the reason."""
    hosts = _pinned_hosts(snapshot)
    pinned: dict[VmId, PinReason] = {}
    for vm in snapshot.vms.values():
        if vm.agent:
            pinned[vm.id] = PinReason("agent", f"it is an agent of {vm.host}")
        elif vm.host in hosts:
            pinned[vm.id] = hosts[vm.host]
    # Later reasons replace earlier ones: a running action says more to the operator than the host
    # it runs on, and the operator's own override says most.
    for running in snapshot.in_flight.values():
        vm_id = running.step.footprint.vm
        if vm_id is not None:
            pinned[vm_id] = PinReason("action-running", f"step {running.step.id} works on it")
    for vm_id, override in snapshot.settings.balance.vms.items():
        if override is VmOverride.OFF and vm_id in snapshot.vms:
            pinned[vm_id] = PinReason("policy-override", "the balance policy pins it")
    return pinned


def _pinned_hosts(snapshot: Snapshot) -> dict[HostId | None, PinReason]:
    """Return the hosts whose VMs are all pinned."""
    overrides = snapshot.settings.balance.hosts
    pinned: dict[HostId | None, PinReason] = {}
    for host in snapshot.hosts.values():
        if host.state is not HostState.ON:
            pinned[host.id] = PinReason("host-off", f"{host.id} is {host.state}, not on")
        # A requested maintenance outranks the exclusion, or the host could never be emptied.
        elif overrides.get(host.id) is HostOverride.OFF and host.requested is None:
            pinned[host.id] = PinReason("policy-override", f"the balance policy excludes {host.id}")
    return pinned


FT_PAIR_RULE: Final = RuleId("ft_pair")
"""The implicit rule that the VMs of a fault-tolerant pair never share a host."""


class RuleGroup(NamedTuple):
    """VMs that a rule keeps apart or together."""

    rule: RuleId
    vms: tuple[VmId, ...]


class HostBan(NamedTuple):
    """VMs that a rule keeps off hosts."""

    rule: RuleId
    vms: frozenset[VmId]
    hosts: frozenset[HostId]


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """The rules about VMs and hosts of the snapshot, in the form that searches use."""

    apart: tuple[RuleGroup, ...] = ()
    together: tuple[RuleGroup, ...] = ()
    bans: tuple[HostBan, ...] = ()
    ft_labels: tuple[str, ...] = ()
    """Labels that must be equal on both hosts of a fault-tolerant pair."""
    failover_counts: tuple[tuple[RuleId, int], ...] = ()
    """Per rule, how many hosts may fail such that all VMs can restart."""
    gate_only_rules: tuple[RuleId, ...] = ()
    """Rules that only the gate can judge."""
    continuous: frozenset[RuleId] = frozenset()
    ft_apart_rules: tuple[RuleId, ...] = ()
    """Explicit rules that repeat ``FT_PAIR_RULE``."""
    ft_compatible_rules: tuple[RuleId, ...] = ()
    """Rules that require compatible hosts for fault-tolerant pairs."""
    failover_host_rules: tuple[RuleId, ...] = ()
    """Rules that keep hosts free for failover."""


def read_rules(snapshot: Snapshot, *, with_soft: bool = False) -> PlacementRules:
    """Return the hard rules; ``with_soft`` adds the soft rules about hosts as hard ones."""
    reader = _RuleReader(snapshot)
    rules = snapshot.settings.rules
    for rule in rules:
        if rule.hard or (with_soft and is_host_preference(rule)):
            reader.read(rule)
    # A dict keeps the order of the VMs: decisions must not depend on hash values.
    pairs = dict.fromkeys(
        (min(vm.id, vm.ft_pair), max(vm.id, vm.ft_pair))
        for vm in snapshot.vms.values()
        if vm.ft_pair is not None and vm.ft_pair in snapshot.vms
    )
    reader.apart += [RuleGroup(FT_PAIR_RULE, pair) for pair in pairs]
    return PlacementRules(
        tuple(reader.apart),
        tuple(reader.together),
        tuple(reader.bans),
        tuple(dict.fromkeys(reader.ft_labels)),
        tuple(reader.failover_counts),
        tuple(reader.gate_only_rules),
        frozenset(rule.id for rule in rules if rule.continuous),
        tuple(reader.ft_apart_rules),
        tuple(reader.ft_compatible_rules),
        tuple(reader.failover_host_rules),
    )


def is_host_preference(rule: Rule) -> bool:
    """Return whether it is a soft rule about hosts, which a pass keeps where it can."""
    if rule.hard:
        return False
    if isinstance(rule, Satisfy):
        return rule.constraint in _WITHIN | _OFF
    return isinstance(rule, StayWithin | StayOff)


_APART: Final = frozenset({"KeepApart", "Spread"})
_TOGETHER: Final = frozenset({"KeepTogether", "Gather"})
_WITHIN: Final = frozenset({"MustRunOn", "ShouldRunOn", "Fence"})
_OFF: Final = frozenset({"MustNotRunOn", "ShouldNotRunOn", "Ban"})


class _RuleReader:
    """Collects the rules of each kind."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._vms, self._hosts = snapshot.vms, frozenset(snapshot.hosts)
        self._host_states = {host.id: host.state for host in snapshot.hosts.values()}
        self._failed = sum(host.state is HostState.FAILED for host in snapshot.hosts.values())
        self._spec_words = frozenset(findall(r"\w+", snapshot.settings.specification))
        self.apart: list[RuleGroup] = []
        self.together: list[RuleGroup] = []
        self.bans: list[HostBan] = []
        self.ft_labels: list[str] = []
        self.failover_counts: list[tuple[RuleId, int]] = []
        self.gate_only_rules: list[RuleId] = []
        self.ft_apart_rules: list[RuleId] = []
        self.ft_compatible_rules: list[RuleId] = []
        self.failover_host_rules: list[RuleId] = []

    def read(self, rule: Rule) -> None:
        """Add one rule."""
        match rule:
            case KeepApart():
                self._group(self.apart, rule.id, rule.vms)
            case KeepTogether():
                self._group(self.together, rule.id, rule.vms)
            case StayWithin():
                self._ban(rule.id, rule.vms, self._hosts.difference(rule.hosts))
            case StayOff():
                self._ban(rule.id, rule.vms, self._hosts.intersection(rule.hosts))
            case Satisfy():
                self._satisfy(rule)

    def _satisfy(self, rule: Satisfy) -> None:
        name, arguments = rule.constraint, rule.arguments
        vms = _names(arguments.get("vs", arguments.get("v", ())))
        hosts = _names(arguments.get("ns", ()))
        # A word of the operator's own text may give a library name another meaning, so the search
        # must not guess it.
        if name in self._spec_words:  # the specification may redefine the word
            self.gate_only_rules.append(rule.id)
        elif name in _APART:
            self._group(self.apart, rule.id, vms)
        elif name in _TOGETHER:
            self._group(self.together, rule.id, vms)
        elif name in _WITHIN:
            self._ban(rule.id, vms, self._hosts.difference(hosts))
        elif name in _OFF:
            self._ban(rule.id, vms, self._hosts.intersection(hosts))
        else:
            self._failover(rule)

    def _failover(self, rule: Satisfy) -> None:
        name, arguments = rule.constraint, rule.arguments
        if name == "FailoverHosts":
            vms = (vm.id for vm in self._vms.values() if not vm.agent)
            if not self._failed:  # after a failure, the reserved hosts may be used
                self._ban(rule.id, vms, self._hosts.intersection(_names(arguments["ns"])))
                self.failover_host_rules.append(rule.id)
        elif name == "AgentReady":
            agents = {
                vm.host
                for vm in self._vms.values()
                if vm.agent and vm.labels.get(str(arguments["key"]), "")
                # On a host that is not on, the agent sleeps and starts with the host.
                if vm.state is VmState.RUNNING or not self._is_on(vm.host)
            }
            vms = (vm.id for vm in self._vms.values() if not vm.agent)
            self._ban(rule.id, vms, self._hosts.difference(agents))
        elif name == "Failover":
            # Hosts that have failed already are the failures the rule prepared for.
            more = int(str(arguments["nb"])) - self._failed
            self.failover_counts.append((rule.id, max(0, more)))
        else:
            self._of_pairs(rule)

    def _is_on(self, host: HostId | None) -> bool:
        return host in self._host_states and self._host_states[host] is HostState.ON

    def _of_pairs(self, rule: Satisfy) -> None:
        if rule.constraint == "FtCompatible":
            self.ft_labels.append(str(rule.arguments["key"]))
            self.ft_compatible_rules.append(rule.id)
        # The pairs themselves are added for every snapshot; the rule is only named in faults.
        elif rule.constraint == "FtApart":
            self.ft_apart_rules.append(rule.id)
        else:
            self.gate_only_rules.append(rule.id)

    def _group(self, kind: list[RuleGroup], rule: RuleId, vms: Iterable[Any]) -> None:
        """Add a group, if at least two of its VMs exist."""
        known = tuple(vm for vm in dict.fromkeys(vms) if vm in self._vms)
        if len(known) > 1:
            kind.append(RuleGroup(rule, known))

    def _ban(self, rule: RuleId, vms: Iterable[Any], hosts: Collection[Any]) -> None:
        """Add a ban, if some of its VMs and hosts exist."""
        known = frozenset(vm for vm in vms if vm in self._vms)
        if known and hosts:
            self.bans.append(HostBan(rule, known, frozenset(hosts)))


def _names(argument: Any) -> Sequence[str]:
    return (argument,) if isinstance(argument, str) else tuple(_flat(argument))


def _flat(argument: Iterable[Any]) -> Iterator[str]:
    for item in argument:
        if isinstance(item, str):
            yield item
