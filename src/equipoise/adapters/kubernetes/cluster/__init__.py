"""Keeps the objects of the API and the simulated nodes equal, and runs the controllers.

``SimulatedCluster`` is the entry point. All reactions are synchronous, without threads and clocks.
"""
