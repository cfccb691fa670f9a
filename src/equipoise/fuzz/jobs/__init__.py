"""Campaigns for batch schedulers: workloads with constraints are drawn, run, judged and shrunk.

Entry point: ``JobCampaign``. It shares workers, batch sizes, limits, counts and the shrinking loop
with campaigns about plans.
"""
