"""Amendments: what is added must make sense together with the cluster it is added to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from equipoise.model.amendment import Amendment, amended
from equipoise.model.files.findings import Enough, Finding, Findings
from equipoise.model.files.words import quoted
from equipoise.model.inventory import Inventory

CheckWhole = Callable[[Inventory, Findings], None]


def check_amendment(
    amendment: Amendment, base: Inventory, check_whole: CheckWhole, found: Findings
) -> None:
    """Find names that are taken or stand for nothing, and all that is wrong with what is new."""
    _check_names(amendment, base, found)
    if len(found):
        return
    whole = Findings()
    with suppress(Enough):
        check_whole(amended(base, amendment), whole)
    for finding in whole.all():
        if _is_about(finding, amendment):
            found.add(finding.path, finding.what, finding.cure, finding.first)


def _check_names(amendment: Amendment, base: Inventory, found: Findings) -> None:
    for kind in ("hosts", "vms", "pools", "rules"):
        taken = {one.id for one in getattr(base, kind)}
        for place, one in enumerate(getattr(amendment, kind)):
            if one.id in taken:
                what = f"the cluster already has {quoted(one.id)}"
                found.add((kind, place, "id"), what, "give it another name")
    vms = [vm.id for vm in (*base.vms, *amendment.vms)]
    for name in amendment.demand:
        if name not in vms:
            found.add_unknown(("demand", name), "VM", name, vms)
    rules = [rule.id for rule in base.rules]
    for place, rule in enumerate(amendment.without_rules):
        if rule not in rules:
            found.add_unknown(("without_rules", place), "rule", rule, rules)


def _is_about(finding: Finding, amendment: Amendment) -> bool:
    """Whether it lies in what is new, which stands first; the cluster itself was found right."""
    kind, *rest = finding.path
    if kind in ("balance", "power"):
        return getattr(amendment, kind) is not None
    new = getattr(amendment, str(kind), ())
    return bool(rest) and isinstance(rest[0], int) and rest[0] < len(new)
