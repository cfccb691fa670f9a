"""Fluid: what flows between the events. Who gets how much CPU and memory, and what it adds up to.

Enter by ``Fluid``. Never decides, never draws a number: it divides what is there among those who
ask, as a hypervisor does, and keeps the sums.
"""
