"""Methods: how the resources of an upgrade unit are taken through a change.

Enter by ``unit_of``. Never looks at the state of an upgrade: a unit always has the same partitions.
"""

from equipoise.upgrade.methods.choose import unit_of

__all__ = ["unit_of"]
