"""Parallel tasks that share hosts and links, by the fluid model of SimGrid's parallel tasks (L07).

A task waits for the largest latency of its routes and then progresses at one rate on all its
resources. The rates follow a fair share per bottleneck: every resource offers each of its tasks
an equal part of what it has left, and a task takes the smallest offer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from equipoise.sim.jobs.platform import Link, Platform

_CAPACITY_PRECISION: Final = 1e-5
"""A resource with less left, in flops or bytes per second, counts as used up (SimGrid's value)."""
_TIME_PRECISION: Final = 1e-9
_WORK_PRECISION: Final = _CAPACITY_PRECISION * _TIME_PRECISION
_TCP_WINDOW_BYTES: Final = 4194304.0
_ROUNDS_BEFORE_JUMP: Final = 100


@dataclass(slots=True, eq=False)
class SharedResource:
    """A host or a link, as capacity that tasks share."""

    capacity: float
    shared: bool = True
    remaining: float = 0.0
    offer: float = 0.0


@dataclass(slots=True, eq=False)
class Task:
    """A parallel task. ``remaining`` falls from 1 to 0 at ``rate`` per second."""

    demands: Mapping[SharedResource, float]
    """How much of each resource the whole task uses, in flops or bytes."""
    latency_s: float = 0.0
    rate_limit: float = inf
    """The largest rate, by the latency of its routes and the cores of its hosts."""
    host_flops: Mapping[int, float] = field(default_factory=dict)
    """The operations on each host, from which the load and the power of the host follow."""
    hosts: Sequence[int] = ()
    """The hosts of all executors, also of those that compute nothing."""
    repeats: Mapping[SharedResource, tuple[int, float]] = field(default_factory=dict)
    """On hosts with more than one executor: how many compute, and the largest share of one."""
    flops: Sequence[float] = ()
    sent: Sequence[float] = ()
    """What each executor computes and sends, as the task was built."""
    cores: Sequence[tuple[SharedResource, int, float]] = ()
    """On hosts of many cores: the host, its cores, and what one executor computes on one core."""
    route_limit: float = inf
    """The part of the limit that does not follow the speeds of hosts."""
    remaining: float = 1.0
    rate: float = 0.0
    increment: float = 0.0

    def follow_speeds(self) -> None:
        """Take the limit of each core from the present speed of its host."""
        if self.cores:
            self.rate_limit = self.route_limit
            for host, cores, amount in self.cores:
                self.rate_limit = min(self.rate_limit, host.capacity / cores / amount)

    @property
    def time_left_s(self) -> float:
        """The time to the end of the latency, or to the end of the task at its present rate."""
        if self.latency_s > 0:
            return self.latency_s
        if self.remaining <= 0:
            return 0.0
        return self.remaining / self.rate if self.rate > 0 else inf

    def advance(self, delta_s: float) -> None:
        """Let time pass."""
        if self.latency_s > 0:
            left = self.latency_s - delta_s
            self.latency_s = left if left >= _TIME_PRECISION else 0.0
            return
        left = self.remaining - self.rate * delta_s
        self.remaining = left if left >= _WORK_PRECISION else 0.0


def share(tasks: Sequence[Task]) -> None:
    """Set the rates of all tasks.

    A task that is complete in one round is still charged with its last increment in the following
    rounds, and a link that is not shared is charged with its smallest user. So the result is not
    max-min fair, but it is what SimGrid computes.
    """
    users: dict[SharedResource, list[Task]] = {}
    active: dict[Task, None] = {}
    for task in tasks:
        task.rate = task.increment = 0.0
        if task.latency_s > 0:
            continue
        if not task.demands:
            task.remaining = 0.0
            continue
        task.follow_speeds()
        active[task] = None
        for resource in task.demands:
            users.setdefault(resource, []).append(task)
    for resource in users:
        resource.remaining = resource.capacity
    rounds = 0
    while active:
        rounds += 1
        if rounds > _ROUNDS_BEFORE_JUMP:
            _jump(users, active)
        _run_round(users, active)


def _run_round(users: dict[SharedResource, list[Task]], active: dict[Task, None]) -> None:
    for resource, group in users.items():
        parts = 1
        if resource.shared:
            parts = max(sum(_executors(task, resource) for task in group if task in active), 1)
        resource.offer = resource.remaining / parts
    for task in list(active):
        increment = task.rate_limit - task.rate
        for resource, demand in task.demands.items():
            largest = task.repeats[resource][1] if resource in task.repeats else demand
            increment = min(increment, resource.offer / largest)
        task.increment = increment
        task.rate += increment
        if task.rate >= task.rate_limit:
            del active[task]
    for resource, group in list(users.items()):
        charges = [task.demands[resource] * task.increment for task in group]
        left = resource.remaining - (sum(charges) if resource.shared else min(charges))
        resource.remaining = left if left > _CAPACITY_PRECISION else 0.0
        if resource.remaining <= 0 or not any(task in active for task in group):
            for task in group:
                active.pop(task, None)
            del users[resource]


def _jump(users: dict[SharedResource, list[Task]], active: dict[Task, None]) -> None:
    """Do many rounds at once where a slow task takes little of a wide link that is not shared.

    Such a link loses the same amount in each round, so the increments of the tasks that it limits
    are an arithmetic series. It could have millions of terms.
    """
    losses: dict[SharedResource, float] = {}
    for task in active:
        for resource in task.demands:
            if resource.shared:
                return
            group = users[resource]
            complete = [other for other in group if other not in active]
            losses[resource] = min(
                (other.demands[resource] * other.increment for other in complete), default=inf
            )
    bounds = [int(resource.remaining / loss) - 2 for resource, loss in losses.items() if loss]
    rounds = min(bounds, default=0)
    while rounds > 1 and not all(_can_jump(task, losses, rounds) for task in active):
        rounds //= 2
    if rounds <= 1:
        return
    for task in active:
        first, last = _increment(task, losses, 0), _increment(task, losses, rounds - 1)
        task.rate += rounds * (first + last) / 2
        task.increment = last
    for resource, loss in losses.items():
        resource.remaining -= rounds * loss


def _increment(task: Task, losses: Mapping[SharedResource, float], rounds: int) -> float:
    """Return the increment of a task after a number of rounds."""
    return min(
        (resource.remaining - rounds * losses[resource]) / demand
        for resource, demand in task.demands.items()
    )


def _can_jump(task: Task, losses: Mapping[SharedResource, float], rounds: int) -> bool:
    """True if one resource limits the task in all rounds, and none ends or changes its loss."""
    first, last = _increment(task, losses, 0), _increment(task, losses, rounds - 1)
    if not 0 < last <= first or task.rate + rounds * first >= task.rate_limit:
        return False
    limits = any(
        resource.remaining / demand == first
        and (resource.remaining - (rounds - 1) * losses[resource]) / demand == last
        for resource, demand in task.demands.items()
    )
    return limits and all(
        last * demand >= losses[resource] for resource, demand in task.demands.items()
    )


def _executors(task: Task, resource: SharedResource) -> int:
    return task.repeats[resource][0] if resource in task.repeats else 1


class TaskFactory:
    """Builds tasks on a platform, and follows the speed of its hosts."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        count = len(platform.hosts) + len(platform.storages)
        self._hosts = [
            self._host_resource(number, platform.host(number).initial_state)
            for number in range(count)
        ]
        self._links: dict[Link, SharedResource] = {}

    def _host_resource(self, number: int, state: int) -> SharedResource:
        host = self._platform.host(number)
        return SharedResource(host.power_states[state].speed_flops * host.cores)

    def set_power_state(self, number: int, state: int) -> None:
        """Change the speed of a host; running tasks follow at the next ``share``."""
        host = self._platform.host(number)
        self._hosts[number].capacity = host.power_states[state].speed_flops * host.cores

    def capacity(self, number: int) -> float:
        """Return the operations per second of a host, all cores together."""
        return self._hosts[number].capacity

    def build(self, hosts: Sequence[int], flops: Sequence[float], sent: Sequence[float]) -> Task:
        """Return a task with one executor per entry of ``hosts``.

        ``sent[i * n + j]`` is what executor i sends to executor j; an empty sequence is nothing.
        """
        demands: dict[SharedResource, float] = {}
        host_flops: dict[int, float] = {}
        repeats: dict[SharedResource, tuple[int, float]] = {}
        limits: list[tuple[SharedResource, int, float]] = []
        for number, amount in zip(hosts, flops, strict=True):
            if amount > 0:
                resource = self._hosts[number]
                if resource in demands:
                    count, largest = repeats.get(resource, (1, demands[resource]))
                    repeats[resource] = (count + 1, max(largest, amount))
                demands[resource] = demands.get(resource, 0.0) + amount
                host_flops[number] = host_flops.get(number, 0.0) + amount
                # One executor uses one core.
                cores = self._platform.host(number).cores
                if cores > 1:
                    limits.append((resource, cores, amount))
        latency, slowest = 0.0, 0.0
        count = len(hosts)
        if count == 1:
            sent = ()  # SimGrid ignores what the only executor sends to itself
        names = [self._platform.host(number).name for number in hosts] if sent else []
        for index, amount in enumerate(sent):
            if amount > 0:
                route_latency = self._add_transfer(
                    demands, names[index // count], names[index % count], amount
                )
                latency = max(latency, route_latency)
                slowest = max(slowest, route_latency * amount)
        limit = _TCP_WINDOW_BYTES / (2 * slowest) if slowest > 0 else inf
        return Task(demands, latency, limit, host_flops, hosts, repeats, flops, sent, limits, limit)

    def build_message(self, source: str, target: str) -> Task:
        """Return the transfer of one byte between two hosts by name."""
        demands: dict[SharedResource, float] = {}
        latency_s = self._add_transfer(demands, source, target, 1.0)
        limit = _TCP_WINDOW_BYTES / (2 * latency_s) if latency_s > 0 else inf
        return Task(demands, latency_s, limit)

    def _add_transfer(
        self, demands: dict[SharedResource, float], source: str, target: str, amount: float
    ) -> float:
        """Add the links of a transfer; return the latency of its route."""
        route = self._platform.route(source, target)
        for link in route.links:
            resource = self._links.get(link)
            if resource is None:
                resource = self._links[link] = SharedResource(link.bandwidth, shared=link.shared)
            before = demands.get(resource, 0.0)
            demands[resource] = before + amount if link.shared else max(before, amount)
        return route.latency_s
