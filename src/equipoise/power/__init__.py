"""Power: puts hosts to sleep that are not needed, and wakes them before they are missed.

Enter by ``Power``. The DPM of the DRS paper: what was asked for decides whether there is too much
or too little, a what-if decides who may go, and brakes decide who must not. It stands one floor
above ``balance``, whose arrays and rules it uses. Never puts a host to sleep that it has not
emptied in mind, never reads a clock; says of every host why it is left as it is.
"""

from equipoise.power.propose import Power

__all__ = ["Power"]
