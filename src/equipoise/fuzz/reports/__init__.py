"""Reports of campaigns in files: CSV, HTML and JUnit XML.

Entry points: ``CampaignAccount``, ``render_csv``, ``render_junit`` and ``render_page``.
"""

from equipoise.fuzz.reports.export import CampaignAccount, render_csv, render_junit
from equipoise.fuzz.reports.page import render_page

__all__ = ["CampaignAccount", "render_csv", "render_junit", "render_page"]
