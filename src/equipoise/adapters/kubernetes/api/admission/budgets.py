"""How many pods a disruption budget lets go now."""

from __future__ import annotations

import re
from typing import Any, Final, Protocol

from equipoise.adapters.kubernetes.api.resources import PODS, Resource
from equipoise.adapters.kubernetes.api.selectors import Matches, selector_of

Object = dict[str, Any]

_PERCENT: Final = re.compile(r"([0-9]{1,9})%")


class PodsOf(Protocol):
    """What a budget needs to know of the store."""

    def list(
        self, resource: Resource, namespace: str = "", matches: Matches | None = None
    ) -> list[Object]:
        """Return the objects of a collection in a namespace."""


def disruptions_allowed(store: PodsOf, budget: Object) -> int:
    """Return how many of the pods of a budget may be evicted now."""
    spec = budget.get("spec") or {}
    selects = selector_of(spec.get("selector"))
    pods = store.list(
        PODS,
        budget["metadata"]["namespace"],
        lambda pod: selects(pod["metadata"].get("labels") or {}) and not _has_ended(pod),
    )
    healthy = sum(_is_healthy(pod) for pod in pods)
    expected = len(pods)
    if spec.get("maxUnavailable") is not None:
        wanted = expected - _count(spec["maxUnavailable"], expected)
    else:
        wanted = _count(spec.get("minAvailable", 1), expected)
    return max(healthy - max(wanted, 0), 0)


def _count(amount: object, total: int) -> int:
    """Return a number, or a percentage of a total, rounded up."""
    if isinstance(amount, int):
        return amount
    found = _PERCENT.fullmatch(str(amount))
    return -(-int(found[1]) * total // 100) if found else 0


def _has_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _is_healthy(pod: Object) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "True")
    return status.get("phase") == "Running"
