"""Schedulers under test in this process: our own, and some with deliberate faults.

Foreign schedulers are in ``adapters``; the port is ``adapters/targets/scheduler.py``.
"""
