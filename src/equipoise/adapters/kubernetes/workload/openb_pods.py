"""The openb trace as pods and nodes. Shares of GPUs are an extended resource.

A node with 2 GPUs has 2000 of ``equipoise.dev/gpu-milli``, and a pod requests its share of each of
its GPUs. So the GPUs of a node count as one pool, and the models that a pod accepts are labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from equipoise.adapters.kubernetes.annotations import DURATION, EXIT_CODE, GPU_MILLI
from equipoise.adapters.kubernetes.quantity import format_seconds
from equipoise.adapters.kubernetes.workload.pod_workload import (
    Arrival,
    Object,
    node_object,
    object_name,
    pod_object,
)
from equipoise.adapters.openb import FAILED, OpenbNode, OpenbPod, trace_end_s

GPU_MODEL: Final = "equipoise.dev/gpu-model"
QOS: Final = "equipoise.dev/qos"
_MIB: Final = 2**20
_MILLI: Final = 1000
_MS_PER_S: Final = 1000


def openb_nodes(nodes: Sequence[OpenbNode]) -> list[Object]:
    """Return the nodes of the trace; the model of its GPUs is a label."""
    return [
        node_object(
            object_name(node.name),
            cpu_milli=node.cpu_milli,
            memory_bytes=node.memory_mib * _MIB,
            extended={GPU_MILLI: node.gpus * _MILLI} if node.gpus else None,
            labels={GPU_MODEL: node.gpu_model} if node.gpu_model else None,
        )
        for node in nodes
    ]


def openb_pods(pods: Sequence[OpenbPod]) -> list[Arrival]:
    """Return the pods of the trace; one that took no time ends at once."""
    end_s = trace_end_s(pods)
    return [(pod.created_s * _MS_PER_S, _pod(pod, end_s)) for pod in pods]


def _pod(pod: OpenbPod, end_s: int) -> Object:
    annotations = {DURATION: format_seconds(max(0, pod.run_s(end_s)) * _MS_PER_S)}
    if pod.phase == FAILED:
        annotations[EXIT_CODE] = "1"
    share = pod.gpus * pod.gpu_milli
    body = pod_object(
        object_name(pod.name),
        cpu_milli=pod.cpu_milli,
        memory_bytes=pod.memory_mib * _MIB,
        extended={GPU_MILLI: share} if share else None,
        annotations=annotations,
        labels={QOS: pod.qos} if pod.qos else None,
    )
    if pod.gpu_models:
        body["spec"]["affinity"] = _one_of(GPU_MODEL, pod.gpu_models)
    return body


def _one_of(label: str, values: Sequence[str]) -> dict[str, Any]:
    """Return the affinity to nodes with one of these values of a label."""
    expression = {"key": label, "operator": "In", "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
