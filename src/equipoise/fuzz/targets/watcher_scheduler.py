"""OpenStack Watcher as a scheduler under test: what one of its strategies would do.

Not called ``watcher``: the worker has this folder on its path, and would import us instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from equipoise.fuzz.generate.options import Amounts
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.targets.at_rest import ANYHOW, AT_REST, ELSEWHERE, MEMORY, Mover
from equipoise.fuzz.targets.environment import TARGETS
from equipoise.fuzz.targets.moves import acts_of, in_some_order
from equipoise.fuzz.targets.watcher_question import (
    BACKUP,
    CONSTRAINTS,
    CPU,
    DISK,
    EXCLUDED,
    STRATEGIES,
    UNKNOWN,
    VCPUS,
    encode,
)
from equipoise.fuzz.targets.worker import Worker, start, why_missing
from equipoise.fuzz.trial.fewer import with_machines
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState

SECONDS_MAX: Final = 60.0
"""For one question."""
UNCLAIMED: Final = "the strategy does not look after what there is too little of"
_BEGIN: Final = partial(start, "watcher")
TRIALS: Final = AT_REST.but(
    host_states=FrozenMap({HostState.ON: 16, HostState.STANDBY: 2, HostState.MAINTENANCE: 2}),
    vm_states=FrozenMap({VmState.RUNNING: 8, VmState.SLEEPING: 1}),
    resources=FrozenMap(
        {
            VCPUS: Amounts(capacity=(4, 12), consumption=(1, 4), offered=1.0),
            MEMORY: Amounts(capacity=(4, 12), consumption=(1, 4), offered=1.0),
            DISK: Amounts(capacity=(4, 12), consumption=(0, 4), offered=1.0),
        }
    ),
    labels=FrozenMap({CPU: ("10", "50", "100", UNKNOWN), BACKUP: ("yes",), EXCLUDED: ("yes",)}),
    labelled=0.5,
    given=FrozenMap({"nb": (1,)}),
)
"""Clusters in which there is something to level, to consolidate and to maintain, and no plan."""


class Watcher(Mover):
    """A strategy of Watcher. What it does is held against it only where it claims something.

    Its planner puts actions into an order of its own and lets migrations run side by side, so all
    that counts is whether they can be carried out in some order.
    """

    def __init__(
        self,
        *,
        strategy: str,
        begin: Callable[[], Worker] = _BEGIN,
    ) -> None:
        self._strategy, self._claims = strategy, STRATEGIES[strategy]
        super().__init__(begin)

    def plan(self, trial: Trial) -> tuple[Step, ...]:
        """Its migrations, and the hosts that it disables and enables."""
        question = encode(trial, self._strategy)
        is_apart = trial.demand.name != ANYHOW
        said = self._told(question, seconds_max=SECONDS_MAX, is_apart=is_apart)
        if any(one.get("to", "") is None for one in said):
            raise Unsupported("it leaves to Nova's scheduler where VMs go")
        acts = acts_of(switched(trial, said))
        steps = in_some_order(trial, acts)
        wrong = replace(trial, steps=steps).objections
        if wrong and is_apart:
            raise Unsupported(ELSEWHERE)
        if wrong and replace(self._claimed(trial), steps=steps).objections != wrong:
            raise Unsupported(UNCLAIMED)
        return steps

    def _claimed(self, trial: Trial) -> Trial:
        """The same trial, in which VMs take nothing of what the strategy does not look after."""
        vms = (
            vm.but(
                consumption={
                    name: amount
                    for name, amount in vm.consumption.items()
                    if name in self._claims.resources
                }
            )
            for vm in trial.initial.vms.values()
        )
        return with_machines(trial, trial.initial.hosts.values(), vms)


def switched(trial: Trial, told: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The same without what changes nothing; who is disabled and not used again, is so last.

    To disable a service says that nobody may come any more; our hosts must be empty besides.
    """
    is_open = {host.id: host.state is HostState.ON for host in trial.initial.hosts.values()}
    found: list[Mapping[str, Any]] = []
    last: list[Mapping[str, Any]] = []
    for place, one in enumerate(told):
        if one["do"] == "migrate":
            found.append(one)
        elif is_open[one["host"]] != (one["do"] == "open"):
            is_open[one["host"]] = one["do"] == "open"
            (found if _is_used(one["host"], told[place + 1 :]) else last).append(one)
    return [*found, *last]


def _is_used(host: str, told: Sequence[Mapping[str, Any]]) -> bool:
    """Whether somebody comes to a host, or it is enabled again."""
    return any(
        one.get("to") == host or (one["do"] == "open" and one["host"] == host) for one in told
    )


WATCHER: Final = Known(
    name="watcher",
    about="the strategies of OpenStack Watcher that need no services",
    make=Watcher,
    question="plan",
    constraints=CONSTRAINTS,
    options=TRIALS,
    settings={"strategy": tuple(STRATEGIES)},
    version=TARGETS["watcher"].version,
    findings=TARGETS["watcher"].findings,
    missing=partial(why_missing, "watcher"),
)
