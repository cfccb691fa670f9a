"""The state of the cluster: frozen snapshot, writable draft, and transition by events.

Start with ``Snapshot`` and ``transition.apply``; to apply many events use ``Draft``. No event is
refused: it reports what has already happened.
"""
