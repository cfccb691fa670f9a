"""The status of a pod as a kubelet writes it, from its stage in the simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from equipoise.sim.pods.pod import Pod, PodOutcome, PodStage

Object = dict[str, Any]

_PHASES: Final[Mapping[PodStage, str]] = {
    PodStage.BOUND: "Pending",
    PodStage.PULLING: "Pending",
    PodStage.INITIALIZING: "Pending",
    PodStage.RUNNING: "Running",
    PodStage.WAITING: "Running",
    PodStage.STOPPING: "Running",
    PodStage.SUCCEEDED: "Succeeded",
    PodStage.FAILED: "Failed",
}
_REASONS: Final[Mapping[PodOutcome, str]] = {
    PodOutcome.SUCCEEDED: "Completed",
    PodOutcome.FAILED: "Error",
    PodOutcome.OUT_OF_MEMORY: "OOMKilled",
    PodOutcome.TIMED_OUT: "Error",
    PodOutcome.DELETED: "Error",
    PodOutcome.LOST: "Unknown",
}
"""Why a container ended."""
_ENDED: Final = frozenset({PodStage.SUCCEEDED, PodStage.FAILED})
Timestamp = Callable[[int], str]
"""Gives the text of a time of the run in milliseconds."""


def status_of(pod: Pod, body: Object, addresses: tuple[str, str], timestamp: Timestamp) -> Object:
    """Return the new status of a pod; ``addresses`` are those of its node and its own."""
    before = body.get("status") or {}
    host_ip, pod_ip = addresses
    status = {
        **before,
        "phase": _PHASES[pod.stage],
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "startTime": timestamp(pod.taken_ms),
    }
    if pod.started_ms >= 0 or pod.stage is PodStage.INITIALIZING:
        status["podIP"], status["podIPs"] = pod_ip, [{"ip": pod_ip}]
    reason = _pod_reason(pod)
    if reason is not None:
        status["reason"], status["message"] = reason
    now = timestamp(max(pod.taken_ms, pod.run_started_ms, pod.run_ended_ms, pod.ended_ms))
    status["conditions"] = _conditions(pod, body, before.get("conditions") or [], now)
    if pod.outcome is PodOutcome.REJECTED:
        return status  # no container was made
    spec = body["spec"]
    status["containerStatuses"] = [
        _container(pod, container, timestamp) for container in spec["containers"]
    ]
    if spec.get("initContainers"):
        status["initContainerStatuses"] = _init_containers(pod, spec["initContainers"], timestamp)
    return status


def _pod_reason(pod: Pod) -> tuple[str, str] | None:
    if pod.outcome is PodOutcome.REJECTED:
        name = pod.missing_resource
        requested = pod.spec.requests.get(name, 1)
        return f"OutOf{name}", f"The node has not enough {name} for a request of {requested}"
    if pod.outcome is PodOutcome.TIMED_OUT:
        return "DeadlineExceeded", "The pod was active longer than its deadline allows"
    return None


def _conditions(pod: Pod, body: Object, before: list[Object], now: str) -> list[Object]:
    runs = pod.stage is PodStage.RUNNING
    ended = pod.stage in _ENDED
    ready: Object = {"status": "True"} if runs else {"status": "False"}
    if ended:
        reason = "PodCompleted" if pod.stage is PodStage.SUCCEEDED else "PodFailed"
        ready["reason"] = reason
    elif not runs:
        names = " ".join(container["name"] for container in body["spec"]["containers"])
        ready |= {"reason": "ContainersNotReady", "message": f"not ready: {names}"}
    initialized: Object = {"status": "True"}
    if pod.started_ms < 0 and pod.spec.init_ms and not ended:
        initialized = {"status": "False", "reason": "ContainersNotInitialized"}
    wanted: dict[str, Object] = {
        "PodReadyToStartContainers": {"status": str(not ended and pod.started_ms >= 0)},
        "Initialized": initialized,
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": {"status": "True"},
    }
    if pod.outcome is PodOutcome.REJECTED:
        wanted = {"PodScheduled": {"status": "True"}}
    known = {condition["type"]: condition for condition in before}
    found = [condition for condition in before if condition["type"] not in wanted]
    for name, condition in wanted.items():
        old = known.get(name)
        same = old is not None and old.get("status") == condition["status"]
        at = old["lastTransitionTime"] if same and old is not None else now
        found.append({"type": name, "lastProbeTime": None, "lastTransitionTime": at, **condition})
    return found


def _container(pod: Pod, container: Object, timestamp: Timestamp) -> Object:
    """Return the status of a container: it waits, runs, or has ended."""
    status = _named(pod, container, pod.restarts)
    status["ready"] = status["started"] = pod.stage is PodStage.RUNNING
    last: Object = {}
    if pod.stage in (PodStage.RUNNING, PodStage.STOPPING) and pod.run_started_ms >= 0:
        state: Object = {"running": {"startedAt": timestamp(pod.run_started_ms)}}
        if pod.restarts:
            last = {"terminated": _terminated(pod, container, timestamp, started=False)}
    elif pod.stage in _ENDED and pod.run_started_ms >= 0:
        state = {"terminated": _terminated(pod, container, timestamp)}
    elif pod.stage is PodStage.WAITING:
        state = {"waiting": {"reason": "CrashLoopBackOff"}}
        last = {"terminated": _terminated(pod, container, timestamp)}
    else:
        waits = "PodInitializing" if pod.stage is PodStage.INITIALIZING else "ContainerCreating"
        state = {"waiting": {"reason": waits}}
    return {**status, "state": state, "lastState": last}


def _named(pod: Pod, container: Object, restarts: int) -> Object:
    image = container.get("image") or ""
    named = {"name": container["name"], "image": image, "imageID": "", "restartCount": restarts}
    if pod.started_ms >= 0:
        named["imageID"] = f"simulated://{image}"
        named["containerID"] = f"simulated://{pod.name}/{container['name']}/{restarts}"
    return named


def _terminated(
    pod: Pod, container: Object, timestamp: Timestamp, *, started: bool = True
) -> Object:
    """Return the end of the present run, or of the one before, whose times are no longer known."""
    code = max(pod.exit_code, 0)
    reason = _REASONS.get(pod.outcome, "Error") if pod.outcome else "Error"
    if not started:
        return {"exitCode": code, "reason": "Error" if code else "Completed"}
    return {
        "exitCode": code,
        "reason": reason,
        "startedAt": timestamp(pod.run_started_ms),
        "finishedAt": timestamp(max(pod.run_ended_ms, pod.run_started_ms)),
        "containerID": _named(pod, container, pod.restarts).get("containerID", ""),
    }


def _init_containers(pod: Pod, containers: list[Object], timestamp: Timestamp) -> list[Object]:
    found, index = [], 0
    for container in containers:
        sidecar = container.get("restartPolicy") == "Always"
        done = pod.init_index > index or pod.started_ms >= 0
        runs = pod.stage is PodStage.INITIALIZING and pod.init_index == index
        state: Object = {"waiting": {"reason": "PodInitializing"}}
        if sidecar and pod.stage not in _ENDED and (runs or done):
            state = {"running": {"startedAt": timestamp(pod.taken_ms)}}
        elif done:
            state = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        elif runs:
            state = {"running": {"startedAt": timestamp(pod.taken_ms)}}
        ready = done or (sidecar and runs)
        found.append(
            {**_named(pod, container, 0), "ready": ready, "started": ready, "state": state}
        )
        index += not sidecar
    return found
