"""Roles: the layout as a file has it, and the state of slots, roles and processors."""
