"""Hosts: the commands that touch real machines."""
