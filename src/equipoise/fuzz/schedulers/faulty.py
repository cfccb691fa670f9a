"""Schedulers with one deliberate fault each, about plans or about networks.

The first six have the causes of defects that the SafePlace paper found in BtrPlace, so it is known
which findings a campaign must have. Where its fault plays no part, each scheduler is right. The
faults about networks need plans of any kind: careful plans never overload a link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from equipoise.adapters.targets.scheduler import PlanAcceptor
from equipoise.adapters.targets.trial import NetworkOptions, PlanSampling, Trial, TrialOptions
from equipoise.model.action import Move
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.problem.problem import Network
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState
from equipoise.plan.network import NetworkJudge, NetworkPath, NetworkPaths
from equipoise.plan.verify import replay_violations
from equipoise.spec.evaluate.view import EvaluationContext, PlanSteps, StateView
from equipoise.spec.moments import Judge, moments
from equipoise.spec.requirement import Case


class SpecificationScheduler:
    """Judges exactly as the specification. The faulty schedulers override one method of it."""

    def accepts(self, trial: Trial) -> bool:
        """Whether the plan can be executed and satisfies the constraint in its view."""
        return not trial.objections and self._keeps(trial)

    def _keeps(self, trial: Trial) -> bool:
        demand, case = trial.demand, self._believed(trial)
        seen = [self._seen(moment.state.freeze()) for moment in moments(*case)]
        views = [alternatives[0] for alternatives in seen]
        steps = PlanSteps(case.steps)
        contexts = (
            EvaluationContext(view, views[0], views[-1], steps, views)
            for alternatives in self._watched(trial, seen)
            for view in alternatives
        )
        return all(
            demand.specification.holds(demand.name, demand.arguments, context)
            for context in contexts
        )

    def _believed(self, trial: Trial) -> Case:
        """The case that it assumes."""
        return Case(trial.initial, trial.steps)

    def _seen(self, state: Snapshot) -> Sequence[StateView]:
        """Its views of the state at one moment; the constraint must hold in all of them."""
        return (StateView.of(state),)

    def _watched(
        self, trial: Trial, seen: Sequence[Sequence[StateView]]
    ) -> Sequence[Sequence[StateView]]:
        """The moments at which it checks the constraint."""
        return seen if trial.demand.continuous else seen[-1:]


class ForgivesInitialViolation(SpecificationScheduler):
    """Cause A: a constraint that is violated initially must hold only at the end.

    It treats such a continuous constraint as a discrete one, instead of rejecting the plan.
    """

    def _watched(
        self, trial: Trial, seen: Sequence[Sequence[StateView]]
    ) -> Sequence[Sequence[StateView]]:
        return seen[-1:] if trial.is_broken_at_first else super()._watched(trial, seen)


class CrashesOnEmptySets(SpecificationScheduler):
    """Cause B: crashes on an empty set, an empty list or an empty group of a packing."""

    def _keeps(self, trial: Trial) -> bool:
        for value in trial.demand.arguments.values():
            _depth(value)
        return super()._keeps(trial)


class ChecksOnlyEnds(SpecificationScheduler):
    """Cause C: checks a constraint only at the start and at the end.

    That is enough for a discrete constraint, but not for a continuous one.
    """

    def _watched(
        self, trial: Trial, seen: Sequence[Sequence[StateView]]
    ) -> Sequence[Sequence[StateView]]:
        watched = super()._watched(trial, seen)
        return (watched[0], watched[-1])


class AssumesSequentialActions(SpecificationScheduler):
    """Cause D: assumes that an action starts after all earlier actions have ended."""

    def _believed(self, trial: Trial) -> Case:
        return Case(trial.initial, _sequential(trial.steps))


class CountsMigratingTwice(SpecificationScheduler):
    """Cause E: assumes that a migrating VM runs on both hosts; it only reserves capacity on both.

    So it counts the VM on both hosts, and the constraint must hold for either host of the VM.
    """

    def _seen(self, state: Snapshot) -> Sequence[StateView]:
        moving = [
            flight.step.action
            for flight in state.in_flight.values()
            if isinstance(flight.step.action, Move)
        ]
        if not moving:
            return (StateView.of(state),)
        draft = Draft(state)
        for action in moving:
            draft.put_vm(state.vms[action.vm].but(host=action.target))
        return (_TwoHostsView.of(state), StateView.of(draft.freeze()))


class AssumesAllRunning(SpecificationScheduler):
    """Cause F: assumes that every VM on a host runs initially, even if it sleeps."""

    def _believed(self, trial: Trial) -> Case:
        draft = Draft(trial.initial)
        for vm in trial.initial.vms.values():
            if vm.state is VmState.SLEEPING:
                draft.put_vm(vm.but(state=VmState.RUNNING))
        return Case(draft.freeze(), trial.steps)


FAULTY: Final[Mapping[str, Callable[[], PlanAcceptor]]] = {
    "faulty-A": ForgivesInitialViolation,
    "faulty-B": CrashesOnEmptySets,
    "faulty-C": ChecksOnlyEnds,
    "faulty-D": AssumesSequentialActions,
    "faulty-E": CountsMigratingTwice,
    "faulty-F": AssumesAllRunning,
}
"""The schedulers by name; the letters are those of the paper's table of causes."""


