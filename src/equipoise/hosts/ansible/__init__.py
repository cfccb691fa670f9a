"""Ansible: lets playbooks act on real hosts over SSH, one run for all hosts of a batch.

Enter by ``access.parse_access`` with an access file, ``ways.ways_to`` for the hosts it describes,
and ``batch.perform`` for a batch of chores. What a host did not provably finish has failed, with
the reason. Never reuses a connection, never looks away from a host's key, never says a secret.
"""
