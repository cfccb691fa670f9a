"""BtrPlace: the instances and the plans of another planner, as problems and plans of ours.

Enter by ``read_instance``, ``read_plan`` and ``write_plan``; ``is_instance`` tells what they are
for. One unit of BtrPlace's time is a second. Never opens a file, and never leaves out in silence
what a file says: what has no counterpart is refused.
"""

from equipoise.model.files.btrplace.instance import is_instance, read_instance
from equipoise.model.files.btrplace.plan_in import read_plan
from equipoise.model.files.btrplace.plan_out import write_plan

__all__ = ["is_instance", "read_instance", "read_plan", "write_plan"]
