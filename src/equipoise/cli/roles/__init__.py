"""The commands about role layouts: check, plan, run."""
