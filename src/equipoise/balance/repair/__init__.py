"""Repair: finds broken rules and the fewest moves that repair them.

Enter by ``repair_rules``. Never moves a pinned VM, never reports a repair that the gate refuses. A
rule that cannot be repaired becomes a fault that names the obstacles.
"""
