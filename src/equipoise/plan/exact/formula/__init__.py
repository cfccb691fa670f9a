"""Formula: the specification itself becomes the model that the solver solves.

Enter by ``Translator``: a formula of the language, asked of states that are not decided yet, gives
what must hold between the decisions. Whatever is known is folded away.
"""
