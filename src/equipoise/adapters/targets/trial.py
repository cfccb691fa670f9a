"""A trial: a cluster, a plan for it and a constraint, which a scheduler accepts or rejects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from equipoise.model.host import Host
from equipoise.model.plan import Plan, Step, Violation
from equipoise.model.problem.problem import Network
from equipoise.model.quantity import PlanId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm
from equipoise.plan.network import NetworkJudge, NetworkPaths
from equipoise.plan.verify import replay_violations
from equipoise.spec.requirement import (
    Case,
    CaseViolation,
    Requirement,
    case_holds,
    holds_in_state,
    judge_case,
)


@dataclass(frozen=True)
class Trial:
    """A cluster, a plan for it, and a constraint with its arguments."""

    demand: Requirement
    initial: Snapshot
    steps: tuple[Step, ...]
    network: Network | None = None
    """The network of its migrations; without one, durations are not checked."""

    @cached_property
    def plan(self) -> Plan:
        """The steps as a plan."""
        return Plan(id=PlanId("trial"), base_version=self.initial.version, steps=self.steps)

    @cached_property
    def objections(self) -> tuple[Violation, ...]:
        """Why the plan cannot be executed: the violations of its preconditions and capacities.

        The constraint of the trial plays no part.
        """
        judges = () if self.network is None else (NetworkJudge(NetworkPaths(self.network)),)
        return replay_violations(self.initial, self.plan, judges)

    @cached_property
    def violation(self) -> CaseViolation | None:
        """The first violation of the constraint; ``None`` if the plan satisfies it."""
        return judge_case(self.demand, Case(self.initial, self.steps))

    @cached_property
    def is_broken_at_first(self) -> bool:
        """Whether the constraint is violated before the plan starts."""
        return not holds_in_state(self.demand, self.initial)

    @cached_property
    def is_acceptable(self) -> bool:
        """Whether the plan can be executed and satisfies the constraint."""
        return not self.objections and case_holds(self.demand, Case(self.initial, self.steps))

    def set_known_verdict(self, *, keeps: bool, broken_at_first: bool, careful: bool) -> None:
        """Store the verdict of a batch, so that the trial is not judged again.

        ``careful`` means that the plan can be executed by construction.
        """
        # The names of cached properties: a value in the dictionary is what they return.
        known = vars(self)
        known["is_broken_at_first"] = broken_at_first
        if careful:
            known["objections"] = ()
            known["is_acceptable"] = keeps


def with_machines(trial: Trial, hosts: Iterable[Host], vms: Iterable[Vm]) -> Trial:
    """A copy of a trial with other hosts and VMs, without the links of removed hosts."""
    before = trial.initial
    cluster = before.inventory().but(hosts=tuple(hosts), vms=tuple(vms))
    initial = Snapshot.of(cluster, at_ms=before.at_ms, version=before.version)
    network = trial.network and trial.network.but(
        links=tuple(link for link in trial.network.links if link.host in (None, *initial.hosts))
    )
    return replace(trial, initial=initial, network=network)
