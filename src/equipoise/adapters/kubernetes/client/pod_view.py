"""What a scheduler reads of nodes and pods, and whether a node may take a pod."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from equipoise.adapters.kubernetes.api.selectors import LabelMatches, selector_of
from equipoise.adapters.kubernetes.cluster.pod_specs import read_amounts, read_requests

Object = dict[str, Any]
HOSTNAME: Final = "kubernetes.io/hostname"
PODS_RESOURCE: Final = "pods"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})
_PLAIN_TERM: Final = frozenset({"labelSelector", "topologyKey", "namespaces"})
_NODE_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


@dataclass(frozen=True, slots=True)
class ApartTerm:
    """Pods that may not share a node with the pod that states the term."""

    namespaces: frozenset[str]
    matches: LabelMatches

    def selects(self, pod: PodView) -> bool:
        """Whether a pod is one of them."""
        return pod.namespace in self.namespaces and self.matches(pod.labels)


@dataclass(slots=True, kw_only=True)
class PodView:
    """A pod as a scheduler sees it."""

    uid: str
    namespace: str
    name: str
    requests: Mapping[str, int]
    """In whole units, CPU in thousandths of a core; with one of the resource ``pods``."""
    labels: Mapping[str, str]
    priority: int
    order: int
    """The place in the order of arrival."""
    node: str = ""
    owner: str = ""
    """The kind of the controller that owns the pod."""
    ending: bool = False
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Object, ...] = ()
    node_terms: tuple[Object, ...] | None = None
    apart: tuple[ApartTerm, ...] = ()
    unsupported: str = ""
    """What the pod demands that this scheduler does not know."""
    kind: str = ""
    """Equal for pods that demand the same of a node."""
    reason: str = ""
    """What the condition of the pod says already."""

    @property
    def path(self) -> dict[str, str]:
        """Return what names the pod in a path of the API."""
        return {"namespace": self.namespace, "name": self.name}


@dataclass(slots=True, kw_only=True)
class NodeView:
    """A node as a scheduler sees it, with the sums of its pods."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Object, ...]
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    used: dict[str, int] = field(default_factory=dict)
    pods: dict[str, PodView] = field(default_factory=dict)

    def take(self, pod: PodView) -> None:
        """Count a pod."""
        if pod.uid not in self.pods:
            self.pods[pod.uid] = pod
            for name, amount in pod.requests.items():
                self.used[name] = self.used.get(name, 0) + amount

    def release(self, pod: PodView) -> None:
        """Stop to count a pod."""
        if self.pods.pop(pod.uid, None) is not None:
            for name, amount in pod.requests.items():
                self.used[name] -= amount


def read_node_view(body: Object) -> NodeView:
    """Return the view of a node; ``ValueError`` if an amount is no quantity."""
    metadata, spec = body["metadata"], body.get("spec") or {}
    status = body.get("status") or {}
    allocatable = read_amounts(status.get("allocatable") or status.get("capacity"))
    taints = tuple(taint for taint in spec.get("taints") or () if taint.get("effect") in _REPELLING)
    if spec.get("unschedulable") and all(taint.get("key") != _UNSCHEDULABLE for taint in taints):
        taints += ({"key": _UNSCHEDULABLE, "effect": "NoSchedule"},)
    return NodeView(
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        taints=taints,
        capacity=allocatable | read_amounts(status.get("capacity")),
        allocatable=allocatable,
    )


