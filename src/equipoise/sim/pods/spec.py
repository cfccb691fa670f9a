"""What is known of a pod and of a node beforehand: requests, durations, usage, capacity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final

Amounts = Mapping[str, int]
"""Amounts by resource: ``cpu`` in thousandths of a core, ``memory`` in bytes, others in units."""

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
_NOTHING: Final[Amounts] = MappingProxyType({})


class RestartPolicy(Enum):
    """What a node does when the containers of a pod have ended."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class UsagePhase:
    """What a pod uses for a while; the last phase lasts until the pod ends."""

    duration_ms: int
    cpu_milli: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class PodImage:
    """An image that a node must have before the containers of a pod start."""

    name: str
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSpec:
    """What a pod requests, and how it behaves."""

    name: str
    requests: Amounts = field(default_factory=lambda: _NOTHING)
    """What the scheduler and the node count: with init containers and overhead."""
    memory_limit_bytes: int | None = None
    duration_ms: int | None = None
    """How long its containers run; None if they run until the pod is deleted."""
    exit_codes: tuple[int, ...] = (0,)
    """How its runs end, in order; the last one counts for all further runs."""
    restart: RestartPolicy = RestartPolicy.NEVER
    deadline_ms: int | None = None
    """From the moment when the node takes the pod; the pod fails when it is reached."""
    images: tuple[PodImage, ...] = ()
    init_ms: tuple[int, ...] = ()
    """The durations of its init containers, which run one after another."""
    stop_ms: int = 0
    """How long its containers go on after the signal to stop."""
    usage: tuple[UsagePhase, ...] = ()
    """Empty: it uses what it requests."""

    def __post_init__(self) -> None:
        assert self.exit_codes, "a run ends with a code"
        assert self.duration_ms is None or self.duration_ms >= 0, "a duration is not negative"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNodeSpec:
    """A node: what pods may request of it."""

    name: str
    allocatable: Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletOptions:
    """How the nodes of a cluster treat pods. The defaults take no time, as in Batkube."""

    pull_ms: int = 0
    """For each image that the node does not have yet."""
    pull_bytes_per_s: int | None = None
    """With it, the size of an image adds to the time of its pull."""
    start_ms: int = 0
    """From the last image until the first container runs."""
    backoff_ms: int = 10_000
    """The wait before the second restart; it doubles with each further one."""
    backoff_ms_max: int = 300_000
    rejects_over_allocation: bool = True
    """A pod that does not fit fails, as a kubelet decides; otherwise it runs, as in Batkube."""
    cached_images: frozenset[str] = field(default_factory=frozenset)
    """Images that every node has from the start."""

    def __post_init__(self) -> None:
        # Without a wait, a pod that crashes at once would restart for ever at one instant.
        assert 0 < self.backoff_ms <= self.backoff_ms_max, "a back-off takes time"


def total(*amounts: Amounts) -> dict[str, int]:
    """Return the sum of amounts."""
    summed: dict[str, int] = {}
    for resources in amounts:
        for name, amount in resources.items():
            summed[name] = summed.get(name, 0) + amount
    return summed


def largest(*amounts: Amounts) -> dict[str, int]:
    """Return the largest amount of each resource."""
    found: dict[str, int] = {}
    for resources in amounts:
        for name, amount in resources.items():
            found[name] = max(amount, found.get(name, 0))
    return found
