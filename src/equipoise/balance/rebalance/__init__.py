"""Rebalance: measures the imbalance and finds the moves that reduce it and are worth their cost.

Enter by ``Rebalancer``. Never breaks a rule to reduce the imbalance.
"""
