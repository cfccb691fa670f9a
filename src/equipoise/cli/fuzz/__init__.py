"""The commands about campaigns: fuzz and fuzz experiment."""
