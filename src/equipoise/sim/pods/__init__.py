"""Nodes and pods in virtual time: what kubelets do with pods that are bound to their nodes.

``PodCluster`` is the entry point. It knows no API and no JSON: ``adapters/kubernetes`` does.
"""
