"""The simulated cluster in virtual time: its state, its events, its actions and its faults."""
