"""Fuzz: campaigns of random trials that find where a scheduler disagrees with the specification.

Entry points: ``campaign``; ``testing`` from a test file; ``registry`` for schedulers by name.
Foreign schedulers are in ``adapters``. Fuzz never changes a real cluster.
"""
