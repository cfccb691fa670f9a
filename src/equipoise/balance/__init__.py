"""Balance: moves VMs so that every host can give its VMs what they are entitled to.

Enter by ``BalanceDecider`` or ``run_pass``. One pass first repairs broken rules (``repair``), then
reduces the imbalance if a move is worth its cost (``rebalance``). Never reads a clock;
random numbers are drawn from the seed only. Never proposes what the gate refuses, and gives a
reason for every action and every inaction.
"""

from equipoise.balance.propose import BalanceDecider

__all__ = ["BalanceDecider"]
