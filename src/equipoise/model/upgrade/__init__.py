"""Upgrades: infrastructure, catalog, requests, tasks, graphs, events and status.

Tenants are those of the cluster (``model.inventory``).
"""
