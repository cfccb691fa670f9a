"""Watcher: the strategies of OpenStack Watcher under test, and as a peer of our balancer."""
