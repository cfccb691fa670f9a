"""Requests: from a request of an administrator to work on each resource, and back.

Entry points: ``schedule_request``, ``undo_set``, ``drop_set``, ``settle_dependencies``. This
package does not decide when the work is done.
"""
