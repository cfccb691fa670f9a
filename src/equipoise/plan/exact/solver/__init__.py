"""Solver: what is decided, by CP-SAT. Only this room of the house talks to it.

Enter by ``Circuit`` to say what must hold, and by ``decide`` to have it decided.
"""
