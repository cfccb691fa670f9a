"""Roles on the command line: check a layout, plan what it asks for, run its story."""
