"""What came of a campaign, as one JSON document. Its keys are a contract."""

from __future__ import annotations

from typing import Any

from equipoise.model.upgrade.campaign import Campaign
from equipoise.upgrade.account import Account, IterationAccount


def document(campaign: Campaign, made: Account, *, dry_run: bool) -> dict[str, Any]:
    """Put an account into the keys that programs read."""
    return {
        "campaign": campaign.name,
        "status": made.status.value,
        "reason": made.reason,
        "dry_run": dry_run,
        "paper": campaign.settings.readings.any_literal,
        "iterations": [_iteration(one) for one in made.iterations],
        "sets": [
            {
                "set": id_,
                "outcome": outcome,
                "reason": reason,
                "complementary": made.complements.get(id_, []),
                "matching": made.matching.get(id_, []),
            }
            for id_, (outcome, reason) in made.sets.items()
        ],
        "refused_orders": [{"order": one, "reason": why} for one, why in made.refused_orders],
        "groups": {one: list(those) for one, those in made.groups.items()},
        "isolated": [{"resource": one, "reason": why} for one, why in made.isolated.items()],
        "sla_violations": len(made.violations),
        "violations": [
            {"at_s": one.at_ms / 1000, "tenant": one.tenant, "what": one.what}
            for one in made.violations
        ],
        "outage_s": sum(made.outage_ms.values()) / 1000,
        "outages": {tenant: ms / 1000 for tenant, ms in made.outage_ms.items()},
        "moves": sum(made.moves.values()),
        "moves_per_vm_max": max(made.moves.values(), default=0),
        "lowest_headroom": lowest_headroom(made),
        "spare_hosts": [
            {
                "request": one.request,
                "needed": one.needed,
                "available": one.available,
                "enough": one.enough,
            }
            for one in made.spare
        ],
        "duration_s": made.duration_ms / 1000,
    }


def lowest_headroom(made: Account) -> int | None:
    """How many more hosts could have been spared in the tightest iteration that changed one."""
    return min((one.headroom for one in made.iterations if one.headroom is not None), default=None)


def _iteration(one: IterationAccount) -> dict[str, Any]:
    return {
        "i": one.i,
        "z": one.z,
        "v": one.v,
        "batch": list(one.batch),
        "vm_batches": [list(batch) for batch in one.vm_batches],
        "consolidation": [list(batch) for batch in one.consolidation],
        "w": [
            {"j": j, "wanted": each.wanted, "size": each.size, "reason": each.reason}
            for j, each in enumerate(one.rounds, 1)
        ],
        "eliminated": [
            {"resource": vertex, "rule": group.rule, "reason": group.reason}
            for group in one.eliminated
            for vertex in group.vertices
        ],
        "failed": [{"resource": id_, "reason": why} for id_, why in one.failed.items()],
        "paused": one.paused,
        "tenants": dict(one.sizes),
        "headroom": one.headroom,
        "began_s": one.began_ms / 1000,
        "ended_s": one.ended_ms / 1000,
    }