def read_pod_view(body: Object, order: int = 0) -> PodView:
    """Return the view of a pod; ``ValueError`` if an amount is no quantity."""
    metadata, spec = body["metadata"], body["spec"]
    namespace = metadata.get("namespace") or "default"
    affinity = spec.get("affinity") or {}
    node_affinity = (affinity.get("nodeAffinity") or {}).get(_REQUIRED)
    terms = None if node_affinity is None else tuple(node_affinity.get("nodeSelectorTerms") or ())
    apart = (affinity.get("podAntiAffinity") or {}).get(_REQUIRED) or ()
    requests = {**read_requests(spec), PODS_RESOURCE: 1}
    tolerations = tuple(spec.get("tolerations") or ())
    demands = [requests, spec.get("nodeSelector"), tolerations, terms, apart]
    return PodView(
        uid=metadata.get("uid") or f"{namespace}/{metadata['name']}",
        namespace=namespace,
        name=metadata["name"],
        requests=requests,
        labels=metadata.get("labels") or {},
        priority=int(spec.get("priority") or 0),
        order=order,
        node=spec.get("nodeName") or "",
        owner=next(
            (
                owner["kind"]
                for owner in metadata.get("ownerReferences") or ()
                if owner.get("controller")
            ),
            "",
        ),
        ending=bool(metadata.get("deletionTimestamp")),
        selector=spec.get("nodeSelector") or {},
        tolerations=tolerations,
        node_terms=terms,
        apart=tuple(
            ApartTerm(
                frozenset(term.get("namespaces") or (namespace,)),
                selector_of(term.get("labelSelector")),
            )
            for term in apart
        ),
        unsupported=_unsupported(spec, terms or (), apart),
        kind=json.dumps(demands, sort_keys=True),
        reason=next(
            (
                str(condition.get("message", ""))
                for condition in (body.get("status") or {}).get("conditions") or ()
                if condition.get("type") == "PodScheduled" and condition.get("status") == "False"
            ),
            "",
        ),
    )


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _unsupported(spec: Object, terms: Iterable[Object], apart: Iterable[Object]) -> str:
    """Return what a pod demands that the filters of this module do not know."""
    affinity = spec.get("affinity") or {}
    expressions = [
        expression
        for term in terms
        for part in ("matchExpressions", "matchFields")
        for expression in term.get(part) or ()
    ]
    demands = {
        "a required pod affinity": (affinity.get("podAffinity") or {}).get(_REQUIRED),
        "a required anti-affinity other than by hostname": any(
            term.get("topologyKey") != HOSTNAME or not _PLAIN_TERM.issuperset(term)
            for term in apart
        ),
        "an operator of a node affinity other than In, NotIn, Exists and DoesNotExist": any(
            expression.get("operator") not in _NODE_OPERATORS for expression in expressions
        ),
        "a topology spread constraint": any(
            constraint.get("whenUnsatisfiable") != "ScheduleAnyway"
            for constraint in spec.get("topologySpreadConstraints") or ()
        ),
        "a persistent volume": any(
            volume.get("persistentVolumeClaim") or volume.get("ephemeral")
            for volume in spec.get("volumes") or ()
        ),
        "a resource claim": spec.get("resourceClaims"),
        "a port of the host": any(
            port.get("hostPort")
            for container in spec["containers"]
            for port in container.get("ports") or ()
        ),
    }
    return ", ".join(name for name, is_demanded in demands.items() if is_demanded)


def static_refusal(pod: PodView, node: NodeView) -> str:
    """Return why a node may never take a pod, whatever runs there; an empty text if it may."""
    for taint in node.taints:
        if not any(_tolerates(toleration, taint) for toleration in pod.tolerations):
            if taint.get("key") == _UNSCHEDULABLE:
                return "unschedulable"
            return f"with the taint {taint.get('key')} that the pod does not tolerate"
    labels = node.labels
    if any(labels.get(key) != value for key, value in pod.selector.items()):
        return "without the labels of the node selector"
    if pod.node_terms is not None and not any(_has(node, term) for term in pod.node_terms):
        return "outside the node affinity"
    return ""


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key = toleration.get("key")
    if toleration.get("operator") == "Exists":
        return not key or key == taint.get("key")
    is_value = (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(key) and key == taint.get("key") and is_value


def _has(node: NodeView, term: Object) -> bool:
    """Whether a node has what a term of a node affinity demands; an empty term has nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    by_labels = selector_of({"matchExpressions": expressions})
    by_fields = selector_of({"matchExpressions": fields})
    return by_labels(node.labels) and by_fields({"metadata.name": node.name})


def refusal(pod: PodView, node: NodeView) -> str:
    """Return why a node cannot take a pod now; an empty text if it can."""
    reason = static_refusal(pod, node)
    if reason:
        return reason
    for name, amount in pod.requests.items():
        if amount and node.used.get(name, 0) + amount > node.allocatable.get(name, 0):
            return "with too many pods" if name == PODS_RESOURCE else f"with too little {name}"
    if any(are_apart(pod, other) for other in node.pods.values()):
        return "with a pod that anti-affinity keeps away"
    return ""


def are_apart(pod: PodView, other: PodView) -> bool:
    """Whether the anti-affinity of one of two pods keeps them on different nodes."""
    return any(term.selects(other) for term in pod.apart) or any(
        term.selects(pod) for term in other.apart
    )


def summarise_refusals(reasons: Iterable[str]) -> str:
    """Return the condition of a pod that no node takes."""
    counts = Counter(reasons)
    total = counts.total()
    listed = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    return f"0/{total} nodes are available" + (f": {listed}." if listed else ".")
