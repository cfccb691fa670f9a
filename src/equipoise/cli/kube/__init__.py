"""The commands of ``equipoise kube``."""
