"""Requests: from a request of an administrator to work on each resource, and back.

Entry points: ``schedule_request``, ``undo_set``, ``drop_set``, ``settle_dependencies``. This
package does not decide when the work is done.
"""

from equipoise.upgrade.requests.dependency_changes import settle_dependencies
from equipoise.upgrade.requests.schedule import schedule_request
from equipoise.upgrade.requests.undo import drop_set, undo_set

__all__ = ["drop_set", "schedule_request", "settle_dependencies", "undo_set"]