def _depth(value: Any) -> int:
    """The depth of a nested argument; raises for an empty collection, which is the fault."""
    return 1 + max(map(_depth, value)) if isinstance(value, frozenset | tuple) else 0


class _TwoHostsView(StateView):
    """A state in which migrating VMs run on their targets too."""

    __slots__ = ()

    def running(self, host: HostId) -> frozenset[VmId]:
        steps = self.on_host(host)
        moving = (step.action.vm for step in steps if isinstance(step.action, Move))
        return super().running(host).union(moving)


def _sequential(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps in their order, each delayed until the one before it has ended."""
    delayed: list[Step] = []
    free_ms = 0
    for step in sorted(steps, key=lambda step: (step.start_ms, step.end_ms, step.id)):
        late_ms = max(0, free_ms - step.start_ms)
        delayed.append(step.but(start_ms=step.start_ms + late_ms, end_ms=step.end_ms + late_ms))
        free_ms = delayed[-1].end_ms
    return tuple(delayed)


NETWORK_TRIALS: Final = TrialOptions(
    plans=PlanSampling.ANY,
    network=NetworkOptions(),
    host_states=FrozenMap({HostState.ON: 1}),
    vm_states=FrozenMap({VmState.RUNNING: 1}),
    end_states=FrozenMap({VmState.RUNNING: 1}),
    paired=0,
    switched=0,
    resources=FrozenMap(),
)
"""Trials with many migrations, in which almost only the network is an obstacle."""


class IgnoresNetwork(SpecificationScheduler):
    """Assumes that networks have unlimited bandwidth."""

    def accepts(self, trial: Trial) -> bool:
        """Whether the plan can be executed in its view, and satisfies the constraint."""
        judges = () if trial.network is None else self._judges(trial, trial.network)
        return not replay_violations(trial.initial, trial.plan, judges) and self._keeps(trial)

    def _judges(self, trial: Trial, network: Network) -> tuple[Judge, ...]:
        """Its judges of the network."""
        return ()


class IgnoresCopyTime(IgnoresNetwork):
    """Assumes that a migration of any duration copies the whole memory."""

    def _judges(self, trial: Trial, network: Network) -> tuple[Judge, ...]:
        return (NetworkJudge(NetworkPaths(network), timed=trial.initial.vms),)


class IgnoresIncomingLinks(IgnoresNetwork):
    """Checks links for outgoing migrations of a host, but not for incoming ones."""

    def _judges(self, trial: Trial, network: Network) -> tuple[Judge, ...]:
        return (NetworkJudge(_OutgoingRoutes(network)),)


class AssumesHalfDuplex(IgnoresNetwork):
    """Assumes that both directions of a link share its bandwidth."""

    def _judges(self, trial: Trial, network: Network) -> tuple[Judge, ...]:
        return (NetworkJudge(_HalfDuplexRoutes(network)),)


FAULTY_NETWORK: Final[Mapping[str, Callable[[], PlanAcceptor]]] = {
    "faulty-unwired": IgnoresNetwork,
    "faulty-hurried": IgnoresCopyTime,
    "faulty-departing": IgnoresIncomingLinks,
    "faulty-simplex": AssumesHalfDuplex,
}
"""The schedulers with a fault about networks, by name."""


class _OutgoingRoutes(NetworkPaths):
    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._incoming = {
            f"link {link.id} towards {link.host}" for link in network.links if link.host
        }

    def between(self, source: HostId, target: HostId) -> NetworkPath | None:
        path = super().between(source, target)
        return path and path._replace(
            lanes=tuple(lane for lane in path.lanes if lane not in self._incoming)
        )


class _HalfDuplexRoutes(NetworkPaths):
    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._whole = {lane: lane.partition(" towards ")[0] for lane in self.capacity}
        # Both directions have the capacity of the link, so either one is right for the shared lane.
        self.capacity |= {self._whole[lane]: mbps for lane, mbps in self.capacity.items()}

    def between(self, source: HostId, target: HostId) -> NetworkPath | None:
        path = super().between(source, target)
        return path and path._replace(lanes=tuple(self._whole[lane] for lane in path.lanes))
