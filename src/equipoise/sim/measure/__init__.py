"""Measure: what a run amounts to. Samples over time, sums over all of it, and broken promises.

Enter by ``watch.Watch`` and ``measures.measure``. Never changes what it looks at.
"""
