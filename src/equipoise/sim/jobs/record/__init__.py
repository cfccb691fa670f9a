"""The record of a run of jobs: its events in the journal, and the run that they rebuild."""
