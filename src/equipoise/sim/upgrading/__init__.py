"""A simulated engine for upgrades: durations, failures, and tenants that scale meanwhile."""
