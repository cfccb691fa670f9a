"""The clocks of a run with real schedulers: the page of virtual time, and what tells them quiet."""
