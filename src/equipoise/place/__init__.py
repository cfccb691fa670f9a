"""Place: what each VM deserves of the cluster, by its claims, its demand and its pool.

Enter by ``entitlements``. Never moves anything, never touches a host.
"""

from equipoise.place.entitlement import entitlements

__all__ = ["entitlements"]
