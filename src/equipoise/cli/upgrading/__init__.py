"""The faces of the upgrade: run, preview and tell a campaign."""
