"""Which method an upgrade unit takes, and into which partitions it falls."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.work import Method, UnitId, UpgradeUnit


def unit_of(
    graph: ResourceGraph, id_: UnitId, members: Sequence[ResourceId], *, remote_links: bool
) -> UpgradeUnit | None:
    """Choose the method for resources that are bound by incompatible dependencies (5.1.4).

    ``members`` are in the order of the graph. ``remote_links`` says whether links can be switched
    from afar. ``None`` means that no method is known by which they can be changed.
    """
    if len(members) == 1:
        return UpgradeUnit(id=id_, method=Method.ROLLING, partitions=((members[0],),))
    return None
