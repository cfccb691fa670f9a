"""Waking hosts: for those that have too much to do, for rules, and where too few are on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from equipoise.balance.advice import MANDATORY
from equipoise.balance.advise import advise
from equipoise.balance.mending.mend import Transfer
from equipoise.model.estimate import Estimates
from equipoise.model.host import HostState
from equipoise.model.policy.power import PowerAutomation
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState
from equipoise.place.water import NOBODY, Ints
from equipoise.power.advice import Code, Told, Wake
from equipoise.power.brakes import is_automatic, over_cap, wakeable
from equipoise.power.demand import Span
from equipoise.power.ground import Ground
from equipoise.power.order import wake_order
from equipoise.power.score import DUST, Scores, lowered, raised

FEW: Final = 16
"""Of more hosts than this, none is tried to be done without: each trial is a whole pass."""
VERY_BUSY: Final = 0.9
"""Above so much of what a host has, waking another one is more urgent."""


class _Helped(NamedTuple):
    """What came of a host that was woken in mind."""

    scores: Scores
    stable: bool
    """Whether it is the host that helped, and not the moving about."""


class Waking:
    """Wakes hosts in mind, one after the other, until nobody has too much to do."""

    def __init__(self, ground: Ground, estimates: Estimates, seed: int) -> None:
        self._ground, self._estimates, self._seed = ground, estimates, seed
        may, self.told = wakeable(ground)
        self._order = wake_order(ground, may, seed)
        self.wakes: list[Wake] = []
        self.moves: tuple[Transfer, ...] = ()
        """What can be moved for the rules once they are on."""

    def run(self) -> None:
        """Fill ``wakes`` and ``told``."""
        ground = self._ground
        if ground.policy.automation_at(ground.snapshot.at_ms) is PowerAutomation.OFF:
            self._wake_all(self._order, Code.WAKE_WINDOW, "no host sleeps at this time, by policy")
        self._leave_out_the_closed()
        self._for_the_minimum()
        self._for_the_busy()
        if not self.wakes and not ground.waking:
            self._for_the_rules()
        said = {one.host for one in self.told}
        for host in self._order:
            if host not in said:
                self.told.append(Told(host, Code.NOT_NEEDED, "it sleeps, and nobody needs it"))

    def _for_the_minimum(self) -> None:
        on = self._ground.count_on + len(self.wakes)
        least = self._ground.policy.hosts_on_min
        few = f"{on} hosts are on, and at least {least} must be"
        self._wake_all(self._order, Code.WAKE_MINIMUM, few, least - on)

    def _wake_all(
        self, hosts: Sequence[HostId], code: Code, reason: str, count: int | None = None
    ) -> None:
        """Wake hosts in their order, at most so many, as far as the cap lets them."""
        done = len(self.wakes)
        for host in list(hosts):
            if count is not None and len(self.wakes) - done >= count:
                return
            if not self._capped(host):
                self._wake(host, code, MANDATORY, reason)

    def _leave_out_the_closed(self) -> None:
        """Hosts that nobody may come to help nobody."""
        closed = self._ground.snapshot.settings.balance.hosts
        why = "it sleeps, and by the balance policy nobody may come to it"
        self.told += [Told(host, Code.NOT_NEEDED, why) for host in self._order if host in closed]
        self._order = [host for host in self._order if host not in closed]

    def _for_the_busy(self) -> None:
        """Wake one host after the other while that helps."""
        ground = self._ground
        if not self._order or not ground.scores().is_high:
            return
        priority, reason = self._urgency()
        self._use_what_is_on()
        scores = ground.scores()
        while scores.is_high and self._order:
            chosen = self._choose(scores)
            if chosen is None:
                break
            host, helped = chosen
            ground.open(ground.row[host])
            self._relieve(np.array([ground.row[host]]))
            fall = max(scores.high) - max(helped.scores.high)
            self._wake(host, Code.WAKE_BUSY, priority, reason, {"high_score": fall})
            scores = ground.scores()
        self._spare()

    def _spare(self) -> None:
        """Leave out who was woken first and is not needed since a larger or other one was."""
        ground = self._ground
        woken = [one for one in self.wakes if one.code is Code.WAKE_BUSY]
        if len({self._kind(one.host) for one in woken}) <= 1:
            return  # among those who are alike, the first was needed as much as the last
        for wake in woken[:-1]:
            row = ground.row[wake.host]
            units, before = ground.units_on(row), ground.scores()
            found = ground.empty(row, units, ground.rows)
            ground.close(row)
            if NOBODY in found.target or raised(before.high, ground.scores().high):
                ground.put_back(units, np.full(len(units), row))
                ground.open(row)
                continue
            ground.settle(units)
            self.wakes.remove(wake)
            why = "others that are woken make up for it"
            self.told.append(Told(wake.host, Code.NOT_NEEDED, why))

    def _use_what_is_on(self) -> None:
        """Let those that are on help each other in mind, as balancing will within some passes."""
        ground = self._ground
        used = ground.used(Span.ON).max(axis=1)
        self._relieve(ground.rows[np.argsort(used, kind="stable")])

    def _relieve(self, helpers: Ints) -> None:
        packing = self._ground.relieve(helpers)
        self._ground.settle(packing.units[packing.target != NOBODY])

    def _choose(self, before: Scores) -> tuple[HostId, _Helped] | None:
        """The first host that helps; of those that help with all there is, the one that is then
        least idle itself."""
        best: tuple[HostId, _Helped] | None = None
        tried: set[tuple[object, ...]] = set()
        for host in list(self._order):
            alike = self._kind(host)
            if alike in tried or self._capped(host):
                continue  # it would be the same once more
            tried.add(alike)
            helped = self._helped(host)
            if not lowered(before.high, helped.scores.high):
                self._tell_alike(
                    alike, Code.USELESS, "those that have too much to do cannot use it"
                )
            elif not helped.stable:
                detail = "moving VMs between those that are on does as much"
                self._tell_alike(alike, Code.NOT_NEEDED, detail)
            elif helped.scores.is_high:
                return best or (host, helped)  # others will be needed as well
            elif not raised(before.low, helped.scores.low):
                return host, helped
            elif best is None or sum(helped.scores.low) < sum(best[1].scores.low) - DUST:
                best = host, helped
        return best

    def _kind(self, host: HostId) -> tuple[object, ...]:
        """Hosts of which this is the same are as good as each other."""
        field, row = self._ground.state.field, self._ground.row[host]
        return (
            *field.room[row].tolist(),
            int(field.cores[row]),
            int(field.kind[row]),
            field.allowed[:, row].tobytes(),
        )

    def _tell_alike(self, alike: tuple[object, ...], code: Code, why: str) -> None:
        some = [host for host in self._order if self._kind(host) == alike]
        self.told += [Told(host, code, why) for host in some]
        self._order = [host for host in self._order if host not in some]

    def _helped(self, host: HostId) -> _Helped:
        """What if a host were on? And what if it were emptied again?"""
        ground, row = self._ground, self._ground.row[host]
        with ground.what_if():
            ground.open(row)
            packing = ground.relieve(np.array([row]))
            scores = ground.scores()
            came = packing.units[packing.target != NOBODY]
            others = ground.rows
            used = ground.used(Span.ON).max(axis=1)
            again = ground.empty(row, came, others[np.argsort(-used, kind="stable")])
            stable = bool((again.target == NOBODY).any())
        return _Helped(scores, stable)

    def _urgency(self) -> tuple[int, str]:
        """How urgent it is to wake somebody, and why."""
        ground = self._ground
        used = ground.used(Span.ON)
        worst = int(used.max(axis=1).argmax())
        name = ground.state.host_ids[int(ground.rows[worst])]
        cpu, memory = used[worst].tolist()
        most = max(cpu, memory)
        said = f"{name} needs {cpu:.0%} of its CPU and {memory:.0%} of its memory"
        priority = MANDATORY if most > 1 else 2 if most > VERY_BUSY else 3
        return priority, f"{said}, and {ground.policy.high:.0%} is the most it should"

    def _for_the_rules(self) -> None:
        """Wake as few hosts as it takes, in their order, if rules stay broken without them.

        With all of them awake nothing is better than it can be. Halving finds how many of the order
        it takes; then those are left out again that only stand before the ones that help.
        """
        snapshot, order = self._ground.snapshot, self._order
        if not order:
            return
        wrong = self._ground.faults
        wrong = self._faults(snapshot) if wrong is None else wrong
        if not wrong:
            return
        hosts = []
        for host in order:
            if not over_cap(self._ground, host):
                self._ground.open(self._ground.row[host])
                hosts.append(host)
        fewest = len(self._faults(awake(snapshot, hosts)))
        if fewest >= len(wrong):
            return
        low, high = 0, len(hosts)  # so many are too few, so many are enough
        while high - low > 1:
            middle = (low + high) // 2
            enough = len(self._faults(awake(snapshot, hosts[:middle]))) <= fewest
            low, high = (low, middle) if enough else (middle, high)
        needed = self._needed(hosts[:high], fewest)
        for host in needed:
            self._wake(host, Code.WAKE_RULE, MANDATORY, f"a rule is broken without: {wrong[0]}")
        then = advise(awake(snapshot, needed), self._estimates, seed=self._seed).advice
        self.moves = tuple(
            Transfer(one.vm, one.source, one.target)
            for one in then.moves
            if one.priority == MANDATORY and self._is_free(one.vm)
        )

    def _needed(self, hosts: list[HostId], fewest: int) -> list[HostId]:
        """Of hosts that are enough, those without whom more is wrong; of very many, all."""
        snapshot = self._ground.snapshot
        for host in hosts if len(hosts) <= FEW else ():
            others = [one for one in hosts if one != host]
            if len(self._faults(awake(snapshot, others))) <= fewest:
                hosts = others
        return hosts

    def _is_free(self, vm: VmId) -> bool:
        """Whether a VM is moved without asking, and not by balancing in this pass."""
        ground = self._ground
        policy = ground.snapshot.settings.balance
        return policy.moves_by_itself(vm) and vm not in dict(ground.moves)

    def _faults(self, snapshot: Snapshot) -> list[str]:
        advice = advise(snapshot, self._estimates, seed=self._seed).advice
        return [one.detail for one in advice.faults]

    def _capped(self, host: HostId) -> bool:
        """Whether the cap of the cluster is against waking a host, which is then told."""
        why = over_cap(self._ground, host)
        if why:
            self._order = [one for one in self._order if one != host]
            self.told.append(Told(host, Code.CAP, why))
        return bool(why)

    def _wake(
        self,
        host: HostId,
        code: Code,
        priority: int,
        reason: str,
        gain: dict[str, float] | None = None,
    ) -> None:
        ground = self._ground
        ground.open(ground.row[host])
        self._order = [one for one in self._order if one != host]
        automatic = is_automatic(ground.policy, host, ground.snapshot.at_ms)
        self.wakes.append(
            Wake(
                host=host,
                code=code,
                priority=priority,
                reason=reason,
                gain=gain or {},
                automatic=automatic,
            )
        )


def awake(snapshot: Snapshot, hosts: Sequence[HostId]) -> Snapshot:
    """The cluster with hosts that are on; their agents run."""
    woken = {host: snapshot.hosts[host].but(state=HostState.ON) for host in hosts}
    agents = {
        vm: snapshot.vms[vm].but(state=VmState.RUNNING)
        for host in hosts
        for vm in snapshot.residents[host]
        if snapshot.vms[vm].agent
    }
    return replace(
        snapshot,
        hosts=FrozenMap({**snapshot.hosts, **woken}),
        vms=FrozenMap({**snapshot.vms, **agents}) if agents else snapshot.vms,
    )
