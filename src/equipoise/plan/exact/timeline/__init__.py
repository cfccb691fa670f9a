"""Timeline: what may happen to every VM and host, where and when, before it is decided.

Enter by ``Timeline`` for the courses, by ``Room`` for what machines demand, and by ``states``.
"""
