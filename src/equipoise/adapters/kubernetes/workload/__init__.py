"""Workloads of pods: nodes, and objects with the times at which they arrive.

They come from Batsim JSON, SWF, the openb trace, or plain manifests (``load.py``).
"""
