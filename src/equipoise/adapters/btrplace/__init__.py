"""BtrPlace: its file formats (``format``), and its planner as a scheduler under test."""
