"""Candidates: which hosts may go into standby or wake, and in which order they are tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import numpy as np

from equipoise.balance.repair.faults import join_names
from equipoise.model.host import Host, HostState
from equipoise.model.policy.power import (
    PowerAutomation,
    PowerOverride,
    PowerPolicy,
    StandbyPreference,
)
from equipoise.model.quantity import HostId, ProcessorId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.power.advice import PowerCode, SkippedHost
from equipoise.power.whatif_state import VmTarget, WhatIfState
from equipoise.roles.removal import check_removal


def standby_candidates(whatif: WhatIfState) -> tuple[list[HostId], list[SkippedHost]]:
    """Return the hosts that may go into standby, and the other hosts that are on, with reasons.

    This is the part that needs no trial: policy, state, running actions, pinned VMs and roles.
    """
    snapshot, skipped, candidates = whatif.snapshot, [], []
    balanced = _hosts_of_moves(snapshot, whatif.moves)
    # Both recommendations could be approved, so they must not contradict each other.
    recommended = _hosts_of_moves(snapshot, whatif.moves_to_approve)
    busy = {
        host for running in snapshot.in_flight.values() for host in running.step.footprint.hosts
    }
    cluster_obstacle = _cluster_obstacle(snapshot)
    if (
        cluster_obstacle is not None
        and cluster_obstacle[0] is not PowerCode.POLICY_OFF
        and exceeds_power_cap(whatif)
    ):
        cluster_obstacle = None  # the cap is stronger than the other settings
    for host in snapshot.hosts.values():
        if host.state is not HostState.ON:
            continue
        # The reason of the host itself comes first, because it stays when the cluster's reason has
        # passed.
        obstacle = _host_obstacle(host, whatif) or cluster_obstacle
        if obstacle is None and host.id in busy:
            obstacle = PowerCode.IN_USE, "a running action uses it"
        if obstacle is None and host.id in balanced:
            obstacle = PowerCode.IN_USE, "balance moves VMs to it or from it in this pass"
        if obstacle is None and host.id in recommended:
            detail = "balance recommends a move to it or from it, which waits for approval"
            obstacle = PowerCode.IN_USE, detail
        if obstacle is None:
            obstacle = _vm_obstacle(host, whatif)
        if obstacle is None and not exceeds_power_cap(whatif):
            obstacle = _rest_obstacle(host, whatif)
        if obstacle is None:
            candidates.append(host.id)
        else:
            skipped.append(SkippedHost(host.id, *obstacle))
    return _without_role_hosts(snapshot, candidates, skipped)


def _hosts_of_moves(snapshot: Snapshot, moves: Sequence[VmTarget]) -> set[HostId | None]:
    """Return the hosts that the VMs leave, and the hosts that they go to."""
    return {snapshot.vms[vm].host for vm, _ in moves} | {host for _, host in moves}


def _without_role_hosts(
    snapshot: Snapshot, candidates: list[HostId], skipped: list[SkippedHost]
) -> tuple[list[HostId], list[SkippedHost]]:
    """Return the candidates that hold no roles and whose loss breaks no role."""
    if snapshot.settings.layout is None:
        return candidates, skipped
    roles_on = {
        host: [
            group_role.role for group_role in snapshot.role_state.held.get(ProcessorId(host), ())
        ]
        for host in candidates
    }
    # All hosts without roles at once: two of them can each be dispensable and not both.
    removal = check_removal(snapshot, [host for host in candidates if not roles_on[host]])
    free_hosts = []
    for host in candidates:
        reason = removal.blocked.get(ProcessorId(host), "")
        if roles_on[host]:
            blocked = check_removal(snapshot, [host]).blocked.get(ProcessorId(host))
            advice = "lock the host to move them elsewhere"
            reason = f"it holds {join_names(roles_on[host])}: {blocked or advice}"
        if reason:
            skipped.append(SkippedHost(host, PowerCode.ROLES, reason))
        else:
            free_hosts.append(host)
    return free_hosts, skipped


def _cluster_obstacle(snapshot: Snapshot) -> tuple[PowerCode, str] | None:
    """Return what prevents standby for every host now."""
    policy, now_ms = snapshot.settings.power, snapshot.at_ms
    if policy.automation_at(now_ms) is PowerAutomation.OFF:
        return PowerCode.POLICY_OFF, "the power policy is off at this time"
    if policy.threshold == 1:
        return PowerCode.THRESHOLD, "the threshold of the power policy is 1, which forbids standby"
    observed_s = (now_ms - snapshot.history[0].at_ms) // 1000 if snapshot.history else 0
    # Without enough history the standard deviation is too small, and a host would go down before a
    # daily peak.
    if observed_s < policy.observe_s:
        detail = f"demand was observed for {observed_s} s of the required {policy.observe_s} s"
        return PowerCode.OBSERVING, detail
    woken = [item for item in snapshot.switches.items() if item[1].on and not item[1].failed]
    for host, switch in sorted(woken, key=lambda item: -item[1].ended_ms)[:1]:
        ago_s = (now_ms - switch.ended_ms) // 1000
        if ago_s < policy.cooldown_s:
            detail = f"{host} was woken {ago_s} s ago; the cooldown is {policy.cooldown_s} s"
            return PowerCode.COOLDOWN, detail
    return None


def _host_obstacle(host: Host, whatif: WhatIfState) -> tuple[PowerCode, str] | None:
    """Return what prevents standby for one host: the policy, its state or its figures."""
    override = whatif.policy.hosts.get(host.id)
    switch = whatif.snapshot.switches.get(host.id)
    if override is PowerOverride.STAYS_ON:
        return PowerCode.STAYS_ON, "the power policy keeps it on"
    if override is PowerOverride.LEFT_ALONE:
        return PowerCode.LEFT_ALONE, "the power policy excludes it"
    if host.requested is not None:
        return PowerCode.REQUESTED, f"{host.requested} is requested for it"
    if not host.power.known:
        return PowerCode.NO_FIGURES, "it has no power figures"
    if host.power.curve[0] <= host.power.standby_watts:
        return PowerCode.NO_FIGURES, "it draws as much in standby as when it is idle"
    # A host that may not wake again is not put into standby, unless the operator accepts that.
    if switch is not None and switch.power_on_failed and override is not PowerOverride.FULL:
        return PowerCode.WAKE_FAILED, "its last wake failed"
    return None


def _vm_obstacle(host: Host, whatif: WhatIfState) -> tuple[PowerCode, str] | None:
    """Return why a VM cannot leave a host."""
    snapshot = whatif.snapshot
    residents = [snapshot.vms[vm] for vm in snapshot.residents[host.id]]
    sleeping = [vm.id for vm in residents if vm.state is VmState.SLEEPING and not vm.agent]
    if sleeping:
        verb = "sleeps" if len(sleeping) == 1 else "sleep"
        return PowerCode.PINNED, f"{join_names(sleeping)} {verb} there and cannot move"
    row = whatif.row[host.id]
    if not whatif.on[row]:
        return (
            PowerCode.PINNED,
            "balance excludes it, because of rules, the policy or its size",
        )
    for unit in whatif.units_on(row).tolist():
        pinned_member = whatif.pinned_member(unit)
        if pinned_member is not None:
            vm, why = pinned_member
            return PowerCode.PINNED, f"{vm} cannot leave: {why.sentence}"
    return None


def _rest_obstacle(host: Host, whatif: WhatIfState) -> tuple[PowerCode, str] | None:
    """Return why a VM stays on a host for now: it has moved, or its migrations fail."""
    for vm in whatif.snapshot.residents[host.id]:
        reason = whatif.resting.vms.get(vm)
        if reason is not None and not whatif.snapshot.vms[vm].agent:
            return PowerCode.RESTING, f"{vm} stays there for now: {reason.detail}"
    return None


def wake_candidates(whatif: WhatIfState) -> tuple[list[HostId], list[SkippedHost]]:
    """Return the hosts that may wake, and the other standby hosts, with reasons."""
    candidates, skipped = [], []
    policy = whatif.policy
    for host in whatif.snapshot.hosts.values():
        if host.state is not HostState.STANDBY or host.id in whatif.waking:
            continue
        if policy.hosts.get(host.id) is PowerOverride.LEFT_ALONE:
            reason = "the power policy excludes it"
            skipped.append(SkippedHost(host.id, PowerCode.LEFT_ALONE, reason))
        elif host.requested is not None:
            skipped.append(
                SkippedHost(host.id, PowerCode.REQUESTED, f"{host.requested} is requested for it")
            )
        elif (ago_s := _failed_ago_s(whatif.snapshot, host.id)) < policy.retry_s:
            reason = f"its wake failed {ago_s:.0f} s ago; the next try is after {policy.retry_s} s"
            skipped.append(SkippedHost(host.id, PowerCode.WAKE_FAILED, reason))
        elif min(host.usable_cpu_mhz, host.usable_memory_mib) <= 0:
            skipped.append(SkippedHost(host.id, PowerCode.NOT_NEEDED, "it has no capacity"))
        else:
            candidates.append(host.id)
    return candidates, skipped


def _failed_ago_s(snapshot: Snapshot, host: HostId) -> float:
    """Return the seconds since the last power change of a host, if it was a failed wake."""
    switch = snapshot.switches.get(host)
    if switch is None or not switch.power_on_failed:
        return inf
    return (snapshot.at_ms - switch.ended_ms) / 1000


def is_automatic(policy: PowerPolicy, host: HostId, at_ms: int) -> bool:
    """Return whether a host is switched without approval."""
    override = policy.hosts.get(host)
    if override in (PowerOverride.MANUAL, PowerOverride.FULL):
        return override is PowerOverride.FULL
    return policy.automation_at(at_ms) is not PowerAutomation.MANUAL


def exceeds_power_cap(whatif: WhatIfState, more: HostId | None = None) -> str:
    """Return how the power cap is exceeded, with ``more`` also on; empty if it is not."""
    cap = whatif.policy.cap_watts
    if cap is None:
        return ""
    watts = sum(_max_watts(whatif, more))
    if watts <= cap:
        return ""
    return f"the hosts that are on could draw {watts} W; the cap is {cap} W"


def _max_watts(whatif: WhatIfState, more: HostId | None) -> Iterator[int]:
    """Yield the maximum power of each host in the what-if state."""
    for host in whatif.snapshot.hosts.values():
        in_standby = host.state is HostState.STANDBY or host.id in whatif.closed
        is_on = whatif.on[whatif.row[host.id]] or host.id == more
        # A failed host draws an unknown amount that switching cannot change.
        if host.state is HostState.FAILED:
            continue
        yield host.power.standby_watts if in_standby and not is_on else host.power.max_watts


def order_for_standby(whatif: WhatIfState, hosts: Sequence[HostId]) -> list[HostId]:
    """Return the hosts in the order in which standby is tried: the least useful first."""
    # Computed once per host: ``_rank`` sums over the VMs of the host.
    keys = {host: (_needs_approval(whatif, host), _rank(whatif, host)) for host in hosts}
    # The row breaks ties, so equal hosts go into standby in the order of the inventory and the load
    # stays concentrated on the same hosts.
    return sorted(hosts, key=lambda host: (keys[host], whatif.row[host]))


def _needs_approval(whatif: WhatIfState, host: HostId) -> bool:
    """Return whether a host needs approval; such hosts come last, because they may wait long."""
    return not is_automatic(whatif.policy, host, whatif.snapshot.at_ms)


def order_for_wake(whatif: WhatIfState, hosts: Sequence[HostId], seed: int) -> list[HostId]:
    """Return the hosts in the order in which wakes are tried: the most useful first.

    Equal hosts are ordered at random from the seed, so that all wear alike. Hosts whose last wake
    failed come last.
    """
    # The version makes each pass draw another order and a replay of the journal the same one.
    rng = np.random.default_rng((seed, whatif.snapshot.version))
    draw = dict(zip(hosts, rng.permutation(len(hosts)).tolist(), strict=True))

    def key(host: HostId) -> tuple[bool, bool, tuple[float, ...], int]:
        last = whatif.snapshot.switches.get(host)
        failed = last is not None and last.power_on_failed
        rank = tuple(-value for value in _rank(whatif, host))
        return _needs_approval(whatif, host), failed, rank, draw[host]

    return sorted(hosts, key=key)


def _rank(whatif: WhatIfState, host: HostId) -> tuple[float, ...]:
    """Return how useful a host is, one value per preference of the policy."""
    return tuple(_preference_value(preference, whatif, host) for preference in whatif.policy.order)


def _preference_value(preference: StandbyPreference, whatif: WhatIfState, name: HostId) -> float:
    host = whatif.snapshot.hosts[name]
    match preference:
        case StandbyPreference.SIZE:
            return _relative_size(host, whatif)
        case StandbyPreference.EFFICIENCY:
            return _efficiency(host)
        case StandbyPreference.TEMPERATURE:
            return 0.0 if host.temperature_c is None else -host.temperature_c
        case StandbyPreference.EVACUATION:
            vms = (whatif.snapshot.vms[vm] for vm in whatif.snapshot.residents[name])
            return float(sum(vm.memory_mib for vm in vms if not vm.agent))


def _relative_size(host: Host, whatif: WhatIfState) -> float:
    """Return CPU plus memory, each relative to the mean host."""
    cpu, memory = map(float, whatif.state.arrays.ledger.limit[:, :2].mean(axis=0))
    return host.usable_cpu_mhz / max(1.0, cpu) + host.usable_memory_mib / max(1.0, memory)


def _efficiency(host: Host) -> float:
    """Return MHz per watt at full load."""
    return host.usable_cpu_mhz / max(1, host.power.max_watts)
