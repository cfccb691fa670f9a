"""Bench: benchmarks of every package, as ratios within one run.

Enter by ``rows`` of a suite. Never prints; ``equipoise bench`` does.
"""
