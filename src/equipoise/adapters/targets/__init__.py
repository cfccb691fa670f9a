"""Targets: what every adapter of a scheduler under test shares.

``trial`` is the question, ``scheduler`` the port that answers it, ``worker`` the separate process
of a foreign scheduler, ``environment`` the folder with its pinned packages.
"""

from equipoise.adapters.targets.environment import (
    PYTHON_TARGETS,
    MissingTarget,
    PinnedTarget,
    find_environment,
    make_environment,
)
from equipoise.adapters.targets.worker import (
    ClusterMessage,
    HostMessage,
    PlanAnswer,
    ProposedMove,
    ProposedMoves,
    TargetCrash,
    VmMessage,
    Worker,
    encode_cluster,
    start_worker,
)

__all__ = [
    "PYTHON_TARGETS",
    "ClusterMessage",
    "HostMessage",
    "MissingTarget",
    "PinnedTarget",
    "PlanAnswer",
    "ProposedMove",
    "ProposedMoves",
    "TargetCrash",
    "VmMessage",
    "Worker",
    "encode_cluster",
    "find_environment",
    "make_environment",
    "start_worker",
]
