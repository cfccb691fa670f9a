"""Waiting jobs: an index for backfilling, and reservations over time."""
