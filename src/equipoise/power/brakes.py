"""Brakes: what keeps a host from being put to sleep, or from being woken, whatever the load."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from equipoise.balance.mending.fault import listed
from equipoise.model.host import Host, HostState
from equipoise.model.policy.power import PowerAutomation, PowerOverride, PowerPolicy
from equipoise.model.quantity import HostId, ProcessorId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.power.advice import Code, Told
from equipoise.power.ground import Ground
from equipoise.roles.leave import may_leave


def sleepy(ground: Ground) -> tuple[list[HostId], list[Told]]:
    """The hosts that may be put to sleep as far as that can be told without trying, and the
    others that are on, each with what keeps it so."""
    snapshot, told, found = ground.snapshot, [], []
    moving = {vm for vm, _ in ground.moves}
    balanced = {snapshot.vms[vm].host for vm in moving} | {host for _, host in ground.moves}
    busy = {
        host for running in snapshot.in_flight.values() for host in running.step.footprint.hosts
    }
    general = _general(snapshot)
    if general is not None and general[0] is not Code.OFF and over_cap(ground):
        general = None  # a cap holds whatever else is wanted
    for host in snapshot.hosts.values():
        if host.state is not HostState.ON:
            continue
        against = _own(host, ground) or general
        if against is None and host.id in busy:
            against = Code.IN_USE, "something is being done with it"
        if against is None and host.id in balanced:
            against = Code.IN_USE, "balancing moves VMs to it or from it in this pass"
        if against is None:
            against = _inmates(host, ground)
        if against is None:
            found.append(host.id)
        else:
            told.append(Told(host.id, *against))
    return _without_carriers(snapshot, found, told)


def _without_carriers(
    snapshot: Snapshot, found: list[HostId], told: list[Told]
) -> tuple[list[HostId], list[Told]]:
    """Those that carry no roles, and that no role would miss if all of them slept."""
    if snapshot.settings.layout is None:
        return found, told
    carried = {
        host: [duty.role for duty in snapshot.duties.held.get(ProcessorId(host), ())]
        for host in found
    }
    leave = may_leave(snapshot, [host for host in found if not carried[host]])
    free = []
    for host in found:
        why = leave.stay.get(ProcessorId(host), "")
        if carried[host]:
            missed = may_leave(snapshot, [host]).stay.get(ProcessorId(host))
            away = "they can go elsewhere, but only somebody who locks it can ask them to"
            why = f"it carries {listed(carried[host])}: {missed or away}"
        if why:
            told.append(Told(host, Code.ROLES, why))
        else:
            free.append(host)
    return free, told


def _general(snapshot: Snapshot) -> tuple[Code, str] | None:
    """What keeps all hosts from being put to sleep now."""
    policy, now_ms = snapshot.settings.power, snapshot.at_ms
    if policy.automation_at(now_ms) is PowerAutomation.OFF:
        return Code.OFF, "no host is put to sleep at this time, by the power policy"
    if policy.threshold == 1:
        return Code.THRESHOLD, "the threshold of the power policy is 1: nobody is put to sleep"
    seen_s = (now_ms - snapshot.history[0].at_ms) // 1000 if snapshot.history else 0
    if seen_s < policy.observe_s:
        detail = f"demand was observed for {seen_s} s, and {policy.observe_s} s are wanted first"
        return Code.OBSERVING, detail
    woken = [one for one in snapshot.switches.items() if one[1].on and not one[1].failed]
    for host, switch in sorted(woken, key=lambda one: -one[1].ended_ms)[:1]:
        ago_s = (now_ms - switch.ended_ms) // 1000
        if ago_s < policy.cooldown_s:
            detail = f"{host} was woken {ago_s} s ago, and for {policy.cooldown_s} s nobody sleeps"
            return Code.COOLDOWN, detail
    return None


def _own(host: Host, ground: Ground) -> tuple[Code, str] | None:
    """What keeps one host from being put to sleep, by its nature or by what was decided on it."""
    override = ground.policy.hosts.get(host.id)
    switch = ground.snapshot.switches.get(host.id)
    if override is PowerOverride.STAYS_ON:
        return Code.STAYS_ON, "the power policy says that it stays on"
    if override is PowerOverride.LEFT_ALONE:
        return Code.LEFT_ALONE, "the power policy says that it is left alone"
    if host.requested is not None:
        return Code.REQUESTED, f"it is to go into {host.requested} anyway"
    if not host.power.known:
        return Code.NO_FIGURES, "nobody knows what it draws: it has no power figures"
    if host.power.curve[0] <= host.power.standby_watts:
        return Code.NO_FIGURES, "it draws as much asleep as when it does nothing"
    if switch is not None and switch.failed_to_wake and override is not PowerOverride.FULL:
        return Code.WAKE_FAILED, "it failed to wake the last time"
    return None


def _inmates(host: Host, ground: Ground) -> tuple[Code, str] | None:
    """Who on a host cannot leave it."""
    snapshot = ground.snapshot
    some = [snapshot.vms[vm] for vm in snapshot.residents[host.id]]
    asleep = [vm.id for vm in some if vm.state is VmState.SLEEPING and not vm.agent]
    if asleep:
        verb = "sleeps" if len(asleep) == 1 else "sleep"
        return Code.STUCK, f"{listed(asleep)} {verb} there, and nobody can move them"
    row = ground.row[host.id]
    if not ground.on[row]:
        return Code.STUCK, "it takes no part in balancing, by rules, by the policy or for its size"
    for unit in ground.units_on(row).tolist():
        blocker = ground.blocker(unit)
        if blocker is not None:
            vm, why = blocker
            return Code.STUCK, f"{vm} cannot leave: {why.sentence}"
    return None


def wakeable(ground: Ground) -> tuple[list[HostId], list[Told]]:
    """The hosts that may be woken, and those that sleep and may not, with the reason."""
    found, told = [], []
    policy = ground.policy
    for host in ground.snapshot.hosts.values():
        if host.state is not HostState.STANDBY or host.id in ground.waking:
            continue
        if policy.hosts.get(host.id) is PowerOverride.LEFT_ALONE:
            why = "the power policy says that it is left alone"
            told.append(Told(host.id, Code.LEFT_ALONE, why))
        elif host.requested is not None:
            told.append(Told(host.id, Code.REQUESTED, f"it is to be in {host.requested}"))
        elif (ago_s := _failed_ago_s(ground.snapshot, host.id)) < policy.retry_s:
            why = f"it failed to wake {ago_s:.0f} s ago, and is tried again after {policy.retry_s}"
            told.append(Told(host.id, Code.WAKE_FAILED, why))
        elif min(host.usable_cpu_mhz, host.usable_memory_mib) <= 0:
            told.append(Told(host.id, Code.NOT_NEEDED, "it has nothing to give"))
        else:
            found.append(host.id)
    return found, told


def _failed_ago_s(snapshot: Snapshot, host: HostId) -> float:
    """How long ago a host failed to wake the last time it was to; for ever if it did not."""
    last = snapshot.switches.get(host)
    if last is None or not last.failed_to_wake:
        return inf
    return (snapshot.at_ms - last.ended_ms) / 1000


def is_automatic(policy: PowerPolicy, host: HostId, at_ms: int) -> bool:
    """Whether a host is switched without asking."""
    override = policy.hosts.get(host)
    if override in (PowerOverride.MANUAL, PowerOverride.FULL):
        return override is PowerOverride.FULL
    return policy.automation_at(at_ms) is not PowerAutomation.MANUAL


def over_cap(ground: Ground, more: HostId | None = None) -> str:
    """What is above the cap of the cluster, as hosts are in mind or with one more that is on;
    nothing if nothing is."""
    cap = ground.policy.cap_watts
    if cap is None:
        return ""
    watts = sum(_most_watts(ground, more))
    if watts <= cap:
        return ""
    return f"all hosts that are on could draw {watts} W together, and {cap} W is the cap"


def _most_watts(ground: Ground, more: HostId | None) -> Iterator[int]:
    for host in ground.snapshot.hosts.values():
        asleep = host.state is HostState.STANDBY or host.id in ground.closed
        awake = ground.on[ground.row[host.id]] or host.id == more
        if host.state is HostState.FAILED:
            continue
        yield host.power.standby_watts if asleep and not awake else host.power.most_watts
