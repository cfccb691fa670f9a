"""The page of a plan, or of the reason why no plan exists.

Enter by ``plan_page``. Never solves anything, and never judges a plan.
"""

from equipoise.report.plan.page import plan_page

__all__ = ["plan_page"]
