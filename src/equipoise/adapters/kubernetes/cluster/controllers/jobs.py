"""The controller of Jobs: completions, parallelism, retries, deadlines, removal afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from equipoise.adapters.kubernetes.api.resources import JOBS, PODS
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind
from equipoise.adapters.kubernetes.cluster.controllers.job_pods import INDEX, JobPods
from equipoise.adapters.kubernetes.cluster.reactions import (
    Key,
    Reactions,
    is_deleted,
    key_of_object,
    owner_of,
    pod_from_template,
    with_condition,
)

Object = dict[str, Any]
_KIND: Final = "Job"
_MS_PER_S: Final = 1000
_FINISHED: Final = ("Complete", "Failed")


class KubernetesJobs:
    """Runs the pods of Jobs until enough have succeeded, or too many have failed."""

    def __init__(self, reactions: Reactions) -> None:
        self._reactions = reactions
        self._store = reactions.store
        self._time = reactions.time
        self._jobs: dict[str, JobPods] = {}
        self._started_ms: dict[str, int] = {}
        self._finished_ms: dict[str, int] = {}
        """By the id of the Job."""
        reactions.read(self._on_pod, PODS)
        reactions.read(self._on_change, JOBS)

    def _on_change(self, change: Change) -> None:
        if change.kind is ChangeKind.DELETED:
            uid = change.object["metadata"]["uid"]
            job = self._jobs.pop(uid, None)
            if job is not None and job.timer is not None:
                job.timer.cancel()
            self._started_ms.pop(uid, None)
            self._finished_ms.pop(uid, None)
        else:
            self._reactions.mark(self, key_of_object(change.object))

    def _on_pod(self, change: Change) -> None:
        pod = change.object
        owner = owner_of(pod, _KIND)
        if owner is None:
            return
        job = self._jobs.setdefault(owner["uid"], JobPods())
        if change.kind is ChangeKind.DELETED:
            job.remove(pod, self._time.now_ms)
        else:
            job.put(pod, self._time.now_ms)
        self._reactions.mark(self, (pod["metadata"]["namespace"], owner["name"]))

    def reconcile(self, key: Key) -> None:
        """Do what is due for a Job."""
        body = self._store.find(JOBS, key[1], key[0])
        if body is None or is_deleted(body):
            return
        uid = body["metadata"]["uid"]
        job = self._jobs.setdefault(uid, JobPods())
        if _is_finished(body):
            self._write(body, job, [])
            self._remove_when_due(body, job)
            return
        if body["spec"].get("suspend"):
            self._started_ms.pop(uid, None)
            self._delete_active(job, len(job.pods.active))
            self._wake(body, job, None)
            self._write(body, job, [{"type": "Suspended", "status": "True"}])
            return
        self._started_ms.setdefault(uid, self._time.now_ms)
        failure = self._failure(body, job)
        if failure is not None:
            self._delete_active(job, len(job.pods.active))
            self._finish(body, job, {"type": "Failed", "status": "True", **failure})
        elif _is_complete(body, job):
            self._delete_active(job, len(job.pods.active))
            self._finish(body, job, {"type": "Complete", "status": "True"})
        else:
            self._adjust(body, job)
            self._write(body, job, [])

    def _failure(self, body: Object, job: JobPods) -> Object | None:
        """Return why the Job has failed; None if it has not."""
        spec = body["spec"]
        limit_s = spec.get("activeDeadlineSeconds")
        started_ms = self._started_ms[body["metadata"]["uid"]]
        if limit_s is not None and self._time.now_ms >= started_ms + limit_s * _MS_PER_S:
            return {"reason": "DeadlineExceeded", "message": "Job was active longer than allowed"}
        limit = spec.get("backoffLimit", 6)
        restarts = job.restarts
        if job.failed > limit or (restarts and restarts >= max(limit, 1)):
            return {"reason": "BackoffLimitExceeded", "message": "Job has reached its limit"}
        return None

    def _adjust(self, body: Object, job: JobPods) -> None:
        """Create or delete pods, or wait for the time when pods may be created again."""
        spec = body["spec"]
        active = len(job.pods.active)
        if spec.get("podReplacementPolicy") == "Failed":
            active += len(job.pods.terminating)
        wanted = int(spec.get("parallelism", 1))
        completions = spec.get("completions")
        if completions is not None:
            wanted = min(wanted, completions - _successes(body, job))
        elif job.succeeded:
            wanted = min(wanted, active)  # a work queue: one success ends the rest
        if active > wanted:
            self._delete_active(job, active - wanted)
        due_ms = [self._deadline_ms(body)]
        if active < wanted and job.retry_ms > self._time.now_ms:
            due_ms.append(job.retry_ms)
        elif active < wanted:
            self._create(body, job, wanted - active)
        self._wake(body, job, min((ms for ms in due_ms if ms is not None), default=None))

    def _deadline_ms(self, body: Object) -> int | None:
        limit_s = body["spec"].get("activeDeadlineSeconds")
        started_ms = self._started_ms[body["metadata"]["uid"]]
        return None if limit_s is None else started_ms + limit_s * _MS_PER_S

    def _wake(self, body: Object, job: JobPods, at_ms: int | None) -> None:
        if job.timer is not None:
            if not job.timer.is_cancelled and job.timer.at_ms == at_ms:
                return
            job.timer.cancel()
        job.timer = None
        if at_ms is not None:
            job.timer = self._reactions.at(at_ms, self, key_of_object(body))

    def _create(self, body: Object, job: JobPods, count: int) -> None:
        spec = body["spec"]
        indexes: Sequence[int | None] = [None] * count
        if spec.get("completionMode") == "Indexed":
            indexes = list(job.next_indexes(count, spec.get("completions") or 0))
        for index in indexes:
            manifest = pod_from_template(body, spec["template"])
            if index is not None:
                metadata = manifest["metadata"]
                metadata["generateName"] = f"{body['metadata']['name']}-{index}-"
                metadata["annotations"][INDEX] = metadata["labels"][INDEX] = str(index)
            created = self._store.create(PODS, manifest, body["metadata"]["namespace"])
            job.put(created, self._time.now_ms)

    def _delete_active(self, job: JobPods, count: int) -> None:
        for namespace, name in job.pods.surplus(count):
            pod = self._store.find(PODS, name, namespace)
            if pod is None:
                continue
            job.give_up(pod["metadata"]["uid"])
            self._store.delete(PODS, name, namespace)
            left = self._store.find(PODS, name, namespace)
            if left is None:
                job.pods.remove(pod)
            else:
                job.pods.put(left)

    def _finish(self, body: Object, job: JobPods, condition: Object) -> None:
        uid = body["metadata"]["uid"]
        self._finished_ms[uid] = self._time.now_ms
        if job.timer is not None:
            job.timer.cancel()
        self._write(body, job, [condition])

    def _remove_when_due(self, body: Object, job: JobPods) -> None:
        ttl_s = body["spec"].get("ttlSecondsAfterFinished")
        if ttl_s is None:
            return
        uid = body["metadata"]["uid"]
        due_ms = self._finished_ms.setdefault(uid, self._time.now_ms) + ttl_s * _MS_PER_S
        if self._time.now_ms >= due_ms:
            namespace, name = key_of_object(body)
            self._store.delete(JOBS, name, namespace)
        else:
            self._wake(body, job, due_ms)

    def _write(self, body: Object, job: JobPods, conditions: list[Object]) -> None:
        """Write the counts and the conditions."""
        now = self._store.timestamp()
        started = body["metadata"]["uid"] in self._started_ms
        known = (body.get("status") or {}).get("conditions") or ()
        if (
            started
            and any(condition["type"] == "Suspended" for condition in known)
            and not conditions
        ):
            conditions = [{"type": "Suspended", "status": "False", "reason": "JobResumed"}]

        def changed(current: Object) -> Object:
            status = _with_counts(current, job)
            if started:
                status.setdefault("startTime", now)
            else:
                status.pop("startTime", None)
            for condition in conditions:
                status["conditions"] = with_condition(
                    status.get("conditions") or [], condition, now
                )
                if condition["type"] == "Complete":
                    status["completionTime"] = now
            return {**current, "status": status}

        namespace, name = key_of_object(body)
        self._store.update(JOBS, name, namespace, changed)


def _with_counts(body: Object, job: JobPods) -> Object:
    """Return the status of a Job with the numbers of its pods."""
    status = dict(body.get("status") or {})
    counts = {
        "active": len(job.pods.active), "ready": len(job.pods.ready),
        "terminating": len(job.pods.terminating), "succeeded": job.succeeded,
        "failed": job.failed,
    }  # fmt: skip
    for key, count in counts.items():
        if count or key in status or key in ("ready", "terminating"):
            status[key] = count
    if body["spec"].get("completionMode") == "Indexed":
        status["completedIndexes"] = job.completed_text
    status.setdefault("uncountedTerminatedPods", {})
    return status


def _is_finished(body: Object) -> bool:
    return any(
        condition.get("type") in _FINISHED and condition.get("status") == "True"
        for condition in (body.get("status") or {}).get("conditions") or ()
    )


def _successes(body: Object, job: JobPods) -> int:
    if body["spec"].get("completionMode") == "Indexed":
        return job.completed_indexes.bit_count()
    return job.succeeded


def _is_complete(body: Object, job: JobPods) -> bool:
    completions = body["spec"].get("completions")
    if completions is not None:
        return _successes(body, job) >= int(completions)
    return bool(job.succeeded) and not job.pods.active and not job.pods.terminating
