"""The specification language: the constraints that a plan must satisfy, as formulas.

``Specification.read`` reads a file; ``SpecificationJudge`` judges a plan for the gate.
This package decides nothing, changes no world and reads no state of a decider.
"""
