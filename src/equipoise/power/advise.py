"""One look at the power of a cluster: wake who is missed or, if nobody is, let sleep who is not."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.balance.mending.fault import listed
from equipoise.model.estimate import Estimates
from equipoise.model.quantity import HostId
from equipoise.model.snapshot import Snapshot
from equipoise.model.words import counted
from equipoise.place.water import Floats
from equipoise.power.advice import Code, PowerAdvice, Sleep, Told, Wake
from equipoise.power.brakes import sleepy
from equipoise.power.gate import Gate
from equipoise.power.ground import ground_of
from equipoise.power.sleep import Sleeping
from equipoise.power.wake import Waking


def advise_power(
    snapshot: Snapshot,
    estimates: Estimates,
    *,
    seed: int = 0,
    balanced: bool = True,
    ahead: Floats | None = None,
) -> PowerAdvice:
    """What should be switched.

    ``balanced`` says whether somebody balances the cluster as well; ``ahead`` is what each VM that
    runs is foretold to ask for, of CPU and memory, in the order of the snapshot.
    """
    ground = ground_of(snapshot, estimates, seed=seed, balanced=balanced, ahead=ahead)
    before = ground.scores()
    waking = Waking(ground, estimates, seed)
    with ground.what_if():
        waking.run()
        after = ground.scores()
    sleeping = Sleeping(ground, estimates)
    gate = Gate(ground, estimates)
    woken = gate.wakes(waking.wakes, waking.moves)
    if woken.wakes:
        may, sleeping.told = sleepy(ground)
        sleeping.told += [
            Told(host, Code.BUSY, "hosts should wake now, so nobody is put to sleep")
            for host in may
        ]
    else:
        sleeping.run()
        after = ground.scores()
    sleeps, refused = gate.sleeps(sleeping.sleeps)
    told = {one.host: one for one in (*waking.told, *woken.told, *sleeping.told, *refused)}
    return PowerAdvice(
        sleeps=sleeps,
        wakes=woken.wakes,
        moves=woken.moves,
        mends=woken.mends,
        told=tuple(told[host] for host in snapshot.hosts if host in told),
        before=before,
        after=after,
        summary=_summary(sleeps, woken.wakes, list(told.values())),
    )


def _summary(sleeps: Sequence[Sleep], wakes: Sequence[Wake], told: Sequence[Told]) -> str:
    if wakes:
        return f"{_named([one.host for one in wakes])} should wake: {wakes[0].reason}"
    if sleeps:
        moves = sum(len(one.going) for one in sleeps)
        watts = sum(one.gain["watts"] for one in sleeps)
        hosts = _named([one.host for one in sleeps])
        return f"{hosts} can sleep after {counted(moves, 'move')}, which saves about {watts:.0f} W"
    kept = [one for one in told if one.code is not Code.NOT_NEEDED]
    return f"nothing to switch; {kept[0].host}: {kept[0].sentence}" if kept else "nothing to switch"


def _named(hosts: Sequence[HostId]) -> str:
    return f"{len(hosts)} hosts ({listed(hosts)})" if len(hosts) > 1 else str(hosts[0])
