"""Planning problems: a cluster, the desired state, and what counts on the way.

Start with ``PlanningProblem``. How to get there is the planner's task.
"""

from equipoise.model.problem.problem import (
    ActionDuration,
    DesiredHostState,
    DesiredVmState,
    Network,
    ObjectiveMeasure,
    PlanningProblem,
)

__all__ = [
    "ActionDuration",
    "DesiredHostState",
    "DesiredVmState",
    "Network",
    "ObjectiveMeasure",
    "PlanningProblem",
]
