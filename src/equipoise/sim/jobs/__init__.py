"""Batch jobs in virtual time: hosts, jobs, a fluid model of computing, policies and measures."""
