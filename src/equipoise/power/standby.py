"""Standby: tries hosts in turn, and puts a host into standby if its VMs fit elsewhere and it pays.

The cost is risk-adjusted as in the DRS paper: VMs leave and come back, and demand may rise to the
worst of the last hour before the host is on again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from equipoise.balance.advice import MANDATORY_PRIORITY
from equipoise.balance.rebalance.cluster_arrays import NO_OBSTACLE, SAME_HOST
from equipoise.balance.rebalance.cost_benefit import migration_cost
from equipoise.balance.rebalance.greedy_kernels import find_obstacle
from equipoise.balance.rebalance.rebalancer import OBSTACLE_CODES
from equipoise.balance.repair.faults import join_names
from equipoise.capacity.waterfill import NO_INDEX, Floats, Ints
from equipoise.model.action_durations import Estimates
from equipoise.model.policy.power import PowerPolicy
from equipoise.model.quantity import HostId, VmId, format_count
from equipoise.model.state.move_record import DAY_MS
from equipoise.power.advice import EvacuationMove, PowerCode, SkippedHost, StandbyAdvice
from equipoise.power.candidates import (
    exceeds_power_cap,
    is_automatic,
    order_for_standby,
    standby_candidates,
)
from equipoise.power.gate_check import StandbyRuleCheck
from equipoise.power.packing import UnitPacking
from equipoise.power.utilisation import (
    SCORE_TOLERANCE,
    DemandWindow,
    UtilisationScores,
    is_lowered,
    is_raised,
)
from equipoise.power.whatif_state import WhatIfState


class UnmetDemand(NamedTuple):
    """The unmet demand of CPU and of memory, now and in the worst case."""

    now: Floats
    worst: Floats


class StandbyWorth(NamedTuple):
    """Benefit and cost of a standby, in MHz-seconds and MiB-seconds."""

    benefit: tuple[float, float]
    cost: tuple[float, float]
    unmet: tuple[float, float]
    """The part of the cost that is unmet demand."""

    @property
    def ratio(self) -> float:
        """Benefit divided by cost, of CPU or memory, the smaller one."""
        pairs = zip(self.benefit, self.cost, strict=True)
        return min(gain / cost if cost > SCORE_TOLERANCE else np.inf for gain, cost in pairs)


def measure_unmet_demand(whatif: WhatIfState) -> UnmetDemand:
    """Return the unmet demand of the hosts that are on in the what-if state."""
    return UnmetDemand(whatif.unmet(DemandWindow.ON), whatif.unmet(DemandWindow.WORST))


def weigh_standby(
    whatif: WhatIfState, estimates: Estimates, row: int, units: Ints, before: UnmetDemand
) -> StandbyWorth:
    """Return benefit and cost of the standby of a host that is evacuated in the what-if state.

    ``before`` is the unmet demand before the evacuation.
    """
    arrays, policy = whatif.state.arrays, whatif.policy
    parallel = whatif.snapshot.settings.limits.parallel_migrations
    after = measure_unmet_demand(whatif)
    # If even the worst case needs nothing of the host, it can sleep for as long as the policy
    # assumes. Otherwise only while demand is stable.
    is_missed = (after.worst > before.worst + SCORE_TOLERANCE).any()
    hosts = np.append(arrays.unit_host[units], row)
    stable_s = min(float(arrays.stable_s[hosts].min()), float(policy.asleep_s))
    # The evacuated host is the bottleneck: all its VMs leave over its own link.
    moving_s = float(arrays.move_s[units].sum()) / parallel
    leave_s = moving_s + estimates.power_off_ms / 1000
    # The time until the need is noticed, the host is on again, and its VMs are back.
    back_s = policy.on_window_s + estimates.power_on_ms / 1000 + moving_s
    asleep_s = max(0.0, (stable_s if is_missed else policy.asleep_s) - leave_s - back_s)
    cpu_cost = sum(migration_cost(arrays, unit, 0) for unit in units.tolist())
    vms = whatif.snapshot.vms
    memory_cost = sum(
        float(arrays.move_s[unit]) * sum(vms[vm].memory_mib for vm in whatif.state.members[unit])
        for unit in units.tolist()
    )
    unmet = np.maximum(0.0, after.now - before.now) * stable_s
    # The worst case lasts only until the host is back.
    unmet = unmet + np.maximum(0.0, after.worst - before.worst) * back_s
    benefit = arrays.capacity[row, :2] * asleep_s
    # Every VM that leaves comes back one day, so the migration cost counts twice.
    return StandbyWorth(
        (float(benefit[0]), float(benefit[1])),
        (2 * cpu_cost + float(unmet[0]), 2 * memory_cost + float(unmet[1])),
        (float(unmet[0]), float(unmet[1])),
    )


def _idle_watts(whatif: WhatIfState, host: HostId) -> int:
    """Return what an idle host draws more than in standby."""
    power = whatif.snapshot.hosts[host].power
    return power.curve[0] - power.standby_watts


def required_ratio(policy: PowerPolicy, level: int) -> float:
    """Return the ratio of benefit to cost that a priority level requires."""
    # Each level asks for half as much as the one before; level 3 is the paper's default.
    return float(policy.benefit_times * 2.0 ** (3 - level))


class _ChosenHost(NamedTuple):
    """A host that goes into standby."""

    host: HostId
    units: Ints
    """The units that leave it."""
    worth: StandbyWorth
    priority: int
    skipped: int
    """How many hosts had been skipped before."""


class _Checkpoint(NamedTuple):
    """A state of the search whose rules were checked."""

    place: int
    chosen: int
    skipped: int


class StandbySearch:
    """Tries hosts in turn in the what-if state, and keeps those in standby that are not needed."""

    def __init__(self, whatif: WhatIfState, estimates: Estimates) -> None:
        self._whatif, self._estimates = whatif, estimates
        self._rule_check = StandbyRuleCheck(whatif.snapshot, estimates, whatif.switches)
        self._chosen: list[_ChosenHost] = []
        self._scores: UtilisationScores = whatif.scores()
        self._capped = False
        """Whether the power cap is exceeded, so that standby needs no benefit."""
        self.skipped: list[SkippedHost] = []
        self.standbys: tuple[StandbyAdvice, ...] = ()

    def run(self) -> None:
        """Fill ``standbys`` and ``skipped``.

        The rule check is slow, so it runs after 1 host, then after 2 more, then 4, and so on. If it
        fails, the search goes back to the last checkpoint and continues with single hosts.
        """
        candidates, self.skipped = standby_candidates(self._whatif)
        order = order_for_standby(self._whatif, candidates)
        others = self._others(order)
        place, stride, checkpoint = 0, 1, _Checkpoint(0, 0, len(self.skipped))
        while True:
            obstacle = self._cluster_obstacle() if place < len(order) else None
            finished = place == len(order) or obstacle is not None
            # The check runs on whole strides: a rule costs one judgement per doubling, not one per
            # host.
            new = len(self._chosen) - checkpoint.chosen
            if new and (finished or new >= stride):
                broken_rule = self._rule_check.find_broken_rule(self._moves(), self._chosen_hosts())
                if not broken_rule:
                    stride, checkpoint = (
                        2 * stride,
                        _Checkpoint(place, len(self._chosen), len(self.skipped)),
                    )
                else:
                    place, stride = (
                        self._rewind(checkpoint, order, broken_rule if new == 1 else ""),
                        1,
                    )
                    checkpoint = _Checkpoint(place, checkpoint.chosen, len(self.skipped))
                continue
            if obstacle is not None:
                self.skipped += [SkippedHost(host, *obstacle) for host in order[place:]]
            if finished:
                break
            skipped = self._try_host(order[place], others)
            place += 1
            if skipped is not None:
                self.skipped.append(skipped)
        self._spread_evacuated()
        self.standbys = tuple(map(self._standby_advice, self._chosen))

    def _rewind(self, checkpoint: _Checkpoint, order: Sequence[HostId], broken_rule: str) -> int:
        """Go back to the checkpoint; return the place in the order at which to continue.

        If one host alone breaks a rule, it is skipped with that reason, and the search continues
        after it.
        """
        first = self._chosen[checkpoint.chosen]
        self._reopen_hosts(checkpoint.chosen)
        del self.skipped[first.skipped if broken_rule else checkpoint.skipped :]
        if not broken_rule:
            return checkpoint.place
        self.skipped.append(SkippedHost(first.host, PowerCode.RULE, broken_rule))
        return order.index(first.host) + 1

    def _others(self, order: Sequence[HostId]) -> Ints:
        """Return the target hosts: those that stay on first, then those that are tried last."""
        whatif = self._whatif
        candidate_rows = {whatif.row[host] for host in order}
        stays_on = np.array(
            [row for row in whatif.rows.tolist() if row not in candidate_rows], dtype=np.int64
        )
        utilisation = np.zeros(len(whatif.on))
        utilisation[whatif.rows] = whatif.utilisation(DemandWindow.OFF).max(axis=1)
        # Full hosts first, so that hosts which are nearly empty stay candidates.
        stays_on = stays_on[np.argsort(-utilisation[stays_on], kind="stable")]
        # The host tried last receives first: the hosts that are about to be emptied stay empty.
        last_first = [whatif.row[host] for host in reversed(order)]
        return np.array([*stays_on.tolist(), *last_first], dtype=np.int64)

    def _cluster_obstacle(self) -> tuple[PowerCode, str] | None:
        """Return what prevents standby for all remaining hosts."""
        policy = self._whatif.policy
        if self._whatif.count_on - len(self._chosen) <= policy.hosts_on_min:
            return (
                PowerCode.MINIMUM,
                f"at least {format_count(policy.hosts_on_min, 'host')} must be on",
            )
        if exceeds_power_cap(self._whatif):
            return None
        if self._scores.is_high:
            return PowerCode.BUSY, f"hosts exceed {policy.high:.0%} utilisation"
        if not self._scores.is_low:
            which = "CPU" if self._scores.low[0] <= self._scores.low[1] else "memory"
            return PowerCode.NOT_LOW, f"every host uses at least {policy.low:.0%} of its {which}"
        return None

    def _try_host(self, host: HostId, others: Ints) -> SkippedHost | None:
        """Put one host into standby in the what-if state, or return why not."""
        whatif, row = self._whatif, self._whatif.row[host]
        units = whatif.units_on(row)
        moved = [unit for chosen in self._chosen for unit in chosen.units.tolist()]
        # A VM that arrives in this pass must not leave again in the same pass.
        if row in whatif.state.arrays.unit_host[moved]:
            return SkippedHost(
                host, PowerCode.IN_USE, "it takes the VMs of hosts that go into standby"
            )
        moves_max = whatif.policy.moves_per_pass
        # ``moved`` first: one host with more VMs than the limit could otherwise never go into
        # standby.
        if moved and self._count_vms([*moved, *units.tolist()]) > moves_max:
            return SkippedHost(
                host, PowerCode.MOVE_LIMIT, f"one pass moves at most {moves_max} VMs"
            )
        unmet, watts = measure_unmet_demand(whatif), whatif.watts()
        self._capped = bool(exceeds_power_cap(whatif))
        packing = whatif.evacuate(row, units, others)
        skipped = self._why_not_evacuated(host, packing)
        if skipped is None:
            whatif.close(row)
            skipped = self._accept_or_skip(host, units, unmet, watts - whatif.watts())
            if skipped is not None:
                whatif.open(row)
        if skipped is not None:
            whatif.restore(units, np.full(len(units), row))
            return skipped
        whatif.record_hosts(units)
        self._scores = whatif.scores()
        return None

    def _reopen_hosts(self, count: int) -> None:
        """Undo all chosen hosts except the first ``count``."""
        whatif = self._whatif
        while len(self._chosen) > count:
            chosen = self._chosen.pop()
            row = whatif.row[chosen.host]
            whatif.restore(chosen.units, np.full(len(chosen.units), row))
            whatif.open(row)
        self._scores = whatif.scores()

    def _count_vms(self, units: Sequence[int]) -> int:
        return sum(len(self._whatif.state.members[unit]) for unit in units)

    def _why_not_evacuated(self, host: HostId, packing: UnitPacking) -> SkippedHost | None:
        """Return the host as skipped, if a unit found no target."""
        unplaced = np.nonzero(packing.target == NO_INDEX)[0]
        if not len(unplaced):
            return None
        unit = int(packing.units[unplaced[0]])
        names = join_names(self._whatif.state.members[unit])
        return SkippedHost(
            host, PowerCode.NO_CAPACITY, f"no other host can take {names}: {self._obstacles(unit)}"
        )

    def _obstacles(self, unit: int) -> str:
        """Return what prevents a unit from moving to each other host, in words."""
        whatif = self._whatif
        too_full = f"its utilisation would exceed {whatif.policy.high:.0%}"
        hosts_by_reason: dict[str, list[HostId]] = defaultdict(list)
        for row in whatif.rows.tolist():
            code = find_obstacle(whatif.state.arrays, unit, row)
            if code != SAME_HOST:
                reason = too_full if code == NO_OBSTACLE else OBSTACLE_CODES[code][1]
                hosts_by_reason[reason].append(whatif.state.host_ids[row])
        phrases = (f"{join_names(hosts)}: {reason}" for reason, hosts in hosts_by_reason.items())
        return "; ".join(phrases) or "no other host is on"

    def _accept_or_skip(
        self, host: HostId, units: Ints, unmet: UnmetDemand, saved_watts: float
    ) -> SkippedHost | None:
        """Choose a host that was evacuated, or return why its standby does not pay."""
        whatif, before = self._whatif, self._scores
        after = whatif.scores()
        # The cap is a promise to the power supply, so benefit and scores do not matter.
        if self._capped:
            worth = weigh_standby(whatif, self._estimates, whatif.row[host], units, unmet)
            self._chosen.append(
                _ChosenHost(host, units, worth, MANDATORY_PRIORITY, len(self.skipped))
            )
            return None
        if is_raised(before.high, after.high):
            return SkippedHost(
                host, PowerCode.BUSY, "the utilisation of other hosts would be too high without it"
            )
        if not is_lowered(before.low, after.low):
            return SkippedHost(
                host, PowerCode.NO_BENEFIT, "standby would not reduce the under-used hosts"
            )
        if saved_watts < whatif.policy.saving_min * _idle_watts(whatif, host):
            detail = f"standby would save {saved_watts:.0f} W, because other hosts would draw more"
            return SkippedHost(host, PowerCode.SAVING, detail)
        worth = weigh_standby(whatif, self._estimates, whatif.row[host], units, unmet)
        levels = range(2, whatif.policy.threshold + 1)
        required = ((level, required_ratio(whatif.policy, level)) for level in levels)
        # Levels are tried from the strictest, so the host gets the most urgent one it reaches.
        priority = next((level for level, ratio in required if worth.ratio >= ratio), None)
        if priority is None:
            return SkippedHost(host, PowerCode.COST_EXCEEDS_BENEFIT, self._ratio_phrase(worth))
        self._chosen.append(_ChosenHost(host, units, worth, priority, len(self.skipped)))
        return None

    def _ratio_phrase(self, worth: StandbyWorth) -> str:
        required = required_ratio(self._whatif.policy, self._whatif.policy.threshold)
        phrase = f"the benefit is {worth.ratio:.0f} times the cost; {required:g} times is required"
        if max(worth.unmet) > 0:
            phrase += "; in the worst case of the last hour, its capacity is needed"
        return phrase

    def _spread_evacuated(self) -> None:
        """Spread the evacuated units over all hosts that stay on, if they all fit that way.

        While hosts are chosen, units are packed, so that as many hosts as possible become empty.
        Once it is known which hosts stay on, full hosts have no advantage. Units that have moved
        often stay packed: spread, each would keep another host on for the rest of the day.
        """
        whatif, arrays = self._whatif, self._whatif.state.arrays
        leaving = [
            (unit, whatif.row[chosen.host])
            for chosen in self._chosen
            for unit in chosen.units.tolist()
            if not self._will_rest(unit)
        ]
        units = np.array([unit for unit, _ in leaving], dtype=np.int64)
        rows = [row for _, row in leaving]
        packed = arrays.unit_host[units].copy()
        # Back on their hosts first: a unit in its packed place would block its own better one.
        whatif.restore(units, np.array(rows, dtype=np.int64))
        size = whatif.observed.units[:, units].max(axis=0) / arrays.capacity[packed, :2]
        packing = whatif.spread(units[np.argsort(-size.max(axis=1), kind="stable")])
        if NO_INDEX in packing.target or self._rule_check.find_broken_rule(
            self._moves(), self._chosen_hosts()
        ):
            whatif.restore(units, packed)

    def _will_rest(self, unit: int) -> bool:
        """Return whether this move is the last one of a VM of a unit for a day."""
        snapshot = self._whatif.snapshot
        moved = (snapshot.moves.get(vm) for vm in self._whatif.state.members[unit])
        most, since_ms = snapshot.settings.balance.moves_per_day, snapshot.at_ms - DAY_MS
        return any(move is not None and move.moves_since(since_ms) + 1 >= most for move in moved)

    def _moves(self) -> dict[VmId, HostId]:
        """Return the target of each VM that moves, including the moves of balance."""
        evacuations = {
            move.vm: move.target for chosen in self._chosen for move in self._evacuations(chosen)
        }
        return dict(self._whatif.moves) | evacuations

    def _chosen_hosts(self) -> set[HostId]:
        return {chosen.host for chosen in self._chosen}

    def _evacuations(self, chosen: _ChosenHost) -> list[EvacuationMove]:
        state = self._whatif.state
        return [
            EvacuationMove(vm, state.host_ids[state.arrays.unit_host[unit]])
            for unit in chosen.units.tolist()
            for vm in state.members[unit]
        ]

    def _standby_advice(self, chosen: _ChosenHost) -> StandbyAdvice:
        whatif, evacuations, worth = self._whatif, tuple(self._evacuations(chosen)), chosen.worth
        size = whatif.state.arrays.capacity[whatif.row[chosen.host], :2].tolist()

        def in_hosts(amounts: tuple[float, float]) -> list[float]:
            return [amount / capacity for amount, capacity in zip(amounts, size, strict=True)]

        watts = _idle_watts(whatif, chosen.host)
        cpu, memory = whatif.utilisation(DemandWindow.OFF).max(axis=0, initial=0.0).tolist()
        cap = f"; the power cap is {whatif.policy.cap_watts} W"
        capped = cap if chosen.priority == MANDATORY_PRIORITY else ""
        evacuation = (
            f"its {format_count(len(evacuations), 'VM')} fit on other hosts"
            if evacuations
            else "it is empty"
        )
        return StandbyAdvice(
            host=chosen.host,
            evacuations=evacuations,
            priority=chosen.priority,
            reason=(
                f"{evacuation}; then no host uses more than {cpu:.0%} of its CPU or {memory:.0%} "
                f"of its memory; saves about {watts} W{capped}"
            ),
            gain={
                "watts": float(watts),
                "cpu_mhz_s": worth.benefit[0],
                "memory_mib_s": worth.benefit[1],
                "host_s": round(min(in_hosts(worth.benefit)), 3),
                **({"times": worth.ratio} if isfinite(worth.ratio) else {}),
            },
            cost={
                "cpu_mhz_s": worth.cost[0],
                "memory_mib_s": worth.cost[1],
                "host_s": round(max(in_hosts(worth.cost)), 3),
            },
            # If a move needs approval, so does the standby that depends on it.
            automatic=is_automatic(whatif.policy, chosen.host, whatif.snapshot.at_ms)
            and all(
                whatif.snapshot.settings.balance.moves_by_itself(move.vm) for move in evacuations
            ),
        )
