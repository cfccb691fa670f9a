"""Near: where to look first, so that a large problem becomes a small one most of the time.

Enter by ``reaches``. Nothing here is more than a guess: what it leaves out is looked at later.
"""
