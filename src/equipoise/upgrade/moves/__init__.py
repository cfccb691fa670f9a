"""VMs that move in an upgrade: to hosts that are changed (step 4), or closer together to free some.

Each move passes the gate.
"""
