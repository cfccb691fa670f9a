"""The JSON documents of ``equipoise kube``."""

from __future__ import annotations

from equipoise.documents.json_document import Document
from equipoise.documents.simulation import JobsDocument


class PendingPodRow(Document):
    """A pod without a node at the end of a run."""

    pod: str
    reason: str
    """What the scheduler wrote about it."""


class OverAllocationRow(Document):
    """A node whose pods requested more than it has."""

    at_s: float
    node: str
    resource: str
    requested: int
    allocatable: int
    pod: str
    """The pod whose binding led to it."""
    rejected: bool
    """Whether the node rejected the pod."""


class KubernetesRunDocument(JobsDocument):
    """The JSON document of ``equipoise kube run``: that of ``jobs``, and what the scheduler did."""

    clock: str
    exact: bool
    notes: tuple[str, ...]
    """Why the result is approximate."""
    bindings: int
    requests: int
    steps: int
    """How often the time was advanced."""
    bindings_sha256: str
    """Of every binding with its time and its node."""
    cpu_requested_pct: float
    cpu_used_pct: float
    fragmentation_pct: float
    """CPU that was free while pods waited, of all CPU over the time of the run."""
    pending: tuple[PendingPodRow, ...]
    """The first pods without a node."""
    pending_count: int
    over_allocations: tuple[OverAllocationRow, ...]
    repeated: bool | None = None
    """With ``--twice``: whether both runs made the same bindings."""


class KubernetesComparisonDocument(Document):
    """The JSON document of ``equipoise kube run`` with several configurations."""

    runs: tuple[KubernetesRunDocument, ...]


class KubernetesBuildDocument(Document):
    """The JSON document of ``equipoise kube build-scheduler``."""

    version: str
    path: str
    wall_s: float


class KubernetesImportDocument(Document):
    """The JSON document of ``equipoise kube import``."""

    nodes: int
    pods: int
    warnings: tuple[str, ...]
    """What was left out or changed, each once with a count."""


class EstimateRow(Document):
    """A mean over runs with its 95 % interval; no interval for a single run."""

    mean: float
    low: float | None
    high: float | None
    runs: int


class ClockStudyReferenceRow(Document):
    """The run of a workload that others are compared with."""

    workload: str
    pods: int
    nodes: int
    makespan_s: float
    mean_waiting_s: float
    wall_s: float
    over_allocations: int


class ClockStudyPointRow(Document):
    """The runs of a workload with equal parameters of the clock.

    Means are over the runs that came to their end; null if there is none.
    """

    workload: str
    timeout_ms: float
    max_step_s: float
    min_delay_ms: float
    runs: int
    crashes: int
    """Runs that failed."""
    crash_rate: float
    failures: dict[str, int]
    """How often each code stopped a run."""
    makespan_s: EstimateRow | None
    mean_waiting_s: EstimateRow | None
    wall_s: EstimateRow | None
    distance_s: EstimateRow | None
    """How far makespan and mean waiting time are from the reference."""
    accuracy: EstimateRow | None
    """One by the distance, over the runs that differ from the reference; null if none does."""
    exact_runs: int
    """Runs that equal the reference: their accuracy is infinite."""
    over_allocations: int
    """In all runs."""


class ClockStudyRunRow(Document):
    """One run of the study."""

    workload: str
    timeout_ms: float
    max_step_s: float
    min_delay_ms: float
    repeat: int
    makespan_s: float
    mean_waiting_s: float
    wall_s: float
    accuracy: float | None
    """Null if the run failed or equals the reference; ``exact`` says which."""
    exact: bool
    over_allocations: int
    failure: str
    """The code of what stopped the run."""


class ClockStudyDocument(Document):
    """The JSON document of ``equipoise kube study``."""

    scheduler: str
    reference_clock: str
    repeats: int
    references: tuple[ClockStudyReferenceRow, ...]
    points: tuple[ClockStudyPointRow, ...]
    runs: tuple[ClockStudyRunRow, ...]
    wall_s: float
