"""Advice: the commands that say what should be done with a cluster, and do nothing.

Enter by ``run`` of ``recommend``, ``place`` or ``whatif``.
"""
