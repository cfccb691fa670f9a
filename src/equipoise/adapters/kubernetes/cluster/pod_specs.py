"""Reads what the simulation needs of a pod or a node of the API."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from equipoise.adapters.kubernetes.annotations import (
    STOP,
    annotations_of,
    read_duration_ms,
    read_exit_codes,
    read_init_ms,
    read_run_ms,
    read_usage,
)
from equipoise.adapters.kubernetes.quantity import parse_amount, parse_milli
from equipoise.sim.pods.spec import (
    CPU,
    MEMORY,
    PodImage,
    PodNodeSpec,
    PodSpec,
    RestartPolicy,
    largest,
    total,
)

Object = dict[str, Any]
_MS_PER_S: Final = 1000


def read_amounts(amounts: Mapping[str, Any] | None) -> dict[str, int]:
    """Return amounts in whole units, CPU in thousandths of a core."""
    return {
        name: parse_milli(amount) if name == CPU else parse_amount(amount)
        for name, amount in (amounts or {}).items()
    }


def read_requests(spec: Object) -> dict[str, int]:
    """Return what a pod requests in all: that of its containers, or of an init container if more.

    Sidecars, which are init containers that restart, run beside all that follow them.
    """
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        requests = _part(container, "requests")
        if container.get("restartPolicy") == "Always":
            sidecars = total(sidecars, requests)
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, total(sidecars, requests))
    running = total(sidecars, *(_part(container, "requests") for container in spec["containers"]))
    return total(largest(running, starting), read_amounts(spec.get("overhead")))


def _part(container: Object, key: str) -> dict[str, int]:
    return read_amounts((container.get("resources") or {}).get(key))


def _memory_limit(spec: Object) -> int | None:
    """Return the sum of the memory limits, if every container has one."""
    limits = [_part(container, "limits").get(MEMORY) for container in spec["containers"]]
    known = [limit for limit in limits if limit is not None]
    return sum(known) if len(known) == len(limits) else None


def read_pod(
    name: str,
    body: Object,
    image_bytes: Mapping[str, int],
    speed: Fraction | None = None,
    run_ms: int | None = None,
) -> PodSpec:
    """Return the simulation's view of a pod; ``ValueError`` if an annotation is wrong.

    ``run_ms`` is the duration of pods that state none.
    """
    spec, annotations = body["spec"], annotations_of(body)
    stated_ms = read_run_ms(annotations, speed)
    inits = [
        container
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") != "Always"
    ]
    deadline_s = spec.get("activeDeadlineSeconds")
    images = dict.fromkeys(
        container.get("image") or ""
        for container in (*(spec.get("initContainers") or ()), *spec["containers"])
    )
    return PodSpec(
        name=name,
        requests=read_requests(spec),
        memory_limit_bytes=_memory_limit(spec),
        duration_ms=run_ms if stated_ms is None else stated_ms,
        exit_codes=read_exit_codes(annotations),
        restart=RestartPolicy(spec.get("restartPolicy") or "Always"),
        deadline_ms=None if deadline_s is None else int(deadline_s) * _MS_PER_S,
        images=tuple(PodImage(image, image_bytes.get(image, 0)) for image in images if image),
        init_ms=read_init_ms(annotations, len(inits)),
        stop_ms=read_duration_ms(annotations, STOP) or 0,
        usage=read_usage(annotations),
    )


def read_node(body: Object) -> PodNodeSpec:
    """Return the simulation's view of a node; ``ValueError`` if an amount is wrong."""
    status = body.get("status") or {}
    allocatable = read_amounts(status.get("allocatable") or status.get("capacity"))
    return PodNodeSpec(name=body["metadata"]["name"], allocatable=allocatable)
