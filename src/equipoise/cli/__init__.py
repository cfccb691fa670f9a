"""Cli: the command line. Parses, calls, prints.

Enter by ``main``. Never decides anything; each command is a file of its own, imported when called.
"""
