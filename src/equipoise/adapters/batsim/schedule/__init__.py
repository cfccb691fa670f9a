"""The other side of the protocol: built-in policies decide for a simulation of Batsim."""
