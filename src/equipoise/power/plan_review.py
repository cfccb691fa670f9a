"""Plan review: is it still right to put hosts into standby while a long plan runs?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.balance.advice import BalanceAdvice
from equipoise.balance.rebalance.assess import assess
from equipoise.balance.repair.faults import join_names
from equipoise.balance.rules import read_rules
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Step
from equipoise.model.state.snapshot import Snapshot
from equipoise.power.candidates import exceeds_power_cap
from equipoise.power.wake import WakeSearch
from equipoise.power.whatif_state import WhatIfState


def why_stop(snapshot: Snapshot, estimates: Estimates, remaining: Sequence[Step], seed: int) -> str:
    """Return why the rest of a plan should not run; empty if it should."""
    return too_busy_for_standby(snapshot, estimates, remaining) or hosts_to_wake_first(
        snapshot, estimates, remaining, seed
    )


def hosts_to_wake_first(
    snapshot: Snapshot, estimates: Estimates, remaining: Sequence[Step], seed: int
) -> str:
    """Return the hosts that should wake before a long plan ends; empty if none should."""
    if any(isinstance(step.action, PowerOn) for step in remaining):
        return ""  # the plan wakes hosts itself
    whatif = WhatIfState(
        snapshot, assess(snapshot, read_rules(snapshot), estimates), BalanceAdvice()
    )
    wake_search = WakeSearch(whatif, estimates, seed)
    wake_search.run()
    switches = snapshot.switches
    # A host whose last wake failed may fail again, so no plan is stopped for it.
    reliable = [
        wake
        for wake in wake_search.wakes
        if wake.host not in switches or not switches[wake.host].power_on_failed
    ]
    hosts = [wake.host for wake in reliable if wake.automatic]
    return f"{join_names(hosts)} should wake first: {reliable[0].reason}" if hosts else ""


def too_busy_for_standby(
    snapshot: Snapshot, estimates: Estimates, remaining: Sequence[Step]
) -> str:
    """Return why the remaining standbys of a plan should not run; empty if they should.

    Finished steps stay as they are. The remaining steps are tried with the demand of now.
    """
    standby_hosts = [step.action.host for step in remaining if isinstance(step.action, PowerOff)]
    hosts = snapshot.hosts
    going = [host for host in standby_hosts if host in hosts and hosts[host].requested is None]
    if not going:
        return ""
    whatif = WhatIfState(snapshot, assess(snapshot, read_rules(snapshot), estimates))
    if exceeds_power_cap(whatif):
        return ""
    before = whatif.scores()
    unit_of = {vm: unit for unit, vms in enumerate(whatif.state.members) for vm in vms}
    evacuations = [step.action for step in remaining if isinstance(step.action, Migrate)]
    targets = {
        unit_of[move.vm]: whatif.row[move.target]
        for move in evacuations
        if move.vm in unit_of and move.target in whatif.row
    }
    whatif.move_units(
        np.array(list(targets), dtype=np.int64), np.array(list(targets.values()), np.int64)
    )
    for host in going:
        whatif.close(whatif.row[host])
    if not before.is_high and not whatif.scores().is_high:
        return ""
    part = f"{snapshot.settings.power.high:.0%}"
    names = f"{len(going)} more hosts" if len(going) > 1 else f"{going[0]}"
    return f"demand has risen: without {names}, other hosts would exceed {part} utilisation"
