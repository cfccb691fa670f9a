"""Wake: hosts that are powered on for busy hosts, for rules, and to keep the minimum on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from equipoise.balance.advice import MANDATORY_PRIORITY, Transfer
from equipoise.balance.run_pass import run_balance_pass
from equipoise.capacity.waterfill import NO_INDEX, Ints
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState
from equipoise.model.policy.power import PowerAutomation
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.power.advice import PowerCode, SkippedHost, WakeAdvice
from equipoise.power.candidates import (
    exceeds_power_cap,
    is_automatic,
    order_for_wake,
    wake_candidates,
)
from equipoise.power.utilisation import (
    SCORE_TOLERANCE,
    DemandWindow,
    UtilisationScores,
    is_lowered,
    is_raised,
)
from equipoise.power.whatif_state import WhatIfState

HOSTS_PRUNED_MAX: Final = 16
"""With more hosts than this, none is tried to be left out: each trial is a whole pass."""
VERY_HIGH_UTILISATION: Final = 0.9
"""Above this utilisation, a wake is more urgent."""


class _WakeTrial(NamedTuple):
    """The result of waking a host in the what-if state."""

    scores: UtilisationScores
    stable: bool
    """Whether the host itself helps: its new VMs would not fit on the other hosts."""


class WakeSearch:
    """Wakes hosts one after the other in the what-if state, until no host is too busy."""

    def __init__(self, whatif: WhatIfState, estimates: Estimates, seed: int) -> None:
        self._whatif, self._estimates, self._seed = whatif, estimates, seed
        candidates, self.skipped = wake_candidates(whatif)
        self._order = order_for_wake(whatif, candidates, seed)
        self.wakes: list[WakeAdvice] = []
        self.moves: tuple[Transfer, ...] = ()
        """The moves that repair rules once the hosts are on."""

    def run(self) -> None:
        """Fill ``wakes``, ``moves`` and ``skipped``."""
        whatif = self._whatif
        if whatif.policy.automation_at(whatif.snapshot.at_ms) is PowerAutomation.OFF:
            self._wake_all(
                self._order,
                PowerCode.WAKE_WINDOW,
                "the power policy is off at this time, so all hosts are on",
            )
        self._skip_closed_hosts()
        self._wake_for_minimum()
        self._wake_for_load()
        # A balance pass on the hosts that are about to be on may repair the rules. To wake more for
        # them now would be premature.
        if not self.wakes and not whatif.waking:
            self._wake_for_rules()
        reported = {entry.host for entry in self.skipped}
        for host in self._order:
            if host not in reported:
                self.skipped.append(
                    SkippedHost(
                        host,
                        PowerCode.NOT_NEEDED,
                        "it is in standby, and its capacity is not needed",
                    )
                )

    def _wake_for_minimum(self) -> None:
        """Wake hosts until ``hosts_on_min`` are on."""
        on = self._whatif.count_on + len(self.wakes)
        least = self._whatif.policy.hosts_on_min
        reason = f"{on} hosts are on; the minimum is {least}"
        self._wake_all(self._order, PowerCode.WAKE_MINIMUM, reason, least - on)

    def _wake_all(
        self, hosts: Sequence[HostId], code: PowerCode, reason: str, count: int | None = None
    ) -> None:
        """Wake hosts in their order, at most ``count``, as far as the power cap allows."""
        woken_before = len(self.wakes)
        for host in list(hosts):
            if count is not None and len(self.wakes) - woken_before >= count:
                return
            if not self._capped(host):
                self._wake(host, code, MANDATORY_PRIORITY, reason)

    def _skip_closed_hosts(self) -> None:
        """Skip hosts that accept no VMs: to wake them helps no other host."""
        closed = self._whatif.snapshot.settings.balance.hosts
        reason = "it is in standby, and the balance policy closes it"
        self.skipped += [
            SkippedHost(host, PowerCode.NOT_NEEDED, reason)
            for host in self._order
            if host in closed
        ]
        self._order = [host for host in self._order if host not in closed]

    def _wake_for_load(self) -> None:
        """Wake one host after the other while that lowers the high scores."""
        whatif = self._whatif
        if not self._order or not whatif.scores().is_high:
            return
        priority, reason = self._load_priority()
        # A host wakes only for load that the hosts already on cannot share.
        self._use_hosts_on()
        scores = whatif.scores()
        while scores.is_high and self._order:
            chosen = self._choose(scores)
            if chosen is None:
                break
            host, trial = chosen
            whatif.open(whatif.row[host])
            self._relieve(np.array([whatif.row[host]]))
            fall = max(scores.high) - max(trial.scores.high)
            self._wake(host, PowerCode.WAKE_BUSY, priority, reason, {"high_score": fall})
            scores = whatif.scores()
        self._drop_redundant()

    def _drop_redundant(self) -> None:
        """Drop wakes that later wakes of other hosts have made redundant."""
        whatif = self._whatif
        woken = [wake for wake in self.wakes if wake.code is PowerCode.WAKE_BUSY]
        if len({self._kind(wake.host) for wake in woken}) <= 1:
            return  # hosts of one kind are equally needed
        # The last wake ended the search, so the scores were still high without it.
        for wake in woken[:-1]:
            row = whatif.row[wake.host]
            units, before = whatif.units_on(row), whatif.scores()
            packing = whatif.evacuate(row, units, whatif.rows)
            whatif.close(row)
            if NO_INDEX in packing.target or is_raised(before.high, whatif.scores().high):
                whatif.restore(units, np.full(len(units), row))
                whatif.open(row)
                continue
            whatif.record_hosts(units)
            self.wakes.remove(wake)
            why = "other hosts that wake replace it"
            self.skipped.append(SkippedHost(wake.host, PowerCode.NOT_NEEDED, why))

    def _use_hosts_on(self) -> None:
        """Let the hosts that are on relieve each other, as balance will do in the next passes."""
        whatif = self._whatif
        utilisation = whatif.utilisation(DemandWindow.ON).max(axis=1)
        self._relieve(whatif.rows[np.argsort(utilisation, kind="stable")])

    def _relieve(self, helpers: Ints) -> None:
        """Move units from busy hosts to the helpers."""
        packing = self._whatif.relieve(helpers)
        self._whatif.record_hosts(packing.units[packing.target != NO_INDEX])

    def _choose(self, before: UtilisationScores) -> tuple[HostId, _WakeTrial] | None:
        """Return the first host that helps, with its trial.

        Among hosts that solve the problem alone, the one that is least idle afterwards is chosen.
        """
        best: tuple[HostId, _WakeTrial] | None = None
        tried: set[tuple[object, ...]] = set()
        for host in list(self._order):
            kind = self._kind(host)
            if kind in tried or self._capped(host):
                continue  # the trial would be the same
            tried.add(kind)
            trial = self._try_wake(host)
            if not is_lowered(before.high, trial.scores.high):
                self._skip_same_kind(
                    kind, PowerCode.NO_BENEFIT, "the busy hosts cannot move VMs to it"
                )
            elif not trial.stable:
                detail = "moves between the hosts that are on help as much"
                self._skip_same_kind(kind, PowerCode.NOT_NEEDED, detail)
            elif trial.scores.is_high:
                return best or (host, trial)  # further wakes are needed in any case
            elif not is_raised(before.low, trial.scores.low):
                return host, trial
            elif best is None or sum(trial.scores.low) < sum(best[1].scores.low) - SCORE_TOLERANCE:
                best = host, trial
        return best

    def _kind(self, host: HostId) -> tuple[object, ...]:
        """Return a key; hosts with the same key are equally useful."""
        arrays, row = self._whatif.state.arrays, self._whatif.row[host]
        return (
            *arrays.ledger.limit[row].tolist(),
            *arrays.capacity[row].tolist(),
            int(arrays.cores[row]),
            int(arrays.kind[row]),
            arrays.allowed[:, row].tobytes(),
        )

    def _skip_same_kind(self, kind: tuple[object, ...], code: PowerCode, reason: str) -> None:
        """Skip all hosts of a kind."""
        hosts = [host for host in self._order if self._kind(host) == kind]
        self.skipped += [SkippedHost(host, code, reason) for host in hosts]
        self._order = [host for host in self._order if host not in hosts]

    def _try_wake(self, host: HostId) -> _WakeTrial:
        """Return the scores with a host on, and whether its new VMs need it."""
        whatif, row = self._whatif, self._whatif.row[host]
        with whatif.what_if():
            whatif.open(row)
            packing = whatif.relieve(np.array([row]))
            scores = whatif.scores()
            arrived = packing.units[packing.target != NO_INDEX]
            # If the arrived units fit back on the other hosts, the moves helped and not the host.
            others = whatif.rows
            utilisation = whatif.utilisation(DemandWindow.ON).max(axis=1)
            evacuation = whatif.evacuate(
                row, arrived, others[np.argsort(-utilisation, kind="stable")]
            )
            stable = bool((evacuation.target == NO_INDEX).any())
        return _WakeTrial(scores, stable)

    def _load_priority(self) -> tuple[int, str]:
        """Return the priority of a wake for load, and the reason."""
        whatif = self._whatif
        utilisation = whatif.utilisation(DemandWindow.ON)
        worst = int(utilisation.max(axis=1).argmax())
        name = whatif.state.host_ids[int(whatif.rows[worst])]
        cpu, memory = utilisation[worst].tolist()
        highest = max(cpu, memory)
        phrase = f"{name} needs {cpu:.0%} of its CPU and {memory:.0%} of its memory"
        priority = (
            MANDATORY_PRIORITY if highest > 1 else 2 if highest > VERY_HIGH_UTILISATION else 3
        )
        return priority, f"{phrase}; the limit is {whatif.policy.high:.0%}"

    def _wake_for_rules(self) -> None:
        """Wake the fewest hosts, in their order, without which rules stay broken.

        With all hosts on, the number of faults is minimal. Bisection finds how many hosts of the
        order are enough. Then the hosts among them that are not needed are left out.
        """
        snapshot, order = self._whatif.snapshot, self._order
        if not order:
            return
        faults = self._whatif.faults
        faults = self._faults(snapshot) if faults is None else faults
        if not faults:
            return
        hosts = []
        for host in order:
            if not exceeds_power_cap(self._whatif, host):
                self._whatif.open(self._whatif.row[host])
                hosts.append(host)
        # Bisection assumes that one more host never adds a fault.
        fewest = len(self._faults(snapshot_with_hosts_on(snapshot, hosts)))
        if fewest >= len(faults):
            return
        low, high = 0, len(hosts)  # ``low`` hosts are too few, ``high`` are enough
        while high - low > 1:
            middle = (low + high) // 2
            enough = len(self._faults(snapshot_with_hosts_on(snapshot, hosts[:middle]))) <= fewest
            low, high = (low, middle) if enough else (middle, high)
        needed = self._needed(hosts[:high], fewest)
        for host in needed:
            self._wake(
                host,
                PowerCode.WAKE_RULE,
                MANDATORY_PRIORITY,
                f"a rule stays broken without it: {faults[0]}",
            )
        advice = run_balance_pass(
            snapshot_with_hosts_on(snapshot, needed), self._estimates, seed=self._seed
        ).advice
        self.moves = tuple(
            Transfer(move.vm, move.source, move.target)
            for move in advice.moves
            if move.priority == MANDATORY_PRIORITY and self._may_move(move.vm)
        )

    def _needed(self, hosts: list[HostId], fewest: int) -> list[HostId]:
        """Return the hosts without which there are more faults; all, if there are very many."""
        snapshot = self._whatif.snapshot
        for host in hosts if len(hosts) <= HOSTS_PRUNED_MAX else ():
            others = [other for other in hosts if other != host]
            if len(self._faults(snapshot_with_hosts_on(snapshot, others))) <= fewest:
                hosts = others
        return hosts

    def _may_move(self, vm: VmId) -> bool:
        """Return whether a VM moves without approval, and balance does not move it in this pass."""
        whatif = self._whatif
        policy = whatif.snapshot.settings.balance
        return policy.moves_by_itself(vm) and vm not in dict(whatif.moves)

    def _faults(self, snapshot: Snapshot) -> list[str]:
        """Return the faults of a balance pass."""
        advice = run_balance_pass(snapshot, self._estimates, seed=self._seed).advice
        return [fault.detail for fault in advice.faults]

    def _capped(self, host: HostId) -> bool:
        """Return whether the power cap prevents the wake of a host, which is then skipped."""
        reason = exceeds_power_cap(self._whatif, host)
        if reason:
            self._order = [other for other in self._order if other != host]
            self.skipped.append(SkippedHost(host, PowerCode.CAP, reason))
        return bool(reason)

    def _wake(
        self,
        host: HostId,
        code: PowerCode,
        priority: int,
        reason: str,
        gain: dict[str, float] | None = None,
    ) -> None:
        """Add a wake, and open the host in the what-if state."""
        whatif = self._whatif
        whatif.open(whatif.row[host])
        self._order = [other for other in self._order if other != host]
        automatic = is_automatic(whatif.policy, host, whatif.snapshot.at_ms)
        self.wakes.append(
            WakeAdvice(
                host=host,
                code=code,
                priority=priority,
                reason=reason,
                gain=gain or {},
                automatic=automatic,
            )
        )


def snapshot_with_hosts_on(snapshot: Snapshot, hosts: Sequence[HostId]) -> Snapshot:
    """Return the snapshot with hosts on and their agents running."""
    woken = {host: snapshot.hosts[host].but(state=HostState.ON) for host in hosts}
    agents = {
        vm: snapshot.vms[vm].but(state=VmState.RUNNING)
        for host in hosts
        for vm in snapshot.residents[host]
        if snapshot.vms[vm].agent
    }
    vms = snapshot.vms.but(agents) if agents else snapshot.vms
    return replace(snapshot, hosts=snapshot.hosts.but(woken), vms=vms)
