"""Policies: how far deciders may go, and what they weigh.

They are part of the cluster's settings, so that a what-if can change them and the journal records
them. Defaults are the values of the DRS paper where it gives them.
"""
