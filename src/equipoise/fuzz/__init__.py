"""Fuzz: puts trials before schedulers, and finds where they disagree with the specification.

Enter by ``campaign``; by ``testing`` from a test file; by ``targets`` for schedulers that live in a
process of their own. Never imports one of those, and never alters a real cluster.
"""
