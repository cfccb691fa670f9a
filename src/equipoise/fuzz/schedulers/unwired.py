"""Schedulers that are wrong about networks on purpose, and right about everything else.

So it is known beforehand what a campaign with networks must find. They are asked about any plans:
in careful ones nothing is ever too much, and there only those show who think that it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from equipoise.fuzz.generate.options import Options, Plans, Wires
from equipoise.fuzz.schedulers.faulty import ByTheBook
from equipoise.fuzz.schedulers.scheduler import Accepting
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.host import HostState
from equipoise.model.problem.network import Network
from equipoise.model.quantity import HostId
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState
from equipoise.plan.network import NetworkJudge, Way, Ways
from equipoise.plan.verify import judged
from equipoise.spec.moment import Judge

TRIALS: Final = Options(
    plans=Plans.ANY,
    network=Wires(),
    host_states=FrozenMap({HostState.ON: 1}),
    vm_states=FrozenMap({VmState.RUNNING: 1}),
    end_states=FrozenMap({VmState.RUNNING: 1}),
    paired=0,
    switched=0,
    resources=FrozenMap(),
)
"""Trials with many migrations, and with little trouble but for the network."""


class Unwired(ByTheBook):
    """Thinks that a network carries whatever comes, at any speed."""

    def accepts(self, trial: Trial) -> bool:
        """Whether machines could carry the plan out as it sees them, and the constraint holds."""
        judges = () if trial.network is None else self._judges(trial, trial.network)
        return not judged(trial.initial, trial.plan, judges) and self._keeps(trial)

    def _judges(self, trial: Trial, network: Network) -> tuple[Judge, ...]:
        """How it looks at a network."""
        return ()


class Hurried(Unwired):
    """Thinks that no time is too short for what a migration copies."""

    def _judges(self, trial: Trial, network: Network) -> tuple[Judge, ...]:
        return (NetworkJudge(Ways(network), timed=trial.initial.vms),)


class Departing(Unwired):
    """Thinks that a link is shared by those who leave a host, and not by those who come to one."""

    def _judges(self, trial: Trial, network: Network) -> tuple[Judge, ...]:
        return (NetworkJudge(_Leaving(network)),)


class Simplex(Unwired):
    """Thinks that those who go one way over a link and those who go the other way share it."""

    def _judges(self, trial: Trial, network: Network) -> tuple[Judge, ...]:
        return (NetworkJudge(_BothWays(network)),)


UNWIRED: Final[Mapping[str, Callable[[], Accepting]]] = {
    "faulty-unwired": Unwired,
    "faulty-hurried": Hurried,
    "faulty-departing": Departing,
    "faulty-simplex": Simplex,
}
"""What makes each of them, by name."""


class _Leaving(Ways):
    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._last = {f"link {one.id} towards {one.host}" for one in network.links if one.host}

    def between(self, source: HostId, target: HostId) -> Way | None:
        way = super().between(source, target)
        return way and way._replace(lanes=tuple(one for one in way.lanes if one not in self._last))


class _BothWays(Ways):
    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._whole = {lane: lane.partition(" towards ")[0] for lane in self.capacity}
        self.capacity |= {self._whole[lane]: mbps for lane, mbps in self.capacity.items()}

    def between(self, source: HostId, target: HostId) -> Way | None:
        way = super().between(source, target)
        return way and way._replace(lanes=tuple(self._whole[lane] for lane in way.lanes))
