"""Change: how events turn one snapshot into the next.

Enter by ``transition.apply`` or, for whoever applies many, by ``Draft``. Never refuses an event:
what has happened has happened.
"""
