"""The only folder on the module path of a worker: what every worker script imports."""
