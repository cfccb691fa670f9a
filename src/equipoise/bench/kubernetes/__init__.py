"""Benchmarks of the Kubernetes part: its API, schedulers in virtual time, and memory."""
