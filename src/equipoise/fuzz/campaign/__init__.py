"""Campaigns: many trials put before one scheduler, and what came of them.

Enter by ``Campaign``. Never says that a scheduler is right: only that nothing was found.
"""

from equipoise.fuzz.campaign.campaign import Campaign, Limits
from equipoise.fuzz.campaign.findings import Finding, Report

__all__ = ["Campaign", "Finding", "Limits", "Report"]
