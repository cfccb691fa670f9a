"""Methods: how the resources of an upgrade unit are taken through a change.

Enter by ``unit_of`` (method and partitions), ``passages_of`` (what is switched off and on when),
``spare_hosts`` and ``unprotected`` (what that costs) and ``universes`` (what is replaced side by
side). Never looks at the state of an upgrade: a unit always has the same partitions.
"""

from equipoise.upgrade.methods.choose import unit_of
from equipoise.upgrade.methods.degradation import spare_hosts, unprotected
from equipoise.upgrade.methods.parallel import universes
from equipoise.upgrade.methods.passage import passages_of

__all__ = ["passages_of", "spare_hosts", "unit_of", "universes", "unprotected"]
