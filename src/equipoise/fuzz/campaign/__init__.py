"""Campaigns: many trials put to one scheduler, and the findings.

Entry point: ``FuzzCampaign``. A campaign never proves that a scheduler is right.
"""

from equipoise.fuzz.campaign.campaign import CampaignLimits, FuzzCampaign
from equipoise.fuzz.campaign.findings import CampaignReport, Finding

__all__ = ["CampaignLimits", "CampaignReport", "Finding", "FuzzCampaign"]
