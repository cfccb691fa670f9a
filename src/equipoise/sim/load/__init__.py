"""Load: what VMs ask for over time, as pure functions of seed, VM and time.

Enter by ``Demands``, which is given a ``TraceReader``. Never remembers a draw: a level is the same
whenever, in whatever order and for however many VMs at once it is asked for.
"""

from equipoise.sim.load.demand import Changes, Demands
from equipoise.sim.load.trace import TraceReader

__all__ = ["Changes", "Demands", "TraceReader"]
