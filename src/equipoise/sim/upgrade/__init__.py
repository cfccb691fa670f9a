"""A simulated engine for upgrades, and rolling upgrades to compare with."""
