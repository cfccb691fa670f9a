"""One power pass: wake hosts that are needed or, if none is, put hosts into standby."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.balance.repair.faults import join_names
from equipoise.balance.run_pass import PassResult
from equipoise.capacity.waterfill import Floats
from equipoise.model.estimate import Estimates
from equipoise.model.quantity import HostId, format_count
from equipoise.model.state.snapshot import Snapshot
from equipoise.power.advice import PowerAdvice, PowerCode, SkippedHost, StandbyAdvice, WakeAdvice
from equipoise.power.candidates import standby_candidates
from equipoise.power.gate_check import PowerGateCheck
from equipoise.power.standby import StandbySearch
from equipoise.power.wake import WakeSearch
from equipoise.power.whatif_state import build_whatif_state


def run_power_pass(
    snapshot: Snapshot,
    estimates: Estimates,
    *,
    seed: int = 0,
    balanced: bool = True,
    ahead: Floats | None = None,
    balance_pass: PassResult | None = None,
) -> PowerAdvice:
    """Run one pass: the hosts to wake, or else the hosts to put into standby.

    ``balanced`` says whether a balance decider runs beside this one; ``balance_pass`` is its
    result, if it has run already. ``ahead`` is the forecast demand of each running VM, CPU and
    memory, in the order of the snapshot.
    """
    whatif = build_whatif_state(
        snapshot,
        estimates,
        seed=seed,
        balanced=balanced,
        ahead=ahead,
        balance_pass=balance_pass,
    )
    before = whatif.scores()
    wake_search = WakeSearch(whatif, estimates, seed)
    with whatif.what_if():
        wake_search.run()
        after = whatif.scores()
    standby_search = StandbySearch(whatif, estimates)
    gate = PowerGateCheck(whatif, estimates)
    woken = gate.wakes(wake_search.wakes, wake_search.moves)
    if woken.wakes:
        candidates, standby_search.skipped = standby_candidates(whatif)
        standby_search.skipped += [
            SkippedHost(host, PowerCode.BUSY, "hosts wake in this pass, so none goes into standby")
            for host in candidates
        ]
    else:
        standby_search.run()
        after = whatif.scores()
    standbys, refused = gate.standbys(standby_search.standbys)
    skipped = {
        entry.host: entry
        for entry in (*wake_search.skipped, *woken.skipped, *standby_search.skipped, *refused)
    }
    return PowerAdvice(
        standbys=standbys,
        wakes=woken.wakes,
        moves=woken.moves,
        repairs=woken.repairs,
        skipped=tuple(skipped[host] for host in snapshot.hosts if host in skipped),
        before=before,
        after=after,
        summary=_summary(standbys, woken.wakes, list(skipped.values())),
    )


def _summary(
    standbys: Sequence[StandbyAdvice], wakes: Sequence[WakeAdvice], skipped: Sequence[SkippedHost]
) -> str:
    """Return the advice in one sentence."""
    if wakes:
        return f"{_named([wake.host for wake in wakes])} should wake: {wakes[0].reason}"
    if standbys:
        moves = sum(len(standby.evacuations) for standby in standbys)
        watts = sum(standby.gain["watts"] for standby in standbys)
        hosts = _named([standby.host for standby in standbys])
        after = format_count(moves, "move")
        return f"{hosts} can go into standby after {after}, which saves about {watts:.0f} W"
    kept = [entry for entry in skipped if entry.code is not PowerCode.NOT_NEEDED]
    return f"no host to switch; {kept[0].host}: {kept[0].sentence}" if kept else "no host to switch"


def _named(hosts: Sequence[HostId]) -> str:
    return f"{len(hosts)} hosts ({join_names(hosts)})" if len(hosts) > 1 else str(hosts[0])
