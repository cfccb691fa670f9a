"""The report of a pass on overload: what is still overloaded after its moves, and what would help.

Standby hosts that would help are found by the relief search itself, on a copy of the arrays in
which they are on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from equipoise.balance.rebalance import greedy_kernels
from equipoise.balance.rebalance.assess import Assessment
from equipoise.balance.rebalance.cluster_arrays import MAKES_SCARCE, NO_OBSTACLE, SAME_HOST
from equipoise.balance.rebalance.greedy import GreedySearch
from equipoise.balance.rebalance.rebalancer import OBSTACLE_CODES
from equipoise.balance.rebalance.relief import OverloadRelief
from equipoise.balance.repair.faults import BalanceFault
from equipoise.capacity.imbalance import FULL_LOAD
from equipoise.capacity.overload import DEMANDED, DemandedResource
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, format_amount
from equipoise.model.state.snapshot import Snapshot

HOSTS_REPORTED_MAX: Final = 20
"""So many overloaded hosts are reported with their obstacles; ``crowded`` counts all of them."""
OBSTACLE_PAIRS_MAX: Final = 2_000
"""For so many pairs of a VM and a host, the obstacles are looked up."""
WAKES_TRIED_MAX: Final = 16
"""So many standby hosts are tried; each trial is a search."""


def report_overload(
    snapshot: Snapshot, state: Assessment, search: GreedySearch, *, explain: bool
) -> tuple[BalanceFault, ...]:
    """Return what the cluster lacks, then the overloaded hosts; ``state`` is after all moves.

    With ``explain``, also which standby hosts would help and what keeps the VMs where they are.
    """
    leaving = _leaving_hosts(snapshot, state)
    excess = state.overload()
    if not excess.any():
        return tuple(_host_fault(snapshot, state, row, {}) for row in leaving)
    # Each standby host is tried by a search of its own, which the control loop does not need.
    wakes = _standby_that_helps(snapshot, state, search) if explain else ()
    shortages = tuple(_shortages(snapshot, state, wakes))
    # A cluster that has too little of everything needs no second cure per host.
    cure = "" if shortages else _wake_text(wakes)
    share = (excess / state.arrays.capacity[state.hosts, : len(DEMANDED)]).max(axis=1)
    rows = [int(state.hosts[index]) for index in np.argsort(-share, kind="stable")]
    hosts = rows[: min(HOSTS_REPORTED_MAX, int((share > 0.0).sum()))]
    faults = []
    for row in hosts:
        obstacles = _obstacles(state, row) if explain else {}
        faults.append(_host_fault(snapshot, state, row, obstacles))
    if cure:
        faults = [fault.but(unblock=cure, hosts=tuple(map(str, wakes))) for fault in faults]
    faults += [_host_fault(snapshot, state, row, {}) for row in leaving]
    return (*shortages, *faults)


def _leaving_hosts(snapshot: Snapshot, state: Assessment) -> list[int]:
    """Return the overloaded hosts that are about to leave: balance moves no VM to or from them."""
    rows = [
        row
        for row, host in enumerate(state.host_ids)
        if snapshot.hosts[host].requested is not None and snapshot.hosts[host].state is HostState.ON
    ]
    arrays = state.arrays
    return [
        row
        for row in rows
        if (arrays.host_usable[row] > arrays.capacity[row, : len(DEMANDED)] * FULL_LOAD).any()
    ]


def shortage_phrase(fault: BalanceFault) -> str:
    """Return what a cluster lacks, in a few words."""
    resource = next(resource for resource in DEMANDED if resource.code == fault.code)
    asked, there = (int(fault.figures[key]) for key in ("asked", "there"))
    return f"out of {resource.name}: {_compared(asked, there, resource)}"


def _shortages(
    snapshot: Snapshot, state: Assessment, wakes: Sequence[HostId]
) -> Iterator[BalanceFault]:
    """Yield a fault per resource of which all hosts together have too little."""
    for column, resource in enumerate(DEMANDED):
        asked = round(float(state.arrays.host_usable[state.hosts, column].sum()))
        there = round(float(state.arrays.capacity[state.hosts, column].sum()))
        if asked <= there * FULL_LOAD:
            continue
        woken = sum(resource.of_host(snapshot.hosts[host]) for host in wakes)
        lacking = max(0, asked - there - woken)
        cures = [_wake_text(wakes)] if wakes else []
        if lacking:
            amount = f"{format_amount(lacking, resource.unit)} of {resource.name}"
            cures.append(f"add {amount}, or stop VMs that ask for as much")
        yield BalanceFault(
            code=resource.code,
            subject=snapshot.name,
            detail=f"{_compared(asked, there, resource)} in {resource.name}",
            unblock="; ".join(cures),
            figures={"asked": asked, "there": there, "lacking": lacking},
            hosts=tuple(map(str, wakes)),
        )


def _wake_text(wakes: Sequence[HostId]) -> str:
    return f"wake {', '.join(wakes)}" if wakes else ""


def _compared(asked: int, there: int, resource: DemandedResource) -> str:
    """Return both amounts in the largest unit in which they differ."""
    first, second = (format_amount(amount, resource.unit) for amount in (asked, there))
    if first == second:
        first, second = (f"{amount:,} {resource.unit}" for amount in (asked, there))
    return f"{first} asked, {second} there"


def _host_fault(
    snapshot: Snapshot, state: Assessment, row: int, obstacles: Mapping[str, int]
) -> BalanceFault:
    """Return the fault of an overloaded host: by how much, and why no VM leaves it."""
    host, figures, parts = state.host_ids[row], dict[str, float](), []
    for column, resource in enumerate(DEMANDED):
        asked = round(float(state.arrays.host_usable[row, column]))
        there = resource.of_host(snapshot.hosts[host])
        name = resource.name.lower()
        figures |= {f"{name}_asked": asked, f"{name}_there": there}
        if asked > there * FULL_LOAD:
            compared = _compared(asked, there, resource)
            parts.append(f"{resource.name} {asked / there:.0%} ({compared})")
    reason = "no move relieves it"
    if snapshot.settings.balance.rules_only:
        reason = "the policy is rules_only"
    elif obstacles:
        counts = ", ".join(f"{code} {count}" for code, count in obstacles.items())
        reason = f"no move relieves it ({counts})"
    return BalanceFault(
        code="host-overloaded",
        subject=host,
        detail=f"{host} is overloaded: {' and '.join(parts)}; {reason}",
        figures=figures,
    )


def _obstacles(state: Assessment, row: int) -> Mapping[str, int]:
    """Return how often each obstacle keeps a VM of a host from another host."""
    arrays, counts = state.arrays, dict[str, int]()
    units = np.nonzero((arrays.unit_host == row) & (arrays.usable > 0.0).any(axis=1))[0]
    if len(units) * len(state.hosts) > OBSTACLE_PAIRS_MAX:
        return counts
    for unit in units.tolist():
        if arrays.movable[unit] == 0:
            counts["pinned"] = counts.get("pinned", 0) + 1
            continue
        for target in state.hosts.tolist():
            obstacle = greedy_kernels.find_obstacle(arrays, unit, target)
            if obstacle == SAME_HOST:
                continue
            code = OBSTACLE_CODES[MAKES_SCARCE if obstacle == NO_OBSTACLE else obstacle][0]
            counts[code] = counts.get(code, 0) + 1
    return counts


def _standby_that_helps(
    snapshot: Snapshot, state: Assessment, search: GreedySearch
) -> tuple[HostId, ...]:
    """Return the standby hosts that together relieve most: one if one is enough, else the largest.

    A host that relieves nothing is left out.
    """
    closed = snapshot.settings.balance.hosts
    rows = [
        row
        for row, host in enumerate(snapshot.hosts.values())
        if host.state is HostState.STANDBY and host.requested is None and host.id not in closed
        if min(host.usable_cpu_mhz, host.usable_memory_mib) > 0
    ]
    capacity = state.arrays.capacity[:, : len(DEMANDED)]
    excess = state.overload().sum(axis=0) / capacity[state.hosts].max(axis=0, initial=1.0)
    weight = excess / excess.sum()
    rows.sort(key=lambda row: -float((capacity[row] * weight).sum()))
    rows = rows[:WAKES_TRIED_MAX]
    for row in reversed(rows):  # the smallest host that is enough by itself
        if _overload_with(state, search, [row]) == 0.0:
            return (state.host_ids[row],)
    left, woken = _overload_with(state, search, []), list[int]()
    for row in rows:
        then = _overload_with(state, search, [*woken, row])
        if then < left * (1 - 1e-9):
            left = then
            woken.append(row)
        if left == 0.0:
            break
    return tuple(state.host_ids[row] for row in woken)


def _overload_with(state: Assessment, search: GreedySearch, rows: Sequence[int]) -> float:
    """Return the overload, in hosts, that relief would leave if some more hosts were on."""
    trial = replace(state.copy(), hosts=np.concatenate([state.hosts, rows]).astype(np.int64))
    trial.arrays.open[list(rows)] = 1
    relief = OverloadRelief(trial, search.on(trial), lasting_s=0)
    relief.find_moves(len(trial.members))
    capacity = trial.arrays.capacity[trial.hosts, : len(DEMANDED)]
    return float((trial.overload() / capacity).sum())
