"""ProxLB as a scheduler under test: what one of its engines would do with a cluster.

Not called ``proxlb``: the worker has this folder on its path, and would import us instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from equipoise.fuzz.generate.options import Amounts
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.targets.at_rest import AT_REST, ELSEWHERE, MEMORY, Mover
from equipoise.fuzz.targets.environment import TARGETS
from equipoise.fuzz.targets.moves import Act, acts_of, in_some_order, steps_of
from equipoise.fuzz.targets.proxlb_question import (
    CONSTRAINTS,
    IGNORED,
    MAINTAINED,
    encode,
    open_hosts,
)
from equipoise.fuzz.targets.worker import Worker, start, why_missing
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import EnterMaintenance, Migrate
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import StepId
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState

SECONDS_MAX: Final = 120.0
"""For one question."""
_BEGIN: Final = partial(start, "proxlb")
APART: Final = frozenset({"MaxMoves", "Cordon"})
"""What is judged by itself; with the others, whatever machines may have against a plan is."""
FULL: Final = "there may be no room elsewhere for those who stay on the host in maintenance"
TRIALS: Final = AT_REST.but(
    host_states=FrozenMap({HostState.ON: 16, HostState.STANDBY: 1, HostState.MAINTENANCE: 2}),
    vm_states=FrozenMap({VmState.RUNNING: 14, VmState.READY: 1}),
    resources=FrozenMap({MEMORY: Amounts(capacity=(4, 12), consumption=(1, 4), offered=1.0)}),
    labels=FrozenMap({IGNORED: ("yes",), MAINTAINED: ("yes",)}),
    labelled=0.15,
    given=FrozenMap({"nb": (0,)}),
    continuous=False,
)
"""Clusters in which memory is unevenly used, and no plan."""


class ProxLb(Mover):
    """An engine of ProxLB, told the constraint by tags or by pools.

    What it finds broken it only promises to try to mend; what it breaks itself is held against it.
    The greedy engine promises nothing of what is in between; the solver does, and says which moves
    are made at the same time.
    """

    def __init__(
        self,
        *,
        engine: str,
        rules: str = "tags",
        begin: Callable[[], Worker] = _BEGIN,
    ) -> None:
        self._engine, self._rules = engine, rules
        super().__init__(begin)

    def plan(self, trial: Trial) -> tuple[Step, ...]:
        """Its migrations; a host that is to be maintained is taken out of service after them."""
        if trial.demand.continuous:
            raise Unsupported("it says where guests will be, and not what is in between")
        question = encode(trial, self._engine, self._rules)
        is_apart = trial.demand.name in APART
        acts = acts_of(self._told(question, seconds_max=SECONDS_MAX, is_apart=is_apart))
        steps = steps_of(acts) if self._engine == "cpsat" else in_some_order(trial, acts)
        if is_apart and replace(trial, steps=steps).objections:
            raise Unsupported(ELSEWHERE)
        if trial.demand.name == "Maintenance":
            return (*steps, *self._taken_out(trial, acts))
        return steps

    def _taken_out(self, trial: Trial, acts: Sequence[Act]) -> tuple[Step, ...]:
        """Take the host out of service, for which nobody may be left on it."""
        host = trial.demand.arguments["n"]
        gone = {act.action.vm for act in acts if isinstance(act.action, Migrate)}
        running = [one for one in trial.initial.vms.values() if one.state is VmState.RUNNING]
        left = [one for one in running if one.host == host and one.id not in gone]
        if left and not self._is_roomy(trial):
            raise Unsupported(FULL)
        last = max((act.round for act in acts), default=-1) + 1
        (step,) = steps_of([Act(EnterMaintenance(host=host), last)])
        return (step.but(id=StepId(f"s{len(acts) + 1}")),)

    def _is_roomy(self, trial: Trial) -> bool:
        """Whether some other host has room for all that run, so that they surely go somewhere."""
        needs = sum(one.consumption[MEMORY] for one in trial.initial.vms.values())
        sizes = [trial.initial.hosts[host].capacity[MEMORY] for host in open_hosts(trial)]
        return max(sizes, default=0) > needs


PROXLB: Final = Known(
    name="proxlb",
    about="the engines of ProxLB, which balance the memory of Proxmox clusters",
    make=ProxLb,
    question="plan",
    constraints=CONSTRAINTS,
    options=TRIALS,
    settings={"engine": ("greedy", "cpsat"), "rules": ("tags", "pools")},
    version=TARGETS["proxlb"].version,
    findings=TARGETS["proxlb"].findings,
    missing=partial(why_missing, "proxlb"),
)
