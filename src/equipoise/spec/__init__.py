"""Spec: the specification language, in which it is written what a plan must keep.

Enter by ``parse``. Never decides, never touches a world, never reads the notes of a decider.
"""
