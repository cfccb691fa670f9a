"""The meaning of constraints on jobs in plain Python, and random workloads that carry them.

It shares no code with the judge: each meaning is a predicate over sets of host numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from equipoise.sim.jobs.platform import JobHost, Platform, PowerState
from equipoise.sim.jobs.work import UNLIMITED, DelayWork, Job, JobConstraint
from plain_jobs import PlainJob, PlainState

Meaning = Callable[[Sequence[int], Sequence[int]], bool]
"""Whether a constraint holds for the hosts of its job and those of all other jobs."""


@dataclass(slots=True)
class RuledWorkload:
    """A platform, jobs, and their constraints with both meanings."""

    racks: list[str]
    jobs: list[PlainJob] = field(default_factory=list)
    rules: dict[PlainJob, list[tuple[JobConstraint, Meaning]]] = field(default_factory=dict)

    def allowed(self, state: PlainState) -> bool:
        """Whether the constraints of all jobs of a state hold."""
        for job, hosts in state.items():
            others = [host for other, taken in state.items() if other is not job for host in taken]
            if not all(holds(hosts, others) for _, holds in self.rules.get(job, ())):
                return False
        return True

    def platform(self) -> Platform:
        """Return the platform of the product."""
        return Platform(
            hosts=[
                JobHost(
                    name=f"h{number}",
                    power_states=(PowerState(1.0),),
                    properties={"rack": rack} if rack else {},
                )
                for number, rack in enumerate(self.racks)
            ]
        )

    def product_jobs(self) -> list[Job]:
        """Return the jobs of the product, in the same order."""
        return [
            Job(
                "w0",
                str(job.number),
                float(job.submit_s),
                job.width,
                DelayWork(name="d", seconds=float(job.seconds)),
                UNLIMITED if job.limit_s is None else float(job.limit_s),
                constraints=tuple(constraint for constraint, _ in self.rules.get(job, ())),
            )
            for job in self.jobs
        ]


def _names(hosts: Sequence[int]) -> list[str]:
    return [f"h{number}" for number in hosts]


@st.composite
def rules(draw: st.DrawFn, racks: list[str], width: int) -> tuple[JobConstraint, Meaning]:
    """Draw a constraint that stays true when jobs leave."""
    count = len(racks)
    some = st.lists(st.integers(0, count - 1), unique=True, min_size=1).map(sorted)
    kind = draw(
        st.sampled_from(
            ["SpreadOver", "GatherWithin", "Among", "Fence", "Ban", "RunningCapacity", "Apart"]
        )
    )
    if kind == "SpreadOver":
        return JobConstraint(kind, {"key": "rack"}), lambda own, _: _is_spread(racks, own)
    if kind == "GatherWithin":
        return JobConstraint(
            kind, {"key": "rack"}
        ), lambda own, _: len({racks[host] for host in own}) <= 1
    if kind == "Among":
        first = draw(some)
        rest = [number for number in range(count) if number not in first]
        groups = [first, rest[: draw(st.integers(0, len(rest)))]]
        groups = [group for group in groups if group]
        constraint = JobConstraint(kind, {"parts": [_names(group) for group in groups]})
        return constraint, lambda own, _: any(set(own) <= set(group) for group in groups)
    if kind == "Fence":
        group = draw(some)
        return JobConstraint(kind, {"ns": list(group)}), lambda own, _: set(own) <= set(group)
    if kind == "Ban":
        group = draw(some)
        constraint = JobConstraint(kind, {"ns": _names(group)})
        return constraint, lambda own, _: not set(own) & set(group)
    if kind == "RunningCapacity":
        group, most = draw(some), draw(st.integers(0, count))
        constraint = JobConstraint(kind, {"ns": _names(group), "nb": most})
        return (
            constraint,
            lambda own, others: sum(host in group for host in [*own, *others]) <= most,
        )
    constraint = JobConstraint("PodAntiAffinity", {"others": "others", "key": "rack"})
    return (
        constraint,
        lambda own, others: (
            not {racks[host] for host in own if racks[host]} & {racks[host] for host in others}
        ),
    )


def _is_spread(racks: Sequence[str], own: Sequence[int]) -> bool:
    used = [racks[host] for host in own if racks[host]]
    return len(used) == len(set(used))


@st.composite
def ruled_workloads(draw: st.DrawFn, jobs_max: int = 8) -> RuledWorkload:
    """Draw a small platform with racks, and jobs of which most carry constraints."""
    count = draw(st.integers(1, 6))
    racks = [draw(st.sampled_from(["a", "b", "c", ""])) for _ in range(count)]
    case = RuledWorkload(racks)
    submit_s = 0
    for number in range(draw(st.integers(1, jobs_max))):
        submit_s += draw(st.sampled_from([0, 0, 0, 1, 3]))
        width = draw(st.integers(1, count))
        job = PlainJob(
            number, submit_s, width, draw(st.integers(1, 8)), draw(st.none() | st.integers(1, 10))
        )
        case.jobs.append(job)
        case.rules[job] = draw(st.lists(rules(racks, width), max_size=2))
    return case
