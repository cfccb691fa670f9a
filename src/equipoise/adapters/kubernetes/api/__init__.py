"""The Kubernetes API: one store of objects, its HTTP server, and everything a client may ask.

``ObjectStore`` keeps the objects, ``ApiServer`` serves them. No part reads a clock or draws a
random number: time comes from the simulation, ids from a counter.
"""
