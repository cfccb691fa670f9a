"""Graphs: what depends on what, now and in future, made of the state anew in each iteration.

Enter by ``build``. Never changes the state of an upgrade.
"""
