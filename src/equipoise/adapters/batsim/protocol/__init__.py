"""The Batsim protocol v3/v4: a simulation that exchanges messages with a scheduler."""
