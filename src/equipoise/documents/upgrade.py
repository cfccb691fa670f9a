"""The JSON document of an upgrade campaign. Its keys are a contract."""

from __future__ import annotations

from typing import Any

from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.upgrade.summary import CampaignSummary, IterationSummary


def upgrade_document(
    campaign: UpgradeCampaign, made: CampaignSummary, *, dry_run: bool
) -> dict[str, Any]:
    """Return the JSON document of ``equipoise upgrade``."""
    return {
        "campaign": campaign.name,
        "status": made.status.value,
        "reason": made.reason,
        "code": made.code,
        "dry_run": dry_run,
        "paper": campaign.settings.readings.any_literal,
        "iterations": [_iteration_document(iteration) for iteration in made.iterations],
        "sets": [
            {
                "set": id_,
                "outcome": result.outcome,
                "reason": result.reason,
                "code": result.code,
                "complementary": made.complements.get(id_, []),
                "matching": made.already_matching.get(id_, []),
            }
            for id_, result in made.sets.items()
        ],
        "refused_orders": [
            {"order": order, "reason": reason.text, "code": reason.code}
            for order, reason in made.refused_orders
        ],
        "groups": {group: list(members) for group, members in made.groups.items()},
        "isolated": [
            {"resource": id_, "reason": reason.text, "code": reason.code}
            for id_, reason in made.isolated.items()
        ],
        "sla_violations": len(made.violations),
        "violations": [
            {
                "at_s": violation.at_ms / 1000,
                "tenant": violation.tenant,
                "what": violation.what,
                "code": violation.code,
            }
            for violation in made.violations
        ],
        "outage_s": sum(made.outage_ms.values()) / 1000,
        "outages": {tenant: ms / 1000 for tenant, ms in made.outage_ms.items()},
        "moves": sum(made.moves.values()),
        "moves_per_vm_max": max(made.moves.values(), default=0),
        "lowest_headroom": lowest_headroom(made),
        "spare_hosts": [
            {
                "request": need.request,
                "needed": need.needed,
                "available": need.available,
                "enough": need.is_enough,
            }
            for need in made.spare
        ],
        "duration_s": made.duration_ms / 1000,
    }


def lowest_headroom(made: CampaignSummary) -> int | None:
    """Return the fewest hosts beyond the reserve in any iteration that changes a host."""
    headrooms = (iteration.headroom for iteration in made.iterations)
    return min((headroom for headroom in headrooms if headroom is not None), default=None)


def _iteration_document(iteration: IterationSummary) -> dict[str, Any]:
    return {
        "i": iteration.i,
        "z": iteration.z,
        "v": iteration.v,
        "batch": list(iteration.batch),
        "vm_batches": [list(batch) for batch in iteration.vm_batches],
        "consolidation": [list(batch) for batch in iteration.consolidation],
        "w": [
            {
                "j": j,
                "wanted": each.wanted,
                "size": each.size,
                "reason": each.reason,
                "code": each.code,
            }
            for j, each in enumerate(iteration.rounds, 1)
        ],
        "eliminated": [
            {
                "resource": vertex,
                "rule": group.rule,
                "reason": group.reason,
                "code": group.code,
            }
            for group in iteration.eliminated
            for vertex in group.vertices
        ],
        "failed": [
            {"resource": id_, "reason": why, "code": "task-failed"}
            for id_, why in iteration.failed.items()
        ],
        "paused": iteration.paused,
        "pause_codes": list(iteration.pause_codes),
        "tenants": dict(iteration.sizes),
        "headroom": iteration.headroom,
        "began_s": iteration.began_ms / 1000,
        "ended_s": iteration.ended_ms / 1000,
    }
