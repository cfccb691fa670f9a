"""What the sleep of a host is worth: cycles and memory that nobody needs, against what it costs.

The cost is risk-adjusted as in the DRS paper: VMs have to leave and to come back, and if demand
does not stay as it is, it may rise to the worst of the last hour before the host is back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from equipoise.balance.levelling.worth import expense
from equipoise.model.estimate import Estimates
from equipoise.model.policy.power import PowerPolicy
from equipoise.place.water import Floats, Ints
from equipoise.power.demand import Span
from equipoise.power.ground import Ground
from equipoise.power.score import DUST


class Shortage(NamedTuple):
    """What hosts would lack, of CPU and of memory: as things are, and at the worst."""

    now: Floats
    worst: Floats


class Worth(NamedTuple):
    """In MHz-seconds and MiB-seconds."""

    benefit: tuple[float, float]
    cost: tuple[float, float]
    asleep_s: float
    short: tuple[float, float]
    """The part of the cost that is demand not met."""

    @property
    def times(self) -> float:
        """How many times the benefit is worth the cost, of CPU or memory, whichever is less."""
        pairs = zip(self.benefit, self.cost, strict=True)
        return min(gain / cost if cost > DUST else np.inf for gain, cost in pairs)


def shortage(ground: Ground) -> Shortage:
    """What hosts would lack."""
    return Shortage(ground.short(Span.ON), ground.short(Span.WORST))


def worth(ground: Ground, estimates: Estimates, row: int, units: Ints, before: Shortage) -> Worth:
    """What it is worth that a host sleeps whose units have gone in mind; ``before`` they did."""
    field, policy = ground.state.field, ground.policy
    at_once = ground.snapshot.settings.limits.actions_per_host
    after = shortage(ground)
    missed = (after.worst > before.worst + DUST).any()
    hosts = np.append(field.home[units], row)
    stable_s = min(float(field.stable_s[hosts].min()), float(policy.asleep_s))
    moving_s = float(field.move_s[units].sum()) / at_once
    leave_s = moving_s + estimates.power_off_ms / 1000
    # Until it is seen that it is missed, it is on, and its VMs are back.
    back_s = policy.on_window_s + estimates.power_on_ms / 1000 + moving_s
    asleep_s = max(0.0, (stable_s if missed else policy.asleep_s) - leave_s - back_s)
    cycles = sum(expense(field, unit, 0) for unit in units.tolist())
    vms = ground.snapshot.vms
    copied = sum(
        float(field.move_s[unit]) * sum(vms[vm].memory_mib for vm in ground.state.members[unit])
        for unit in units.tolist()
    )
    short = np.maximum(0.0, after.now - before.now) * stable_s
    short = short + np.maximum(0.0, after.worst - before.worst) * back_s
    benefit = field.capacity[row, :2] * asleep_s
    # All that leaves comes back one day.
    return Worth(
        (float(benefit[0]), float(benefit[1])),
        (2 * cycles + float(short[0]), 2 * copied + float(short[1])),
        asleep_s,
        (float(short[0]), float(short[1])),
    )


def wanted_times(policy: PowerPolicy, level: int) -> float:
    """How many times its cost a sleep must be worth to have this priority or a better one."""
    return float(policy.benefit_times * 2.0 ** (3 - level))
