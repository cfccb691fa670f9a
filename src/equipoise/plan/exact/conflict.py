"""Why there is no plan: claims that are at odds, none of them to spare, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Final

from equipoise.plan.exact.task import Claim, HostClaim, RuleClaim, VmClaim
from equipoise.spec.explain import shown

FEW: Final = 5
"""Up to how many claims every part of a conflict is looked at."""
Possible = Callable[[Sequence[Claim]], bool | None]
"""Whether some claims can be kept together; nothing if that was not found out in time."""


def smallest_conflict(claims: Sequence[Claim], possible: Possible) -> tuple[list[Claim], bool]:
    """Some claims that cannot be kept together, none of them to spare, and whether that is certain.

    To drop a rule makes more possible, but to drop a wish may also make less: a VM that nobody
    wants to stop stays. So what is found by halves is looked at once more, part by part.
    """
    search = _Search(possible)
    found = search.halves([], [], list(claims)) if len(claims) > 1 else list(claims)
    if search.can_be(found):
        found = list(claims)
    found = search.refined(found)
    return found, not search.unsure


class _Search:
    def __init__(self, possible: Possible) -> None:
        self._possible = possible
        self.unsure = False

    def halves(self, ground: list[Claim], added: list[Claim], claims: list[Claim]) -> list[Claim]:
        """The claims that are needed for a conflict on top of others that are taken for granted.

        Of a half that is not needed, nothing is asked again.
        """
        if added and not self.can_be(ground):
            return []
        if len(claims) == 1:
            return claims
        half = len(claims) // 2
        first, second = claims[:half], claims[half:]
        of_second = self.halves([*ground, *first], first, second)
        of_first = self.halves([*ground, *of_second], of_second, first)
        return of_first + of_second

    def refined(self, claims: list[Claim]) -> list[Claim]:
        """The smallest part that is a conflict by itself; of many claims, one without any spare."""
        if len(claims) <= FEW:
            for size in range(len(claims)):
                for some in combinations(claims, size):
                    if not self.can_be(list(some)):
                        return list(some)
            return claims
        for place in range(len(claims)):
            rest = [*claims[:place], *claims[place + 1 :]]
            if not self.can_be(rest):
                return self.refined(rest)
        return claims

    def can_be(self, claims: list[Claim]) -> bool:
        """Whether some claims can be kept together, or nobody knows."""
        if not claims:
            return True  # to do nothing breaks nothing
        found = self._possible(claims)
        self.unsure = self.unsure or found is None
        return found is not False


def in_words(claims: Sequence[Claim], facts: Sequence[str]) -> tuple[str, ...]:
    """Say a conflict to a person."""
    return (*_sums(claims), *(_said(claim) for claim in claims), *facts)


def _said(claim: Claim) -> str:
    if isinstance(claim, VmClaim | HostClaim):
        return claim.title
    demand = claim.demand
    constraint = demand.specification.constraints[demand.name]
    arguments = "; ".join(f"{name} = {shown(value)}" for name, value in demand.arguments.items())
    doc = " ".join(constraint.doc.split()).removesuffix(".")
    when = "all along" if demand.continuous else "in the end"
    rule = f"{claim.rule.id}, {demand.name}({arguments}), {when}"
    return f"{rule}: {doc}" if doc else rule


def _sums(claims: Sequence[Claim]) -> Iterator[str]:
    """How many hosts some rules need, and how many others leave."""
    rules = [one for one in claims if isinstance(one, RuleClaim)]
    apart = [one for one in rules if one.demand.library_name in _APART]
    within = [one for one in rules if one.demand.library_name in _WITHIN]
    for claim in apart:
        vms = claim.demand.arguments["vs"]
        fences = [one for one in within if vms & one.named_vms]
        if not fences or not all(any(vm in one.named_vms for one in fences) for vm in vms):
            continue
        left = frozenset().union(*(_hosts_left(vm, fences) for vm in vms))
        if len(left) < len(vms):
            needs = f"{claim.rule.id} needs {len(vms)} hosts for {shown(vms)}"
            names = ", ".join(one.rule.id for one in fences)
            verb = "leave" if len(fences) > 1 else "leaves"
            yield f"{needs}, {names} {verb} {len(left)}: {shown(left)}"


def _hosts_left(vm: str, fences: Sequence[RuleClaim]) -> frozenset[str]:
    sets = [one.demand.arguments["ns"] for one in fences if vm in one.named_vms]
    return frozenset.intersection(*sets)


_APART = frozenset({"Spread", "KeepApart"})
_WITHIN = frozenset({"Fence", "MustRunOn"})
