"""BtrPlace: the instances and the plans of another planner, as problems and plans of ours.

Enter by ``read_instance``, ``read_plan`` and ``write_plan``; ``is_instance`` tells what they are
for; ``plan_record`` is a plan that is not written yet, and ``Numbering`` says who is who there.
One unit of BtrPlace's time is a second. Never opens a file. What an instance says and BtrPlace
goes by is refused if it has no counterpart. What BtrPlace itself passes over is passed over: keys
of one's own (but not in constraints), and ``continuous`` where there is nothing to choose. Of plans
only the actions count, not the model that they begin with, nor the bandwidth of migrations.
"""

from equipoise.model.files.btrplace.instance import is_instance, read_instance
from equipoise.model.files.btrplace.names import Numbering, their_resource
from equipoise.model.files.btrplace.plan_in import read_plan
from equipoise.model.files.btrplace.plan_out import plan_record, write_plan

__all__ = [
    "Numbering",
    "is_instance",
    "plan_record",
    "read_instance",
    "read_plan",
    "their_resource",
    "write_plan",
]
