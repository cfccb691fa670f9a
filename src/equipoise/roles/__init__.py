"""Roles: which processor carries which role, and what to start and stop so that it does.

Enter by ``Roles`` (the decider), ``may_leave`` (who may go without a role being lost), ``lint``
(what is wrong with a layout) and ``layout_meaning`` (what a layout means). Never remembers anything
that is not in the snapshot, and never reads a clock.
"""

from equipoise.roles.leave import Leave, may_leave
from equipoise.roles.lint import lint
from equipoise.roles.meaning import layout_meaning
from equipoise.roles.propose import Roles

__all__ = ["Leave", "Roles", "layout_meaning", "lint", "may_leave"]
