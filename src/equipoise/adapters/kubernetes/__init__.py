"""The Kubernetes API of a simulated cluster, so that unmodified schedulers work in virtual time.

``api`` serves the objects, ``clock`` provides virtual time to a scheduler, ``workload`` reads and
``cluster`` runs the pods. Kubernetes words stay inside this package and ``sim/pods``.
"""
