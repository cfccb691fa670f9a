"""Fuzzing: campaigns from the command line."""
