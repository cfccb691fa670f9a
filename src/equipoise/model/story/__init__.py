"""Story: what a simulated run is told. The cluster, its loads, its physics and what befalls it.

Enter by ``scenario.Scenario``. Never computes anything: these are nouns, as a file gives them.
"""
