"""The language itself: vocabulary, types, parser, printer and syntax tree.

``parse`` and ``print_file`` are the entry points. Nothing here evaluates a formula.
"""
