"""Formulas over undecided states: the specification itself becomes the model.

``FormulaTranslator`` turns a formula, evaluated on states that are not decided yet, into
constraints of the solver. Known values are folded away.
"""
