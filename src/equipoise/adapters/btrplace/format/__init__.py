"""The file formats of BtrPlace: its instances as our problems, and its plans as our plans, both
ways.

Enter by ``read_instance``, ``read_plan`` and ``write_plan``; ``is_instance`` recognises an
instance; ``plan_record`` gives a plan as plain values, and ``Numbering`` maps ids to BtrPlace's
numbers. One unit of BtrPlace's time is a second. Never opens a file. A statement of an instance
that BtrPlace obeys and that has no counterpart here is rejected. What BtrPlace ignores is ignored:
unknown keys (but not in constraints), and ``continuous`` where there is no choice. Of a plan only
the actions are read, not the model it starts from, nor the bandwidth of migrations.
"""

from equipoise.adapters.btrplace.format.instance_reader import is_instance, read_instance
from equipoise.adapters.btrplace.format.plan_reader import read_plan
from equipoise.adapters.btrplace.format.plan_writer import plan_record, write_plan
from equipoise.adapters.btrplace.format.records import Numbering

__all__ = [
    "Numbering",
    "is_instance",
    "plan_record",
    "read_instance",
    "read_plan",
    "write_plan",
]
