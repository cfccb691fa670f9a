"""Mending: what is wrong with the rules, and the fewest moves that put it right.

Enter by ``mend``. Never moves a VM that somebody has fixed, never calls anything mended that the
gate would refuse; what cannot be mended is told with what is in the way.
"""
