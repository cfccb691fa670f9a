"""Ansible: playbooks act on real hosts over SSH, one run for all hosts of a batch.

The entry point is ``preflight.engine_for``; or ``access.parse_access`` for an access file,
``access.connections_to`` for its hosts and ``batch.perform`` for a batch of jobs. A job without a
proof that it finished has failed, with a reason. The package never reuses a connection, never skips
the check of a host key and never prints a secret.
"""
