"""What stays where it is: VMs that rest after a move, links that wait, hosts that power will need.

A move costs time on both links and slows the VM. A second move of the same VM is worth it only if
something has changed since the first one: otherwise the first decision was as good as any. Rules,
maintenance and a lost host come first, because their moves do not pass here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from equipoise.balance.rebalance.assess import Assessment
from equipoise.balance.rebalance.history import LOAD_CHANGE_MIN
from equipoise.balance.repair.faults import join_names
from equipoise.capacity.waterfill import Floats
from equipoise.model.plan import Rejection
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.policy.power import PowerAutomation, PowerOverride
from equipoise.model.quantity import HostId, VmId, format_count
from equipoise.model.state.move_record import (
    DAY_MS,
    DemandPair,
    LastMove,
    link_back_offs,
    vm_back_offs,
)
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState

RESTS_AFTER_MOVE: Final = ("recently-moved", "moved-often", "unchanged-since-move")
"""The codes of VMs that rest because they have moved, not because a migration failed."""


class RestReason(NamedTuple):
    """Why a VM stays on its host."""

    code: str
    """A key of ``errors.CODES``."""
    detail: str


class Resting(NamedTuple):
    """What takes part in no move for now, except for rules, maintenance and lost hosts."""

    vms: Mapping[VmId, RestReason]
    links: Mapping[HostId, RestReason]
    """The hosts whose migration link waits."""

    def rejections(self, *, with_moved: bool) -> Iterator[Rejection]:
        """Yield the reasons; VMs with the same one are joined.

        VMs that merely rest after a move are left out without ``with_moved``.
        """
        subjects: dict[RestReason, list[str]] = defaultdict(list)
        for host, reason in self.links.items():
            subjects[reason].append(host)
        for vm, reason in self.vms.items():
            if reason.code == "link-back-off":
                continue  # its host has the reason already
            if with_moved or reason.code not in RESTS_AFTER_MOVE:
                subjects[reason].append(vm)
        for reason, names in subjects.items():
            yield Rejection(subject=join_names(names), code=reason.code, detail=reason.detail)


def find_resting(snapshot: Snapshot, state: Assessment, moves_max: int) -> Resting:
    """Return the VMs and links that rest now. A VM moves at most ``moves_max`` times a day."""
    links = {
        host: RestReason(
            "link-back-off",
            f"the last {wait.failures} migrations over its link failed; "
            f"the next try is in {_minutes(wait.until_ms - snapshot.at_ms)}",
        )
        for host, wait in link_back_offs(
            snapshot.moves, snapshot.failed_moves, snapshot.at_ms, _retry_ms(snapshot)
        ).items()
    }
    vms = dict(_after_moves(snapshot, state, moves_max)) if snapshot.moves else {}
    for vm, known in snapshot.vms.items() if links else ():
        if known.host in links:
            vms[vm] = links[known.host]
    waits = vm_back_offs(snapshot.failed_moves, snapshot.at_ms, _retry_ms(snapshot))
    for vm, wait in waits.items():
        detail = (
            f"its last {wait.failures} migrations failed; "
            if wait.failures > 1
            else "its last migration failed; "
        )
        left = _minutes(wait.until_ms - snapshot.at_ms)
        vms[vm] = RestReason("move-back-off", f"{detail}the next try is in {left}")
    return Resting(vms, links)


def _retry_ms(snapshot: Snapshot) -> int:
    return 1000 * snapshot.settings.balance.retry_s


def _minutes(duration_ms: int) -> str:
    return f"{-(-duration_ms // 60_000)} min"


def balance_moves_max(policy: BalancePolicy) -> int:
    """Return how often balance moves a VM within a day: half as often as balance and power may.

    The other half is left for the evacuation of hosts, which saves more than an even load is worth.
    """
    return max(1, policy.moves_per_day // 2)


def _after_moves(
    snapshot: Snapshot, state: Assessment, moves_max: int
) -> Iterator[tuple[VmId, RestReason]]:
    """Yield the running VMs that rest because they have moved."""
    policy, now_ms = snapshot.settings.balance, snapshot.at_ms
    row = {host: number for number, host in enumerate(state.host_ids)}
    changed: Floats | None = None
    last_switch_ms = max((switch.ended_ms for switch in snapshot.switches.values()), default=0)
    for name, move in snapshot.moves.items():
        vm = snapshot.vms.get(name)
        if vm is None or vm.host is None or vm.state is not VmState.RUNNING:
            continue
        if move.ended_ms > now_ms - 1000 * policy.stable_s_min:
            detail = f"it moved less than {policy.stable_s_min} s ago"
            yield name, RestReason("recently-moved", detail)
            continue
        host = row[vm.host]
        count = move.moves_since(now_ms - DAY_MS)
        if count >= moves_max and not _is_overloaded(state, host):
            detail = f"it has moved {format_count(moves_max, 'time')} or more within a day"
            yield name, RestReason("moved-often", detail)
            continue
        if _is_overloaded(state, host) and move.ended_ms < last_switch_ms:
            continue  # a host that was woken since may relieve it
        if snapshot.changed_ms > move.ended_ms or _has_other_demand(
            snapshot, state, host, vm, move
        ):
            continue
        if changed is None:
            changed = _last_changes(snapshot, state, row)
        if changed[host] < move.ended_ms:
            detail = "it has moved, and neither demand nor hosts have changed since"
            yield name, RestReason("unchanged-since-move", detail)


def _has_other_demand(
    snapshot: Snapshot, state: Assessment, host: int, vm: Vm, move: LastMove
) -> bool:
    """Return whether the demand of a VM, or of all VMs, is not what it was when the VM moved.

    This is known however long ago it was; the demand on single hosts only for the last hour.
    """
    capacity = state.arrays.capacity[:, :2]
    of_host = capacity[host]
    now, total = (vm.demand.cpu_mhz, vm.demand.memory_mib), snapshot.demand_total
    if move.demand is not None and _differs(now, move.demand, of_host, LOAD_CHANGE_MIN):
        return True
    if move.demand_total is None or total is None:
        return False
    whole = capacity[state.hosts].sum(axis=0)
    return _differs(total, move.demand_total, whole, LOAD_CHANGE_MIN / 2)


def _differs(now: DemandPair, then: DemandPair, capacity: Floats, part: float) -> bool:
    pairs = zip(now, then, np.maximum(1.0, capacity).tolist(), strict=True)
    return any(abs(new - old) > part * size for new, old, size in pairs)


def _is_overloaded(state: Assessment, host: int) -> bool:
    """Return whether the VMs on a host ask for more CPU or memory than it has."""
    arrays = state.arrays
    return bool((arrays.host_demand[host, :2] > arrays.capacity[host, :2]).any())


def _last_changes(snapshot: Snapshot, state: Assessment, row: Mapping[HostId, int]) -> Floats:
    """Return per host when its demand, or that of the whole cluster, last was another one."""
    # The present placement also for the past: a migration is no change of demand. It is that of the
    # snapshot: a pass may have moved VMs in the assessment.
    hosts = [snapshot.vms[vm.id].host for vm in state.history.vms]
    placed = np.array([row[host] for host in hosts if host is not None], dtype=np.int64)
    capacity = state.arrays.capacity[:, :2]
    return state.history.last_changes_ms(placed, capacity, state.hosts)


def has_spare_host(snapshot: Snapshot, state: Assessment) -> bool:
    """Return whether power is about to put a host into standby, because the others are enough.

    Balance and power share this estimate of what stays: an even load on hosts of which one goes
    down soon is worth nothing, and its VMs would move twice.
    """
    policy = snapshot.settings.power
    if policy.automation_at(snapshot.at_ms) is not PowerAutomation.FULL or policy.threshold == 1:
        return False
    if len(state.hosts) <= policy.hosts_on_min:
        return False
    keep = (PowerOverride.STAYS_ON, PowerOverride.LEFT_ALONE, PowerOverride.MANUAL)
    may_sleep = [
        row
        for row in state.hosts.tolist()
        if snapshot.hosts[state.host_ids[row]].power.known
        and policy.hosts.get(state.host_ids[row]) not in keep
    ]
    if not may_sleep:
        return False
    capacity, demand = state.arrays.capacity[:, :2], state.arrays.host_demand[:, :2]
    on, whole = capacity[state.hosts], demand[state.hosts].sum(axis=0)
    remaining = on.sum(axis=0) - capacity[may_sleep].min(axis=0)
    # As power decides: some host is under-used, and the others hold everything at the limit.
    is_low = (demand[state.hosts] / on < policy.low).any(axis=0).all()
    return bool(is_low and (whole <= policy.high * remaining).all())
