"""Roles: which processor carries which role, and which roles to start and stop.

Entry points: ``RoleDecider``, ``check_removal`` (which processors may be removed), ``lint_layout``
(defects of a layout) and ``layout_meaning``. Decisions depend on the snapshot alone; the package
reads no clock.
"""

from equipoise.roles.lint import lint_layout
from equipoise.roles.meaning import layout_meaning
from equipoise.roles.propose import RoleDecider
from equipoise.roles.removal import RemovalCheck, check_removal

__all__ = ["RemovalCheck", "RoleDecider", "check_removal", "layout_meaning", "lint_layout"]
