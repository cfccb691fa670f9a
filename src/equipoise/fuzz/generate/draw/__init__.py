"""Draw: many trials at once, in arrays.

Entry points: ``draw_planned_clusters`` and ``draw_trials``. Each line does the same to all trials;
the first axis of every array is the trial. A trial depends on its own key only, not on the others.
"""

from equipoise.fuzz.generate.draw.arguments import draw_trials
from equipoise.fuzz.generate.draw.keyed_random import mix
from equipoise.fuzz.generate.draw.plans import PlannedClusters, draw_planned_clusters

__all__ = ["PlannedClusters", "draw_planned_clusters", "draw_trials", "mix"]
