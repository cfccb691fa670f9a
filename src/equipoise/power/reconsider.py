"""Reconsidering: is it still right to put hosts to sleep, now that some time has passed?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.balance.advice import Advice
from equipoise.balance.levelling.assess import assess
from equipoise.balance.mending.fault import listed
from equipoise.balance.rules import read_rules
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Step
from equipoise.model.snapshot import Snapshot
from equipoise.power.brakes import over_cap
from equipoise.power.ground import Ground
from equipoise.power.wake import Waking


def reasons_to_stop(
    snapshot: Snapshot, estimates: Estimates, left: Sequence[Step], seed: int
) -> str:
    """Why what is left of a plan should not be done any more; nothing if it should."""
    return too_busy(snapshot, estimates, left) or to_be_woken(snapshot, estimates, left, seed)


def to_be_woken(snapshot: Snapshot, estimates: Estimates, left: Sequence[Step], seed: int) -> str:
    """Which hosts should be woken now, and not only when a long plan has come to its end."""
    if any(isinstance(one.action, PowerOn) for one in left):
        return ""  # it is about to wake hosts itself
    ground = Ground(snapshot, assess(snapshot, read_rules(snapshot), estimates), Advice())
    waking = Waking(ground, estimates, seed)
    waking.run()
    last = snapshot.switches
    # Nobody waits for a host that may fail to wake once more.
    sound = [
        one for one in waking.wakes if one.host not in last or not last[one.host].failed_to_wake
    ]
    hosts = [one.host for one in sound if one.automatic]
    return f"{listed(hosts)} should wake first: {sound[0].reason}" if hosts else ""


def too_busy(snapshot: Snapshot, estimates: Estimates, left: Sequence[Step]) -> str:
    """Why hosts that are still to be put to sleep should not be: others would have too much to do.

    What has begun is done; what is left is tried in mind, with the demand of now.
    """
    off = [one.action.host for one in left if isinstance(one.action, PowerOff)]
    hosts = snapshot.hosts
    asleep = [one for one in off if one in hosts and hosts[one].requested is None]
    if not asleep:
        return ""
    ground = Ground(snapshot, assess(snapshot, read_rules(snapshot), estimates))
    if over_cap(ground):
        return ""
    before = ground.scores()
    unit_of = {vm: unit for unit, vms in enumerate(ground.state.members) for vm in vms}
    going = [one.action for one in left if isinstance(one.action, Migrate)]
    there = {
        unit_of[one.vm]: ground.row[one.target]
        for one in going
        if one.vm in unit_of and one.target in ground.row
    }
    ground.send(np.array(list(there), dtype=np.int64), np.array(list(there.values()), np.int64))
    for host in asleep:
        ground.close(ground.row[host])
    if not before.is_high and not ground.scores().is_high:
        return ""
    part = f"{snapshot.settings.power.high:.0%}"
    some = f"{len(asleep)} more hosts" if len(asleep) > 1 else f"{asleep[0]}"
    return f"demand has risen: without {some}, others would use more than {part} of what they have"
