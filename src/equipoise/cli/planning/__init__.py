"""Planning: the commands that make plans and say what came of it.

Enter by ``solve.run``.
"""
