"""Plan: turns what is wanted into timed steps and lets only verified plans through.

Enter by ``order`` and ``verify``. Never decides what is wanted, never touches a host.
"""

from equipoise.plan.order import order
from equipoise.plan.verify import Refusal, VerifiedPlan, verify
from equipoise.spec.moment import Judge, Moment, Phase

__all__ = ["Judge", "Moment", "Phase", "Refusal", "VerifiedPlan", "order", "verify"]
