"""Balance: moves VMs so that every host can give its VMs what they deserve, if that is worth it.

Enter by ``Balance``. Never reads a clock, never draws a number, never proposes what the gate would
refuse; says why it acts and why it does not.
"""

from equipoise.balance.propose import Balance

__all__ = ["Balance"]
