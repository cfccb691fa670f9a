"""Targets: what every adapter of a scheduler under test shares.

``trial`` is the question, ``scheduler`` the port that answers it, ``worker`` the separate process
of a foreign scheduler, ``environment`` the folder with its pinned packages.
"""
