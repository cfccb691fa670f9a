"""Hosts: real machines, as far as they can be reached from here.

Enter by ``wake``: how hosts are woken and put to sleep, or ``ansible``: how playbooks upgrade them.
Never decides who is to sleep or what is to be upgraded, never reads a clock of its own, and never
takes "accepted" for "done".
"""
