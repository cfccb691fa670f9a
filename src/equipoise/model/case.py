"""A case: a cluster, a plan and the arguments of a constraint, to be judged."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem.network import Network
from equipoise.model.rule import Argument
from equipoise.model.value import Value


class CaseFile(Value):
    """What a constraint is to be judged on."""

    cluster: Inventory
    """The state before the plan. Its own rules are not judged."""
    plan: Plan | None = None
    """Without one, the cluster itself is judged."""
    arguments: Mapping[str, Argument] = {}
    """What the constraint is asked with, by the names of its arguments."""
    continuous: bool = False
    """Whether every moment of the plan is judged, or only its end."""
    network: Network | None = None
    """What migrations go through. No constraint is about it: campaigns ask whether machines could
    carry the plan out, and only then it counts."""
