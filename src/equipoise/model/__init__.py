"""Model: the frozen types of a cluster, and the one function that applies events to it.

Start with ``state.snapshot.Snapshot`` and ``state.transition.apply``. No clock, no I/O, no
decisions.
"""
