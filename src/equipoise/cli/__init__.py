"""Cli: the command line. It parses arguments, calls the other packages and prints the answer.

Enter by ``main``. Never decides anything; each command is a file of its own, imported when it is
called.
"""
