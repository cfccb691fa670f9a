"""Roles: which processor carries which role, and which roles to start and stop.

Entry points: ``RoleDecider``, ``check_removal`` (which processors may be removed), ``lint_layout``
(defects of a layout) and ``layout_meaning``. Decisions depend on the snapshot alone; the package
reads no clock.
"""
