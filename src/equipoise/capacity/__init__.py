"""Capacity: what hosts have, what VMs hold of it, and what each VM is entitled to.

Enter by ``ledger`` (fit, commit, release), ``arrays`` (the same for kernels), ``entitlement`` (fair
shares), ``admission`` (pool reservations) and ``imbalance``. It moves no VM and touches no host.
"""
