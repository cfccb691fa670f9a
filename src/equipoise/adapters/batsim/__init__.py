"""Batsim: its files (platform, workload, outputs) and the Standard Workload Format."""
