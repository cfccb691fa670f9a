"""Plans: the page of a plan, or of the reason why there is none.

Enter by ``plan_page``. Never solves anything, and never judges a plan.
"""

from equipoise.report.plans.page import Goal, plan_page

__all__ = ["Goal", "plan_page"]
