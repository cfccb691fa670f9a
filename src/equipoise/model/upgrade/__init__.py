"""Upgrades: infrastructure, catalog, requests, tasks, graphs, and events with their status.

Tenants are those of the cluster (``model.inventory``).
"""
