"""Model: the nouns of the house, frozen, and the one function that turns events into states.

Enter by ``Snapshot`` and ``transition.apply``; files come in by ``model.files``.
Never reads a clock, never touches a file or a host, never decides anything.
"""
