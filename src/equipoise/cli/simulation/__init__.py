"""The commands about runs in virtual time: simulate, scenarios, report, demo."""
