"""Runs schedulers of Kubernetes on a simulated cluster in virtual time."""
