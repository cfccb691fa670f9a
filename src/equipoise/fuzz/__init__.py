"""Fuzz: puts the same cluster before other schedulers and writes down what they answer.

Enter by ``targets``: ``make`` builds the environment of one, ``Worker`` asks it. Never imports a
scheduler under test, which runs in a process of its own, and never alters a real cluster.
"""
