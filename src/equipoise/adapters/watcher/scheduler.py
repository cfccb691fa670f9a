"""OpenStack Watcher as a scheduler under test: the actions of one of its strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from equipoise.adapters.targets.balancer import (
    ANY_OBJECTION,
    BALANCER_OPTIONS,
    JUDGED_ELSEWHERE,
    MEMORY,
    BalancerClient,
    executable_order,
    read_actions,
)
from equipoise.adapters.targets.environment import PYTHON_TARGETS
from equipoise.adapters.targets.scheduler import SchedulerEntry, UnsupportedTrial
from equipoise.adapters.targets.trial import ResourceOptions, Trial, with_machines
from equipoise.adapters.targets.worker import Worker, start_worker, why_missing
from equipoise.adapters.watcher.encode import (
    BACKUP,
    CONSTRAINTS,
    CPU,
    DISK,
    EXCLUDED,
    STRATEGIES,
    UNKNOWN,
    VCPUS,
    encode_question,
)
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState

SECONDS_MAX: Final = 60.0
"""The time limit of one question."""
UNCLAIMED: Final = "the strategy does not check the resource that is exceeded"
_START: Final = partial(start_worker, "watcher")
TRIAL_OPTIONS: Final = BALANCER_OPTIONS.but(
    host_states=FrozenMap({HostState.ON: 16, HostState.STANDBY: 2, HostState.MAINTENANCE: 2}),
    vm_states=FrozenMap({VmState.RUNNING: 8, VmState.SLEEPING: 1}),
    resources=FrozenMap(
        {
            VCPUS: ResourceOptions(capacity=(4, 12), consumption=(1, 4), offered=1.0),
            MEMORY: ResourceOptions(capacity=(4, 12), consumption=(1, 4), offered=1.0),
            DISK: ResourceOptions(capacity=(4, 12), consumption=(0, 4), offered=1.0),
        }
    ),
    labels=FrozenMap({CPU: ("10", "50", "100", UNKNOWN), BACKUP: ("yes",), EXCLUDED: ("yes",)}),
    labelled=0.5,
    given=FrozenMap({"nb": (1,)}),
)
"""Trials without a plan, in clusters that need balancing, consolidation or maintenance."""


class Watcher(BalancerClient):
    """A strategy of Watcher. A violation is its defect only where it promises something.

    Watcher's planner reorders actions and runs migrations in parallel, so it only matters whether
    some order of its actions can be executed.
    """

    def __init__(
        self,
        *,
        strategy: str,
        starter: Callable[[], Worker] = _START,
    ) -> None:
        self._strategy, self._claims = strategy, STRATEGIES[strategy]
        super().__init__(starter)

    def plan(self, trial: Trial) -> tuple[Step, ...]:
        """Its migrations, and the services that it disables and enables."""
        question = encode_question(trial, self._strategy)
        is_isolated = trial.demand.name != ANY_OBJECTION
        actions = self._ask_actions(question, seconds_max=SECONDS_MAX, is_isolated=is_isolated)
        if any(action.get("to", "") is None for action in actions):
            raise UnsupportedTrial("Nova's scheduler chooses the target hosts", "not-promised")
        steps = executable_order(trial, read_actions(effective_switches(trial, actions)))
        objections = replace(trial, steps=steps).objections
        if objections and is_isolated:
            raise UnsupportedTrial(JUDGED_ELSEWHERE, "judged-elsewhere")
        if objections:
            claimed = replace(self._without_unclaimed_resources(trial), steps=steps)
            # An objection that disappears without these resources is about one that the strategy
            # ignores.
            if claimed.objections != objections:
                raise UnsupportedTrial(UNCLAIMED, "not-promised")
        return steps

    def _without_unclaimed_resources(self, trial: Trial) -> Trial:
        """A copy of a trial without consumption of resources that the strategy does not check."""
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


def effective_switches(
    trial: Trial, actions: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The actions without switches that change nothing; final switches to disabled come last.

    A disabled service accepts no VM. Our maintenance mode also needs an empty host, so the
    migrations away from the host must come before it.
    """
    is_open = {host.id: host.state is HostState.ON for host in trial.initial.hosts.values()}
    first: list[Mapping[str, Any]] = []
    last: list[Mapping[str, Any]] = []
    for position, action in enumerate(actions):
        if action["do"] == "migrate":
            first.append(action)
            continue
        host, opens = action["host"], action["do"] == "open"
        if is_open[host] != opens:
            is_open[host] = opens
            (first if _is_used_later(host, actions[position + 1 :]) else last).append(action)
    return [*first, *last]


def _is_used_later(host: str, actions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a later action migrates a VM to a host or enables the host again."""
    return any(
        action.get("to") == host or (action["do"] == "open" and action["host"] == host)
        for action in actions
    )


WATCHER: Final = SchedulerEntry(
    name="watcher",
    about="the strategies of OpenStack Watcher that need no services",
    make=Watcher,
    question="plan",
    constraints=CONSTRAINTS,
    options=TRIAL_OPTIONS,
    settings={"strategy": tuple(STRATEGIES)},
    version=PYTHON_TARGETS["watcher"].version,
    findings=PYTHON_TARGETS["watcher"].findings,
    missing=partial(why_missing, "watcher"),
)
