"""The status of PodDisruptionBudgets: how many of their pods are healthy, and may go."""

from __future__ import annotations

from typing import Any

from equipoise.adapters.kubernetes.api.resources import POD_DISRUPTION_BUDGETS, PODS
from equipoise.adapters.kubernetes.api.selectors import LabelMatches, selector_of
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind
from equipoise.adapters.kubernetes.cluster.controllers.deployments import resolve_share
from equipoise.adapters.kubernetes.cluster.reactions import (
    Key,
    Reactions,
    is_deleted,
    is_ready,
    key_of_object,
    phase_of,
    with_condition,
)

Object = dict[str, Any]


class _Budget:
    """The pods that a budget selects."""

    __slots__ = ("healthy", "matches", "members", "selector")

    def __init__(self, selector: Object | None) -> None:
        self.selector = selector
        self.matches: LabelMatches = selector_of(selector)
        self.members: dict[str, None] = {}
        self.healthy: dict[str, None] = {}

    def put(self, pod: Object) -> bool:
        """Count a pod; return whether anything has changed."""
        name = pod["metadata"]["name"]
        before = name in self.members, name in self.healthy
        counts = self.matches(pod["metadata"].get("labels") or {}) and phase_of(pod) not in (
            "Succeeded", "Failed",
        )  # fmt: skip
        after = counts, counts and is_ready(pod) and not is_deleted(pod)
        for known, member in zip((self.members, self.healthy), after, strict=True):
            if member:
                known[name] = None
            else:
                known.pop(name, None)
        return before != after

    def remove(self, pod: Object) -> bool:
        """A pod has gone; return whether it counted."""
        name = pod["metadata"]["name"]
        self.healthy.pop(name, None)
        return name in self.members and self.members.pop(name) is None


class DisruptionBudgets:
    """Keeps the status of budgets."""

    def __init__(self, reactions: Reactions) -> None:
        self._reactions = reactions
        self._store = reactions.store
        self._budgets: dict[str, dict[str, _Budget]] = {}
        """By namespace and name."""
        reactions.read(self._on_budget, POD_DISRUPTION_BUDGETS)
        reactions.read(self._on_pod, PODS)

    def _on_budget(self, change: Change) -> None:
        namespace, name = key_of_object(change.object)
        known = self._budgets.setdefault(namespace, {})
        if change.kind is ChangeKind.DELETED:
            known.pop(name, None)
            return
        selector = change.object["spec"].get("selector")
        if name not in known or known[name].selector != selector:
            budget = known[name] = _Budget(selector)
            for pod in self._store.list(PODS, namespace):
                budget.put(pod)
        self._reactions.mark(self, (namespace, name))

    def _on_pod(self, change: Change) -> None:
        namespace = change.object["metadata"]["namespace"]
        for name, budget in self._budgets.get(namespace, {}).items():
            if change.kind is ChangeKind.DELETED:
                changed = budget.remove(change.object)
            else:
                changed = budget.put(change.object)
            if changed:
                self._reactions.mark(self, (namespace, name))

    def reconcile(self, key: Key) -> None:
        """Write the status of a budget."""
        namespace, name = key
        budget = self._budgets.get(namespace, {}).get(name)
        if budget is None:
            return
        expected, healthy = len(budget.members), len(budget.healthy)
        now = self._store.timestamp()

        def changed(body: Object) -> Object:
            spec = body["spec"]
            if spec.get("maxUnavailable") is not None:
                missing = resolve_share(spec["maxUnavailable"], expected, up=True)
                desired = max(0, expected - missing)
            else:
                desired = resolve_share(spec.get("minAvailable", 1), expected, up=True)
            allowed = max(0, healthy - desired) if expected else 0
            condition = {
                "type": "DisruptionAllowed", "status": str(allowed > 0), "message": "",
                "reason": "SufficientPods" if allowed else "InsufficientPods",
            }  # fmt: skip
            status = dict(body.get("status") or {})
            status |= {
                "expectedPods": expected,
                "currentHealthy": healthy,
                "desiredHealthy": desired,
                "disruptionsAllowed": allowed,
                "observedGeneration": body["metadata"].get("generation", 1),
                "conditions": with_condition(status.get("conditions") or [], condition, now),
            }
            return {**body, "status": status}

        self._store.update(POD_DISRUPTION_BUDGETS, name, namespace, changed)
