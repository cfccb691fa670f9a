"""The page of a simulated run, one module per section."""
