"""Capacity: what hosts have, what VMs hold of it, and what each VM is entitled to.

Enter by ``ledger`` (committed capacity), ``entitlement`` (fair shares), ``admission`` (pool
reservations) and ``imbalance``. Never moves a VM, never touches a host.
"""
