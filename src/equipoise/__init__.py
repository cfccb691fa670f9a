"""Equipoise keeps a virtualised cluster in balance and proves every decision it makes."""

__version__ = "0.1.0"
