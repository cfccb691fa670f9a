"""Connects a simulation to a scheduler of another process, which speaks the Batsim protocol.

``connection`` is the ZeroMQ side and the one module that imports ZeroMQ, ``process`` starts a
scheduler and ends it, ``driver`` runs the simulation, ``record`` stores and replays an exchange.
"""
