"""Api: the functions behind ``import equipoise as eq``.

The command line calls the same functions, so that a script and a command give the same answer.
They print nothing and leave no process behind.
"""
