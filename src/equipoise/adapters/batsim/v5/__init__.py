"""Batsim 5: profiles, messages of batprotocol in JSON, and the layout of its result files."""
