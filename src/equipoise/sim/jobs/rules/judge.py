"""Judges starts of jobs with the specification language.

An executor of a running job is a VM, a host of the platform is a host, and properties of hosts
and of their zones are labels. So every constraint of the library has its one meaning here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.diagnostics import closest_match
from equipoise.model.host import Host
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm, VmState
from equipoise.sim.jobs.platform import Platform
from equipoise.sim.jobs.work import Job, JobConstraint
from equipoise.spec.evaluate.view import EvaluationContext, PlanSteps, StateView
from equipoise.spec.language.syntax import Binding, Constraint, Parameter
from equipoise.spec.library import all_constraints
from equipoise.spec.requirement import Requirement
from equipoise.spec.rules import domain_of
from equipoise.spec.specification import bind_arguments

Placement = Mapping[Job, Sequence[int]]
"""The hosts of the executors of each running job."""
THIS, OTHERS, JOB = "this", "others", "job:"
"""The members of an argument about executors: of the job itself, of all others, of a named one."""

CLOSED_CONSTRAINTS: Final = frozenset(
    {
        "Among", "Ban", "Fence", "Gather", "GatherWithin", "Isolated", "KeepApart", "KeepTogether",
        "Lonely", "MaxPerHost", "MustNotRunOn", "MustRunOn", "NodeAffinity", "NodeAntiAffinity",
        "NodeSelector", "PodAntiAffinity", "ResourceCapacity", "RunningCapacity", "Split",
        "SplitAmong", "Spread", "SpreadOver",
    }
)  # fmt: skip
"""Constraints that stay true when executors leave. A test proves it for each by enumeration."""


class JobRefusal(NamedTuple):
    """A constraint that a start would violate."""

    job: Job
    """The job that the constraint belongs to: the one that starts, or one that runs."""
    constraint: str
    why: str


@dataclass(frozen=True, slots=True)
class _Demands:
    """The constraints of a job with their arguments."""

    requirements: tuple[Requirement, ...]
    groups: tuple[frozenset[str], ...]
    """The groups of hosts in the arguments."""


class JobJudge:
    """Judges states of one platform."""

    def __init__(self, platform: Platform) -> None:
        self.count = len(platform.hosts)
        self._names = [HostId(host.name) for host in platform.hosts]
        self._hosts = FrozenMap(
            {
                HostId(host.name): Host(
                    id=HostId(host.name),
                    cores=host.cores,
                    mhz_per_core=1,
                    memory_mib=1,
                    labels={**host.zone_properties, **host.properties},
                )
                for host in platform.hosts
            }
        )
        self._vms: dict[Job, tuple[tuple[int, ...], dict[VmId, Vm | None]]] = {}
        self._demands: dict[tuple[Job, int], _Demands] = {}

    def forget(self, job: Job) -> None:
        """Drop what is stored about a job that has ended."""
        self._vms.pop(job, None)
        for key in [key for key in self._demands if key[0] is job]:
            del self._demands[key]

    def problems(self, job: Job) -> list[InputProblem]:
        """Return what is wrong with the constraints of a job: names and arguments."""
        own = frozenset(executor_ids(job, job.hosts_requested))
        state = self._snapshot(dict.fromkeys(own, None))
        found: list[InputProblem] = []
        for constraint in job.constraints:
            try:
                owner = all_constraints(constraint.specification).get(constraint.name)
            except InvalidInput as error:
                found.extend(error.problems)
                continue
            if owner is None:
                near = closest_match(constraint.name, all_constraints(constraint.specification))
                cure = f"did you mean {near}?" if near else "'equipoise spec list' lists them"
                what, code = "there is no such constraint", "unknown-constraint"
            elif owner.looks_beyond(constraint.name):
                what, code = "is about the actions of a plan, and jobs have none", "invalid-rule"
                cure = "use a constraint on states"
            else:
                try:
                    for _, problems in self._bind(constraint, own, {THIS: own}, state):
                        found.extend(problems)
                except ValueError as error:
                    found.append(
                        InputProblem(
                            key=constraint.name, what=str(error), cure="name hosts of the platform",
                            code="invalid-argument",
                        )
                    )  # fmt: skip
                continue
            found.append(InputProblem(key=constraint.name, what=what, cure=cure, code=code))
        return found

    def accepts(self, job: Job, executors: Sequence[int], others: Placement) -> bool:
        """Whether the job may start beside the others."""
        return next(self._violated(job, executors, others), None) is None

    def refusal(self, job: Job, executors: Sequence[int], others: Placement) -> JobRefusal | None:
        """Return the first constraint that the start would violate; ``None`` if it may start."""
        for owner, requirement, context in self._violated(job, executors, others):
            failure = requirement.failure(context)
            return JobRefusal(owner, requirement.name, "" if failure is None else str(failure))
        return None

    def is_closed(self, jobs: Iterable[Job]) -> bool:
        """Whether the constraints of these jobs stay true when executors leave."""
        return all(
            constraint.name in CLOSED_CONSTRAINTS and not constraint.specification
            for job in jobs
            for constraint in job.constraints
        )

    def host_kinds(self, jobs: Iterable[Job]) -> list[object]:
        """Return a key per host; the constraints of the jobs do not distinguish equal keys."""
        groups = {
            group
            for job in jobs
            if job.constraints
            for group in self._demands_of(job, job.hosts_requested, {}).groups
        }
        ordered = sorted(groups, key=sorted)
        keys: list[object] = []
        for name, host in self._hosts.items():
            labels = frozenset(host.labels.items())
            keys.append((labels, host.cores, tuple(name in group for group in ordered)))
        return keys

    def _violated(
        self, job: Job, executors: Sequence[int], others: Placement
    ) -> Iterator[tuple[Job, Requirement, EvaluationContext]]:
        ruled = [other for other in others if other.constraints]
        if not job.constraints and not ruled:
            return
        running: dict[VmId, Vm | None] = {}
        for other, places in others.items():
            running.update(self._executors(other, places))
        own = self._executors(job, executors)
        after = StateView.of(self._snapshot({**running, **own}))
        before = StateView.of(self._snapshot({**running, **dict.fromkeys(own, None)}))
        context = EvaluationContext(after, before, after, PlanSteps(()), [after])
        everything = {**others, job: executors}
        for requirement in self._demands_of(job, _size(job, executors), everything).requirements:
            if not _holds(requirement, context):
                yield job, requirement, context
        earlier = EvaluationContext(before, before, before, PlanSteps(()), [before])
        for neighbour in ruled:
            # A start is charged with what it breaks: a violation that an end left is not its own.
            for requirement in self._demands_of(
                neighbour, _size(neighbour, others[neighbour]), everything
            ).requirements:
                if not _holds(requirement, context) and _holds(requirement, earlier):
                    yield neighbour, requirement, context

    def _executors(self, job: Job, places: Sequence[int]) -> dict[VmId, Vm | None]:
        """Return the executors of a job; those without a place wait."""
        known = self._vms.get(job)
        placed = tuple(places)
        if known is not None and known[0] == placed:
            return known[1]
        labels = {"job": job.name, "workload": job.workload}
        names = executor_ids(job, _size(job, placed))
        vms: dict[VmId, Vm | None] = dict.fromkeys(names, None)
        for name, number in zip(names, placed, strict=False):
            host = self._names[number]
            vms[name] = Vm(id=name, vcpus=1, memory_mib=1, host=host, labels=labels)
        self._vms[job] = placed, vms
        return vms

    def _snapshot(self, vms: Mapping[VmId, Vm | None]) -> Snapshot:
        """Return a state; an executor without a VM waits for its start."""
        return Snapshot(
            hosts=self._hosts,
            vms=FrozenMap(
                {
                    name: Vm(id=name, vcpus=1, memory_mib=1, state=VmState.READY)
                    if vm is None
                    else vm
                    for name, vm in vms.items()
                }
            ),
        )

    def _demands_of(self, job: Job, count: int, running: Placement) -> _Demands:
        """Return the constraints of a job; those about other jobs depend on what runs."""
        refers = any(_refers_to_others(constraint) for constraint in job.constraints)
        known = None if refers else self._demands.get((job, count))
        if known is not None:
            return known
        executors: dict[str, frozenset[VmId]] = {
            THIS: frozenset(executor_ids(job, count)),
            OTHERS: frozenset(),
        }
        for other, places in running.items() if refers else ():
            if other is not job:
                names = frozenset(executor_ids(other, _size(other, places)))
                executors[OTHERS] |= names
                executors[f"{JOB}{other.workload}!{other.name}"] = names
                if other.workload == job.workload:
                    executors[f"{JOB}{other.name}"] = names
        state = self._snapshot(dict.fromkeys(executors[THIS] | executors[OTHERS], None))
        demands = self._bind_all(job, executors, state)
        if not refers:
            self._demands[job, count] = demands
        return demands

    def _bind_all(
        self, job: Job, executors: Mapping[str, frozenset[VmId]], state: Snapshot
    ) -> _Demands:
        requirements: list[Requirement] = []
        groups: list[frozenset[str]] = []
        for constraint in job.constraints:
            for requirement, problems in self._bind(constraint, executors[THIS], executors, state):
                assert not problems, "the constraints of a job are checked before the run"
                requirements.append(requirement)
            for parameter in _declared(constraint).parameters:
                if domain_of(parameter) == "hosts":
                    groups.extend(self._groups(constraint.arguments[parameter.name]))
        return _Demands(tuple(requirements), tuple(groups))

    def _bind(
        self,
        constraint: JobConstraint,
        own: frozenset[VmId],
        executors: Mapping[str, frozenset[VmId]],
        state: Snapshot,
    ) -> Iterator[tuple[Requirement, Sequence[InputProblem]]]:
        """Yield the constraint with its arguments, once for each executor if it is about one."""
        owner = all_constraints(constraint.specification)[constraint.name]
        declared = owner.constraints[constraint.name]
        given: dict[str, Any] = dict(constraint.arguments)
        single: dict[str, list[VmId]] = {}
        for parameter in declared.parameters:
            domain, value = domain_of(parameter), given.get(parameter.name)
            if domain == "vms":
                members = _named_executors(THIS if value is None else value, executors)
                if parameter.binding is Binding.MEMBER:
                    single[parameter.name] = sorted(members)
                elif parameter.binding is Binding.PACKING:
                    parts = [THIS] if value is None else value
                    found = [_named_executors(part, executors) for part in parts]
                    given[parameter.name] = [group for group in found if group]
                else:
                    given[parameter.name] = sorted(members)
            elif domain == "hosts" and value is not None:
                given[parameter.name] = self._host_value(value, parameter)
        for choice in product(*single.values()):
            chosen = dict(zip(single, choice, strict=True))
            values, problems = bind_arguments(declared, given | chosen, state)
            yield Requirement(owner, constraint.name, values, continuous=True), problems

    def _host_value(self, value: Any, parameter: Parameter) -> Any:
        if parameter.binding is Binding.MEMBER:
            return self._host_name(value)
        if parameter.binding is Binding.PACKING:
            return [sorted(self._host_group(part)) for part in _as_list(value)]
        return sorted(self._host_group(value))

    def _host_group(self, value: Any) -> frozenset[str]:
        """Return hosts by name, by number, or by label (``rack=a``)."""
        found: set[str] = set()
        for member in _as_list(value):
            if isinstance(member, str) and HostId(member) not in self._hosts and "=" in member:
                key, _, wanted = member.partition("=")
                found |= {n for n, host in self._hosts.items() if host.labels.get(key) == wanted}
            else:
                found.add(self._host_name(member))
        return frozenset(found)

    def _host_name(self, value: Any) -> str:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < self.count:
            return self._names[value]
        if isinstance(value, str) and HostId(value) in self._hosts:
            return value
        raise ValueError(f"the platform has no host {value!r}")

    def _groups(self, value: Any) -> list[frozenset[str]]:
        if isinstance(value, list | tuple) and any(
            isinstance(part, list | tuple) for part in value
        ):
            return [self._host_group(part) for part in value]
        return [self._host_group(value)]


def executor_ids(job: Job, count: int) -> list[VmId]:
    """Return the names of the executors of a job."""
    return [VmId(f"{job.workload}!{job.name}#{index}") for index in range(count)]


def _size(job: Job, places: Sequence[int]) -> int:
    """Return the number of executors: a search also judges sets with fewer hosts."""
    return max(len(places), job.hosts_requested)


def _declared(constraint: JobConstraint) -> Constraint:
    owner = all_constraints(constraint.specification)[constraint.name]
    return owner.constraints[constraint.name]


def _holds(requirement: Requirement, context: EvaluationContext) -> bool:
    try:
        return requirement.specification.holds(requirement.name, requirement.arguments, context)
    except InvalidInput:  # a formula without a value counts as false
        return False


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _refers_to_others(constraint: JobConstraint) -> bool:
    """Whether an argument names executors of other jobs."""
    return any(
        domain_of(parameter) == "vms" and _names_others(constraint.arguments.get(parameter.name))
        for parameter in _declared(constraint).parameters
    )


def _names_others(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_names_others, value))
    return value is not None and value != THIS


def _named_executors(value: Any, executors: Mapping[str, frozenset[VmId]]) -> frozenset[VmId]:
    """Return the executors that an argument names; jobs that do not run have none."""
    if isinstance(value, list | tuple):
        return frozenset().union(*(_named_executors(part, executors) for part in value))
    if value not in (THIS, OTHERS) and not str(value).startswith(JOB):
        raise ValueError(f"{value!r} names no executors: write this, others or job:NAME")
    return executors.get(value, frozenset())
