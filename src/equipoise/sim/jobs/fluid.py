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
    host_flops: Mapping[int, float] = field(default_factory=dict)
    """The operations on each host, from which the load and the power of the host follow."""
    remaining: float = 1.0
    rate: float = 0.0
    increment: float = 0.0

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
            self.latency_s = left if left > _TIME_PRECISION else 0.0
            return
        left = self.remaining - self.rate * delta_s
        self.remaining = left if left > _WORK_PRECISION else 0.0


def share(tasks: Sequence[Task]) -> None:
    """Set the rates of all tasks.

    A task that is complete in one round is still charged with its last increment in the following
    rounds. So the result is not max-min fair, but it is what SimGrid computes.
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
        active[task] = None
        for resource in task.demands:
            users.setdefault(resource, []).append(task)
    for resource in users:
        resource.remaining = resource.capacity
    while active:
        _run_round(users, active)


def _run_round(users: dict[SharedResource, list[Task]], active: dict[Task, None]) -> None:
    for resource, group in users.items():
        waiting = sum(task in active for task in group)
        parts = max(waiting, 1) if resource.shared else 1
        resource.offer = resource.remaining / parts
    for task in list(active):
        offers = [resource.offer / demand for resource, demand in task.demands.items()]
        increment = min(*offers, task.rate_limit - task.rate)
        task.increment = increment
        task.rate += increment
        if task.rate >= task.rate_limit:
            del active[task]
    for resource, group in list(users.items()):
        charges = [task.demands[resource] * task.increment for task in group]
        left = resource.remaining - (sum(charges) if resource.shared else max(charges))
        resource.remaining = left if left > _CAPACITY_PRECISION else 0.0
        if resource.remaining <= 0 or not any(task in active for task in group):
            for task in group:
                active.pop(task, None)
            del users[resource]


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
        rate_limit = inf
        for number, amount in zip(hosts, flops, strict=True):
            if amount > 0:
                resource = self._hosts[number]
                demands[resource] = demands.get(resource, 0.0) + amount
                host_flops[number] = host_flops.get(number, 0.0) + amount
                # One executor uses one core.
                cores = self._platform.host(number).cores
                if cores > 1:
                    rate_limit = min(rate_limit, resource.capacity / cores / amount)
        latency, slowest = 0.0, 0.0
        count = len(hosts)
        names = [self._platform.host(number).name for number in hosts] if sent else []
        for index, amount in enumerate(sent):
            if amount > 0:
                route_latency = self._add_transfer(
                    demands, names[index // count], names[index % count], amount
                )
                latency = max(latency, route_latency)
                slowest = max(slowest, route_latency * amount)
        if slowest > 0:
            rate_limit = min(rate_limit, _TCP_WINDOW_BYTES / (2 * slowest))
        return Task(demands, latency, rate_limit, host_flops)

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
