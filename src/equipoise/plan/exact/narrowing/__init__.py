"""Narrowing: which VMs and hosts to search first, so that most large problems become small ones.

``search_scopes`` is the entry point. Everything here is a heuristic: what it leaves out is searched
later.
"""
