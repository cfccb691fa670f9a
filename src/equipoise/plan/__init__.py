"""Plan: gives intents their times, and lets only verified plans pass.

``order`` and ``verify`` are the entry points. This package does not decide what to do and never
touches a host.
"""

from equipoise.plan.order import order
from equipoise.plan.verify import Refusal, VerifiedPlan, verify
from equipoise.spec.moments import Judge

__all__ = ["Judge", "Refusal", "VerifiedPlan", "order", "verify"]
