"""Spec: the specification language, in which it is written what a plan must keep.

Enter by ``Specification.read``, and by ``SpecificationJudge`` for the gate.
Never decides, never touches a world, never reads the notes of a decider.
"""
