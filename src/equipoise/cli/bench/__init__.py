"""Bench: how fast it is, as ratios measured in one run.

Enter by ``run.run``. Never asserts anything: figures are to be read, on the machine they are from.
"""
