"""What VMs demand over time, as pure functions of seed, VM and time.

The entry point is ``LoadDemands``, which uses a ``TraceReader``. The package keeps no random state:
a level does not depend on when, in which order and with how many other VMs it is computed.
"""

from equipoise.sim.load.demand import DemandChanges, LoadDemands
from equipoise.sim.load.trace_reader import TraceReader

__all__ = ["DemandChanges", "LoadDemands", "TraceReader"]
