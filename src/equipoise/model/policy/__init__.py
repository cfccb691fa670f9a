"""Policies: how far deciders may go, and what they weigh. An operator's choice, like the rules.

They are part of the cluster's settings, so that a what-if can change them and a journal keeps them.
Defaults are the values of the DRS paper where it gives them.
"""

from equipoise.model.policy.balance import Automation, BalancePolicy, HostOverride, VmOverride
from equipoise.model.policy.power import PowerAutomation, PowerOverride, PowerPolicy

__all__ = [
    "Automation",
    "BalancePolicy",
    "HostOverride",
    "PowerAutomation",
    "PowerOverride",
    "PowerPolicy",
    "VmOverride",
]
