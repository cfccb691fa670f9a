"""The nouns of an upgrade: what vendors say, what is asked for, the graphs, and what has happened.

Resources, dependencies and tenants are those of the cluster (``model/resource``, ``model/tenant``).
"""
