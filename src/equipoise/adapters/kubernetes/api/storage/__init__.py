"""The parts of the store: one collection with its history."""
