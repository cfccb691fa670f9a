"""Draw: many trials at once, in arrays.

Enter by ``draw_stages`` and ``draw_trials``. Each line does the same to all trials; the first axis
of every array is the trial. What a trial becomes depends on its own key only, not on those that
are drawn with it.
"""

from equipoise.fuzz.generate.draw.chance import mix
from equipoise.fuzz.generate.draw.stage import Stages, draw_stages
from equipoise.fuzz.generate.draw.whole import draw_trials

__all__ = ["Stages", "draw_stages", "draw_trials", "mix"]
