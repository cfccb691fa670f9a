"""Where pods that wait should run: the policies of our scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from equipoise.adapters.kubernetes.client.cluster_model import (
    host_id,
    host_of,
    is_movable,
    placement_rules,
    vm_id,
    vm_of,
)
from equipoise.adapters.kubernetes.client.cluster_view import ClusterView
from equipoise.adapters.kubernetes.client.pod_view import (
    NodeView,
    PodView,
    refusal,
    summarise_refusals,
)
from equipoise.balance.placement import place_vms
from equipoise.balance.run_pass import run_balance_pass
from equipoise.model.action_durations import Estimates
from equipoise.model.inventory import Inventory
from equipoise.model.state.snapshot import Snapshot
from equipoise.sim.pods.spec import CPU, MEMORY


class Choice(NamedTuple):
    """A pod and its node, or the reason why it has none."""

    pod: PodView
    node: NodeView | None
    reason: str = ""


Policy = Callable[[ClusterView], Iterator[Choice]]
"""Yields choices one by one; the caller assumes each before it asks for the next."""


def choose_first_fit(view: ClusterView) -> Iterator[Choice]:
    """Take the first node with room, in the order of the nodes."""
    return _one_by_one(view, lambda _pod, nodes: nodes[0])


def choose_least_loaded(view: ClusterView) -> Iterator[Choice]:
    """Take the node whose fuller one of CPU and memory is the least full with the pod."""
    return _one_by_one(view, lambda pod, nodes: min(nodes, key=lambda node: _load(pod, node)))


def _load(pod: PodView, node: NodeView) -> tuple[float, float]:
    shares = [
        (node.used.get(name, 0) + pod.requests.get(name, 0)) / max(1, node.allocatable.get(name, 0))
        for name in (CPU, MEMORY)
    ]
    return max(shares), sum(shares)


def _one_by_one(
    view: ClusterView, choose: Callable[[PodView, list[NodeView]], NodeView]
) -> Iterator[Choice]:
    refused = _Refused(view)
    for pod in view.queue():
        reason = pod.unsupported and f"the pod demands {pod.unsupported}: not supported."
        reason = reason or refused.get(pod)
        if reason:
            yield Choice(pod, None, reason)
            continue
        nodes = refused.open_nodes(pod)
        if nodes:
            yield Choice(pod, choose(pod, nodes))
        else:
            yield Choice(pod, None, refused.get(pod))


class _Refused:
    """The reasons of pods without a node; pods that demand the same get the same answer.

    Nodes only fill up while one round of choices lasts, so a reason holds until its end.
    """

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._by_labels = view.has_anti_affinity
        self._reasons: dict[object, str] = {}

    def _key(self, pod: PodView) -> object:
        # The anti-affinity of other pods selects by namespace and labels.
        if self._by_labels:
            return pod.kind, pod.namespace, tuple(sorted(pod.labels.items()))
        return pod.kind

    def get(self, pod: PodView) -> str:
        return self._reasons.get(self._key(pod), "")

    def open_nodes(self, pod: PodView) -> list[NodeView]:
        """Return the nodes that can take a pod now; without any, remember the reason."""
        reasons, found = [], []
        for node in self._view.nodes.values():
            reason = refusal(pod, node)
            if reason:
                reasons.append(reason)
            else:
                found.append(node)
        if not found:
            self._reasons[self._key(pod)] = summarise_refusals(reasons)
        return found


def choose_by_balance(view: ClusterView) -> Iterator[Choice]:
    """Ask the placement of the product for all pods that fit together.

    First fit says which pods fit at this moment, by priority and arrival; the placement chooses the
    nodes of these pods so that the imbalance of the cluster is the least.
    """
    while True:
        fitting, waiting = _fitting(view)
        yield from waiting
        if not fitting:
            return
        placed = 0
        for choice in _placed(view, fitting):
            placed += choice.node is not None
            yield choice
        if not placed or placed == len(fitting):
            return


def _fitting(view: ClusterView) -> tuple[list[PodView], list[Choice]]:
    """Return the pods that have room at the same time, and the others with their reasons."""
    assumed: list[PodView] = []
    waiting = []
    for choice in choose_first_fit(view):
        if choice.node is None:
            waiting.append(choice)
        else:
            view.assume(choice.pod, choice.node)
            assumed.append(choice.pod)
    for pod in assumed:
        view.revoke(pod)
    return assumed, waiting


def _placed(view: ClusterView, fitting: list[PodView]) -> Iterator[Choice]:
    nodes = {str(host_id(node)): node for node in view.nodes.values()}
    pods = {str(vm_id(pod)): pod for pod in fitting}
    # What runs is pinned: a scheduler starts pods and moves none.
    running = [
        vm_of(pod, host_id(view.nodes[pod.node]), pinned=True)
        for pod in view.pods.values()
        if pod.node in view.nodes
    ]
    starting = [vm_of(pod, None, pinned=False) for pod in fitting]
    inventory = Inventory(
        name="kubernetes",
        hosts=tuple(host_of(node) for node in view.nodes.values()),
        vms=(*running, *starting),
        rules=tuple(placement_rules(fitting, list(view.nodes.values()))),
    )
    advice = place_vms(Snapshot.of(inventory), [vm.id for vm in starting], Estimates(), known=True)
    for start in advice.placed:
        yield Choice(pods.pop(str(start.vm)), nodes[str(start.host)])
    details = {str(fault.subject): fault.detail for fault in advice.faults}
    for name, pod in pods.items():
        yield Choice(pod, None, details.get(name, "the placement of the batch leaves no room"))


POLICIES: Final[Mapping[str, Policy]] = {
    "first-fit": choose_first_fit,
    "least-loaded": choose_least_loaded,
    "balance": choose_by_balance,
}


def pods_to_evict(view: ClusterView) -> list[PodView]:
    """Return the pods that balance would move, as far as their owners create them again."""
    bound = [pod for pod in view.pods.values() if pod.node in view.nodes]
    movable = [pod for pod in bound if is_movable(pod) and not pod.unsupported]
    if not movable:
        return []
    by_id = {str(vm_id(pod)): pod for pod in movable}
    vms = [
        vm_of(pod, host_id(view.nodes[pod.node]), pinned=str(vm_id(pod)) not in by_id)
        for pod in bound
    ]
    inventory = Inventory(
        name="kubernetes",
        hosts=tuple(host_of(node) for node in view.nodes.values()),
        vms=tuple(vms),
        rules=tuple(placement_rules(movable, list(view.nodes.values()))),
    )
    done = run_balance_pass(Snapshot.of(inventory), Estimates())
    return [by_id[str(move.vm)] for move in done.advice.moves if str(move.vm) in by_id]
