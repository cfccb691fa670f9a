"""At which instants a run stops: at every timer of a scheduler while pods wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from equipoise.adapters.kubernetes.annotations import DURATION
from equipoise.adapters.kubernetes.api.store import ObjectStore
from equipoise.adapters.kubernetes.cluster.simulated_cluster import SimulatedCluster
from equipoise.adapters.kubernetes.run.driver import DeliveryOptions, KubernetesRun, RunParts
from equipoise.adapters.kubernetes.run.moment import NS_PER_S, Moment
from equipoise.adapters.kubernetes.run.scheduler import SchedulerSettings, StartedScheduler
from equipoise.adapters.kubernetes.workload.pod_workload import (
    make_workload,
    pod_object,
    uniform_nodes,
)
from equipoise.sim.pods.pod_time import PodTime
from kubernetes_world import FirstFit

RUN_S = 100


class TickingClock:
    """The clock of a scheduler with a ticker of a second, which is at rest at once."""

    name = "ticking"
    notes: Sequence[str] = ()
    acts_alone = False
    settings = SchedulerSettings()

    def __init__(self, moment: Moment, scheduler: FirstFit) -> None:
        self.moment, self.scheduler = moment, scheduler

    def environment(self, number: int) -> dict[str, str]:
        raise NotImplementedError

    def attach(self, scheduler: StartedScheduler) -> None:
        raise NotImplementedError

    async def settle(self) -> None:
        self.scheduler.schedule()

    def next_timer_ns(self) -> int | None:
        return (self.moment.now_ns // NS_PER_S + 1) * NS_PER_S

    def advance(self, to_ns: int) -> None:
        self.moment.advance(to_ns)

    def close(self) -> None:
        raise NotImplementedError


def steps_of(options: DeliveryOptions) -> int:
    """Run two pods, one after the other, on a node with room for one; return the steps."""
    moment, time = Moment(), PodTime()
    store = ObjectStore(time)
    cluster = SimulatedCluster(store, time=time)
    pod = {"cpu_milli": 1000, "annotations": {DURATION: str(RUN_S)}}
    arrivals = [(0, pod_object(name, **pod)) for name in ("first", "second")]  # type: ignore[arg-type]
    workload = make_workload("two", uniform_nodes(1), arrivals)
    clock = TickingClock(moment, FirstFit(store))
    run = KubernetesRun(RunParts(moment, store, cluster, workload, clock), options)

    async def follow() -> None:
        await run.add_nodes()
        await run.follow()

    asyncio.run(follow())
    assert moment.now_ms == 2 * RUN_S * 1000
    # The node was full while a pod waited.
    assert run.stranded_cpu_milli_ms == 0
    return run.steps


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        # The second pod waits for 100 s, and then none waits: one step to its end.
        (DeliveryOptions(), RUN_S + 1),
        (DeliveryOptions(every_timer=True), 2 * RUN_S),
        # Timers up to 12 s after the last change, when no pod is in back-off any more, then one
        # step past the first timer after that, and the rest of the wait in steps of 30 s.
        (DeliveryOptions(idle_step_s=30), 13 + 3 + 1),
    ],
)
def test_a_run_stops_at_every_timer_while_pods_wait(options: DeliveryOptions, steps: int) -> None:
    assert steps_of(options) == steps
