"""A client of the Kubernetes API: imports a live cluster, and schedules with our placement."""
