"""Levelling: how unevenly hosts are loaded, and the moves that are worth making about it.

Enter by ``Levelling``. Never breaks a rule to be more even, never moves what does not pay.
"""
