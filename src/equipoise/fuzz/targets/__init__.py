"""The schedulers under test: where each lives, how it is asked, and what it answers."""

from equipoise.fuzz.targets.encode import Cluster, HostEntry, VmEntry, cluster_of
from equipoise.fuzz.targets.environment import TARGETS, find, make
from equipoise.fuzz.targets.folder import MissingTarget, Target
from equipoise.fuzz.targets.worker import Answer, Crashed, Move, Planned, Worker, start

__all__ = [
    "TARGETS",
    "Answer",
    "Cluster",
    "Crashed",
    "HostEntry",
    "MissingTarget",
    "Move",
    "Planned",
    "Target",
    "VmEntry",
    "Worker",
    "cluster_of",
    "find",
    "make",
    "start",
]
