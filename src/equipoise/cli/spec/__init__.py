"""The commands about the specification language: check, list, show, judge, functions."""
