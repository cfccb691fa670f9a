"""Power: puts hosts that are not needed into standby, and wakes hosts before they are needed.

Enter by ``PowerDecider`` or ``run_pass``. This is the DPM of the DRS paper: observed utilisation
decides whether capacity is in excess or short, a what-if on arrays decides which hosts can be
evacuated, and the candidate filters decide which hosts must stay on. Never puts a host into standby
whose evacuation it has not tried, never reads a clock; gives a reason for every host.
"""

from equipoise.power.propose import PowerDecider

__all__ = ["PowerDecider"]
