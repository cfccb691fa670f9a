"""ProxLB as a scheduler under test: the moves of one of its engines for a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from equipoise.adapters.proxlb.encode import (
    CONSTRAINTS,
    IGNORED,
    MAINTAINED,
    encode_question,
    open_hosts,
)
from equipoise.adapters.targets.balancer import (
    BALANCER_OPTIONS,
    JUDGED_ELSEWHERE,
    MEMORY,
    BalancerClient,
    TargetAction,
    executable_order,
    read_actions,
    steps_in_rounds,
)
from equipoise.adapters.targets.environment import PYTHON_TARGETS
from equipoise.adapters.targets.scheduler import SchedulerEntry, UnsupportedTrial
from equipoise.adapters.targets.trial import ResourceOptions, Trial
from equipoise.adapters.targets.worker import Worker, start_worker, why_missing
from equipoise.model.action import EnterMaintenance, Migrate
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import StepId
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState

SECONDS_MAX: Final = 120.0
"""The time limit of one question."""
_START: Final = partial(start_worker, "proxlb")
ISOLATED: Final = frozenset({"MaxMoves", "Cordon"})
"""The constraints that are judged in isolation; trials of the others report all objections."""
NO_CAPACITY_ELSEWHERE: Final = (
    "other hosts may lack the capacity for the VMs that stay on the host in maintenance"
)
TRIAL_OPTIONS: Final = BALANCER_OPTIONS.but(
    host_states=FrozenMap({HostState.ON: 16, HostState.STANDBY: 1, HostState.MAINTENANCE: 2}),
    vm_states=FrozenMap({VmState.RUNNING: 14, VmState.READY: 1}),
    resources=FrozenMap(
        {MEMORY: ResourceOptions(capacity=(4, 12), consumption=(1, 4), offered=1.0)}
    ),
    labels=FrozenMap({IGNORED: ("yes",), MAINTAINED: ("yes",)}),
    labelled=0.15,
    given=FrozenMap({"nb": (0,)}),
    continuous=False,
)
"""Trials without a plan, in clusters with unevenly used memory."""


class ProxLb(BalancerClient):
    """An engine of ProxLB. It receives the constraint as tags or as pools.

    ProxLB does not promise to repair an existing violation. A violation that it introduces is its
    defect. The greedy engine promises nothing about intermediate states. The solver does, and it
    states which moves run at the same time.
    """

    def __init__(
        self,
        *,
        engine: str,
        rules: str = "tags",
        starter: Callable[[], Worker] = _START,
    ) -> None:
        self._engine, self._rules = engine, rules
        super().__init__(starter)

    def plan(self, trial: Trial) -> tuple[Step, ...]:
        """Its migrations; after them, the host of ``Maintenance`` enters maintenance."""
        if trial.demand.continuous:
            raise UnsupportedTrial(
                "ProxLB states final placements; only the discrete mode is supported",
                "unsupported-mode",
            )
        question = encode_question(trial, self._engine, self._rules)
        is_isolated = trial.demand.name in ISOLATED
        acts = read_actions(
            self._ask_actions(question, seconds_max=SECONDS_MAX, is_isolated=is_isolated)
        )
        steps = steps_in_rounds(acts) if self._engine == "cpsat" else executable_order(trial, acts)
        if is_isolated and replace(trial, steps=steps).objections:
            raise UnsupportedTrial(JUDGED_ELSEWHERE, "judged-elsewhere")
        if trial.demand.name == "Maintenance":
            return (*steps, *self._enter_maintenance(trial, acts))
        return steps

    def _enter_maintenance(self, trial: Trial, acts: Sequence[TargetAction]) -> tuple[Step, ...]:
        """The step that puts the host into maintenance, which needs an empty host."""
        host = trial.demand.arguments["n"]
        migrated = {act.action.vm for act in acts if isinstance(act.action, Migrate)}
        running = [vm for vm in trial.initial.vms.values() if vm.state is VmState.RUNNING]
        stays = any(vm.host == host and vm.id not in migrated for vm in running)
        if stays and not self._has_capacity_elsewhere(trial):
            raise UnsupportedTrial(NO_CAPACITY_ELSEWHERE, "not-promised")
        last = max((act.round for act in acts), default=-1) + 1
        (step,) = steps_in_rounds([TargetAction(EnterMaintenance(host=host), last)])
        return (step.but(id=StepId(f"s{len(acts) + 1}")),)

    def _has_capacity_elsewhere(self, trial: Trial) -> bool:
        """Whether one other host has the capacity for all VMs: then every VM fits somewhere."""
        needed = sum(vm.consumption[MEMORY] for vm in trial.initial.vms.values())
        sizes = [trial.initial.hosts[host].capacity[MEMORY] for host in open_hosts(trial)]
        return max(sizes, default=0) > needed


PROXLB: Final = SchedulerEntry(
    name="proxlb",
    about="the engines of ProxLB, which balance the memory of Proxmox clusters",
    make=ProxLb,
    question="plan",
    constraints=CONSTRAINTS,
    options=TRIAL_OPTIONS,
    settings={"engine": ("greedy", "cpsat"), "rules": ("tags", "pools")},
    version=PYTHON_TARGETS["proxlb"].version,
    findings=PYTHON_TARGETS["proxlb"].findings,
    missing=partial(why_missing, "proxlb"),
)
