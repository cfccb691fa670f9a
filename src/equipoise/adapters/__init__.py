"""One folder per outside system. Never decides, and never takes "accepted" for "done"."""
