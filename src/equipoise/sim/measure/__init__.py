"""The figures of a run: samples over time, totals, energy and SLA breaches."""
