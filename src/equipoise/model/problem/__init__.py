"""Problem: what somebody wishes a cluster to become, for the planner to find the way there.

Enter by ``Problem``. Never says how: that is the planner's business.
"""

from equipoise.model.problem.duration import Duration
from equipoise.model.problem.network import Network
from equipoise.model.problem.problem import HostAim, Measure, Problem, VmAim

__all__ = ["Duration", "HostAim", "Measure", "Network", "Problem", "VmAim"]
