"""The command ``jobs``."""
